"""An index of OpenSearch or Elasticsearch as a target, one for each version of the product.

1. The writes of a batch carry the sequence as their external version, so none replaces a newer one.
2. A tombstone replaces its document with an entry that searches do not see, and that outlasts the index's memory of deletes.
3. The offsets follow when the index has answered all writes of the batch: a batch that comes again changes nothing.
4. When the index holds all that the topic held, each document in the version of the product, the alias of readers moves to it.
   The index before then loses the alias by which its landing writes, so that this landing ends.

The id of the landing is the one that the server itself gave to the index: random, and another one for each copy of the index.
"""

import re
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any, Final

import orjson
import simplejson

from processor.job.landing import search_index as entries
from processor.job.landing.landed_message import LandedMessage, write_latest
from processor.job.landing.search_client import BAD_VALUE, IndexWrite, SearchClient
from processor.job.landing.search_index import OWN
from processor.job.landing.target import (
    LandedDocument,
    LandedTopic,
    LandingError,
    Moment,
    Opened,
    RefusedDocument,
    TopicReplaced,
    is_created_again,
    located,
)

PAGE: Final = 1_000
"""So many entries come with each answer of a search."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,199}")
_KEEP_ALIVE: Final = "5m"
CURE: Final = "delete the index"


class SearchTarget:
    """An index at `url`. `name`: the alias of readers; `version`: of the product; `mapping`: of its documents. Raises
    LandingError for an address that is none, and for a name that no index can have."""

    def __init__(self, url: str, name: str, version: int, mapping: Mapping[str, Any]) -> None:
        if not _NAME.fullmatch(name):
            raise LandingError(f"--into {name!r} cannot name an index: give small letters, digits, _, . and -")
        if OWN in mapping["properties"]:
            raise LandingError(f"the documents have a member {OWN}, which a landing needs itself: give it another name")
        self._client, self._name, self._version, self._mapping = SearchClient(url), name, version, mapping
        self._index, self._write_alias = f"{name}-v{version}", f"{name}-v{version}-write"
        self._topic_id, self._incarnation = "", 0

    @property
    def place(self) -> str:
        return located(f"index {self._index} at {self._client.host}", self._client.hostname)

    def open(self, topic: LandedTopic, *, new_id: bool = False) -> Opened:
        if new_id:
            raise LandingError("--new-id is for Postgres: the server itself gives each copy of an index another id")
        if not self._exists():
            self._create(topic)
        bound, incarnation = self._bound()
        if is_created_again(self.place, bound, topic, CURE):
            incarnation += 1
            self._bind(topic, incarnation)
        elif bound != topic:
            self._bind(topic, incarnation)
        self._topic_id, self._incarnation = topic.id, incarnation
        if self._client.find(f"/_alias/{self._write_alias}") is None:
            raise LandingError(
                f"{self.place} is closed to landings: the alias {self._name} has moved to a later version"
            )
        self._forget()
        return Opened(self._id(), incarnation > 0 and self._count(entries.earlier_incarnations(incarnation)) > 0)

    def check(self, topic: LandedTopic) -> str:
        if not self._exists():
            raise LandingError(f"{self.place} holds no documents yet: run `statestore land` without --verify first")
        bound, self._incarnation = self._bound()
        if is_created_again(self.place, bound, topic, CURE):
            raise LandingError(
                f"{self.place} holds an earlier topic {topic.name}, which was created again: start `statestore land`, which "
                "begins it"
            )
        return self._id()

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        found = self._get([f"offset-{partition}" for partition in partitions]).values()
        return {own["partition"]: own["next_offset"] for own in found if self._is_of_this(own)}

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        counts, incarnation = Counter[str](), self._incarnation
        bound, _ = self._bound()
        if bound.id != self._topic_id:
            raise TopicReplaced(f"another process of the landing has found another topic {bound.name}")
        refused = write_latest(messages, lambda latest: self._write(latest, counts))
        self._bulk([entries.refused_entry(message, reason, incarnation) for message, reason in refused])
        self._bulk([entries.offset_entry(partition, end, incarnation) for partition, end in ends.items()])
        counts["refused"] = len({message.key for message, _ in refused})
        counts["superseded"] = len(messages) - sum(counts.values())
        counts["later"] = sum(message.version > self._version for message in messages)
        return counts

    def show(self) -> str:
        self.refused()  # a document that a later message replaced does not wait
        self._refresh()
        if waiting := self._count(entries.earlier_versions(self._version)["query"]):
            return f"{waiting:,} documents are of earlier versions of the product"
        found = orjson.loads(self._client.find(f"/_alias/{self._name}") or b"{}")
        if self._index not in found:
            self._move_alias(list(found))
        return ""

    def forget_earlier(self) -> int:
        self._refresh()
        version = entries.version_of(self._incarnation, 0)
        found = [
            (id_, entry[OWN]["kind"])
            for id_, entry in self._search(entries.earlier_incarnations(self._incarnation), own_only=True)
        ]
        self._bulk([IndexWrite(id_, version, None) for id_, _ in found])
        return sum(kind == "document" for _, kind in found)

    def refused(self) -> int:
        self._refresh()
        standing, ended = self._refused()
        self._bulk(ended)
        return len(standing)

    def moment(self) -> Moment:
        self._refresh()
        own = [entry[OWN] for _, entry in self._search(entries.of_kind("offset"))]
        offsets = {int(one["partition"]): int(one["next_offset"]) for one in own if self._is_of_this(one)}
        return Moment(offsets, self._documents(), self._refused()[0])

    def close(self) -> None:
        self._client.close()

    def _documents(self) -> Iterator[LandedDocument]:
        with closing(self._search(entries.of_kind("document"))) as found:
            yield from (entries.document_of(entry) for _, entry in found)

    def _exists(self) -> bool:
        return self._client.find(f"/{self._index}") is not None

    def _create(self, topic: LandedTopic) -> None:
        try:
            self._client.send("PUT", f"/{self._index}", entries.index_body(self._mapping, topic, self._write_alias))
        except LandingError:
            if not self._exists():  # else another process made it meanwhile
                raise

    def _meta(self) -> dict[str, Any]:
        path = f"/{self._index}/_mapping?filter_path=*.mappings._meta"
        data = self._client.find(path)
        if data is None:
            raise LandingError(
                f"{self.place} is gone: readers have an index of a later version, or somebody deleted this one"
            )
        found = orjson.loads(data)
        return dict(found.get(self._index, {}).get("mappings", {}).get("_meta", {}))

    def _bound(self) -> tuple[LandedTopic, int]:
        """The topic that the index holds, and how often it was created again."""
        bound = self._meta().get(OWN)
        if bound is None:
            raise LandingError(f"{self.place} is there, and no landing made it: choose another --into")
        given = {name: bound[name] for name in LandedTopic._fields if name in bound}
        return LandedTopic(**given), entries.incarnation_of(bound)

    def _bind(self, topic: LandedTopic, incarnation: int) -> None:
        body = entries.bound_body(self._meta(), topic, incarnation)
        self._client.send("PUT", f"/{self._index}/_mapping", body)

    def _id(self) -> str:
        found = orjson.loads(self._client.send("GET", f"/{self._index}/_settings/index.uuid"))
        return str(found[self._index]["settings"]["index"]["uuid"])

    def _count(self, query: Mapping[str, Any]) -> int:
        answer = self._client.send("POST", f"/{self._index}/_count", {"query": query})
        return int(orjson.loads(answer)["count"])

    def _is_of_this(self, own: Mapping[str, Any]) -> bool:
        """Whether an entry is of the topic that the index holds, and of no earlier one of its name."""
        return entries.incarnation_of(own) == self._incarnation

    def _write(self, messages: Sequence[LandedMessage], counts: Counter[str]) -> list[tuple[LandedMessage, str]]:
        """Writes one message of each root. Returns those that the index refuses, with the reason."""
        incarnation = self._incarnation
        made = [(message, entries.entry_of(message, incarnation)) for message in messages]
        refused = [(message, "the document is no JSON object") for message, entry in made if entry is None]
        sent = [(message, entry) for message, entry in made if entry is not None]
        ended = [entries.end_of_refused(message, incarnation) for message in messages if message.document is None]
        answers = self._client.bulk(self._write_alias, [*(entry for _, entry in sent), *ended])
        for (message, _), answer in zip(sent, answers[: len(sent)], strict=True):
            if answer.status == BAD_VALUE:
                refused.append((message, answer.reason))
            elif answer.status in (200, 201):
                counts["deleted" if message.document is None else "landed"] += 1
        return refused

    def _bulk(self, writes: Sequence[IndexWrite]) -> None:
        """Sends writes of the landing itself. A newer one may stand there already. Raises LandingError for a refused one."""
        for answer in self._client.bulk(self._write_alias, writes):
            if answer.status == BAD_VALUE:
                raise LandingError(f"{self.place} refuses an entry of the landing: {answer.reason}")

    def _move_alias(self, before: Sequence[str]) -> None:
        """Moves the alias of readers to this index, and takes the writers' alias from those before, in one request."""
        for index in before:
            version = index.removeprefix(f"{self._name}-v")
            if version == index or not version.isdigit():
                raise LandingError(
                    f"the alias {self._name} leads to {index}, which no landing made: choose another --into"
                )
            if int(version) > self._version:
                raise LandingError(f"the alias {self._name} leads to {index} already, a later version of the product")
        former = [
            {"remove": {"index": index, "alias": alias}} for index in before for alias in (self._name, f"{index}-write")
        ]
        here = {"index": self._index, "alias": self._name, "filter": entries.of_kind("document")}
        self._client.send("POST", "/_aliases", {"actions": [*former, {"add": here}]})

    def _refused(self) -> tuple[list[RefusedDocument], list[IndexWrite]]:
        """The refused documents that no later message replaced, and the writes that remove the others."""
        notes = [(id_, entry) for id_, entry in self._search(entries.of_kind("refused"))]
        held = self._get([id_.removeprefix("refused-") for id_, _ in notes])
        standing, ended = [], []
        for id_, entry in notes:
            after, version = held.get(id_.removeprefix("refused-")), entries.stored_version(entry[OWN])
            if after is not None and entries.stored_version(after) >= version:
                ended.append(IndexWrite(id_, version, None))
            else:
                standing.append(entries.refused_of(id_, entry))
        return sorted(standing), ended

    def _forget(self) -> None:
        """Removes old tombstones, and notes of documents that a later message replaced."""
        self._refresh()
        old = [(id_, entries.stored_version(entry[OWN])) for id_, entry in self._search(entries.forgotten())]
        self._bulk([IndexWrite(id_, version, None) for id_, version in old])
        self._bulk(self._refused()[1])

    def _refresh(self) -> None:
        """Shows all writes to the searches that follow."""
        self._client.send("POST", f"/{self._index}/_refresh")

    def _get(self, ids: Sequence[str]) -> dict[str, Any]:
        """The landing's own part of entries, by id, as the last write left them."""
        if not ids:
            return {}
        path = f"/{self._index}/_mget?_source_includes={OWN}"
        found = orjson.loads(self._client.send("POST", path, {"ids": list(ids)}))["docs"]
        return {one["_id"]: one["_source"][OWN] for one in found if one.get("found")}

    def _search(
        self, query: Mapping[str, Any], *, own_only: bool = False
    ) -> Generator[tuple[str, dict[str, Any]], None, None]:
        """The entries of a query at one moment, with their ids. Their numbers are exact. `own_only`: without their documents."""
        request = {"query": query, "size": PAGE, "sort": ["_doc"], "_source": [OWN] if own_only else True}
        answer = self._client.send("POST", f"/{self._index}/_search?scroll={_KEEP_ALIVE}", request)
        scroll = ""
        try:
            while True:
                page = simplejson.loads(answer, parse_float=Decimal)
                scroll = page["_scroll_id"]
                if not page["hits"]["hits"]:
                    return
                yield from ((hit["_id"], hit["_source"]) for hit in page["hits"]["hits"])
                answer = self._client.send("POST", "/_search/scroll", {"scroll": _KEEP_ALIVE, "scroll_id": scroll})
        finally:
            if scroll:
                self._client.send("DELETE", "/_search/scroll", {"scroll_id": scroll})

"""An index of OpenSearch or Elasticsearch as a target, one for each version of the product. The doorway to urllib3.

1. The writes of a batch carry the sequence as their external version, so none replaces a newer one.
2. A tombstone replaces its document with an entry that searches do not see, and that outlasts the index's memory of deletes.
3. The offsets follow when the index has answered all writes of the batch: a batch that comes again changes nothing.
4. When the index holds all that the topic held, each document in the version of the product, the alias of readers moves to it.
   The index before then loses the alias through which its landing writes, so that this landing ends.

The id of the landing is the one that the server itself gave to the index: random, and another one for each copy of the index.

An index holds four kinds of entries, which the field `statestore.kind` tells apart:

document    a document of the product, with its members at the top; the alias of readers shows only this kind
tombstone   the sequence of a deleted document: the index itself forgets it after a minute (`index.gc_deletes`), and at a restart
offset      the offset of the next message of a partition
refused     a document that the index refuses, with the reason

An entry has the hash of the key as its id, so that nothing of a deleted document stays but that. `incarnation` counts how often
the topic was created again. It is the upper part of the version of an entry: a message of a later incarnation replaces every
entry of an earlier one, since the sequences of a new topic may begin again.

`SearchClient` speaks the HTTP interface that both servers have. The official clients each refuse the other's server, and repeat
no refused part of a bulk request; urllib3 comes with botocore.
"""

import re
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from time import time
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson
import simplejson
import urllib3
from urllib3.exceptions import HTTPError, SSLError

from processor.errors import SettingError
from processor.job.landing.target import (
    LandedDocument,
    LandedMessage,
    LandedTopic,
    LandingError,
    LandingPlace,
    Moment,
    Opened,
    RefusedDocument,
    Target,
    TargetAway,
    TopicReplaced,
    is_created_again,
    is_object,
    located,
    shortened,
    write_latest,
)
from processor.language.product.document_type import index_mapping
from processor.values.record import HIGHEST_SEQUENCE

TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
BULK_BYTES: Final = 5 * 1024 * 1024
"""The largest bulk request. Small machines of Amazon OpenSearch Service take at most 10 MiB."""
TOO_LARGE, CONFLICT, BAD_VALUE, NOT_FOUND = 413, 409, 400, 404
_DONE: Final = (200, 201)
_BLOCKED: Final = "cluster_block_exception"
"""An index that takes no writes now: its disk is full, or an operator closed it."""


class IndexWrite(NamedTuple):
    """A write of a bulk request. `version`: an older one never replaces a newer one. `source`: the stored text; None deletes."""

    id: str
    version: int
    source: bytes | None

    @property
    def lines(self) -> bytes:
        """The write as lines of a bulk request."""
        verb = "delete" if self.source is None else "index"
        head = {verb: {"_id": self.id, "version": self.version, "version_type": "external_gte"}}
        return orjson.dumps(head) + b"\n" + (b"" if self.source is None else self.source + b"\n")


class IndexAnswer(NamedTuple):
    """The answer to a write. `status`: the HTTP status. `reason`: of a refusal."""

    status: int
    reason: str = ""


class SearchClient:
    """A client of the server at `url` (`https://user:password@host:9200`). Raises LandingError for any other address."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
            host = f"{name}:{parts.port}" if parts.port else name
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise ValueError
        except ValueError:  # the message of urlsplit may hold the password
            raise LandingError(
                "--to is no address of OpenSearch: give https://user@host:9200, or postgresql://... for Postgres"
            ) from None
        self.hostname: Final = parts.hostname
        self.host: Final = f"{host}{parts.path.rstrip('/')}"
        self._base = f"{parts.scheme}://{self.host}"
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
        self._pool = urllib3.PoolManager(
            headers=urllib3.make_headers(keep_alive=True, basic_auth=login), timeout=TIMEOUT, retries=False
        )

    def find(self, path: str) -> bytes | None:
        """The answer to a GET; None where there is no such thing."""
        status, data = self._exchange("GET", path, None)
        return None if status == NOT_FOUND else self._checked(status, data)

    def send(self, method: str, path: str, value: Mapping[str, Any] | None = None) -> bytes:
        """The answer to a request with a JSON value."""
        return self._checked(*self._exchange(method, path, None if value is None else orjson.dumps(value)))

    def bulk(self, alias: str, writes: Sequence[IndexWrite]) -> list[IndexAnswer]:
        """Sends the writes, in requests of at most BULK_BYTES. Returns an answer for each. Raises TargetAway where the server
        takes some of them only later, LandingError where it refuses all of them."""
        answers: list[IndexAnswer] = []
        portion: list[IndexWrite] = []
        size = 0
        for write in writes:
            if portion and size + len(write.source or b"") > BULK_BYTES:
                answers += self._portion(alias, portion)
                portion, size = [], 0
            portion.append(write)
            size += len(write.source or b"")
        return answers + (self._portion(alias, portion) if portion else [])

    def close(self) -> None:
        self._pool.clear()

    def _portion(self, alias: str, writes: Sequence[IndexWrite]) -> list[IndexAnswer]:
        """Sends one request, or each half alone where a server in between takes no request of this size."""
        body = b"".join(write.lines for write in writes)
        path = f"/{alias}/_bulk?require_alias=true&filter_path=items.*.status,items.*.error"
        status, data = self._exchange("POST", path, body, "application/x-ndjson")
        if status == TOO_LARGE and len(writes) == 1:
            return [IndexAnswer(BAD_VALUE, f"the server takes no request of {len(body):,} bytes")]
        if status == TOO_LARGE:
            middle = len(writes) // 2
            return [*self._portion(alias, writes[:middle]), *self._portion(alias, writes[middle:])]
        items = orjson.loads(self._checked(status, data)).get("items", [])
        return [self._answer(alias, next(iter(item.values()))) for item in items]

    def _answer(self, alias: str, item: Mapping[str, Any]) -> IndexAnswer:
        status, error = int(item["status"]), item.get("error")
        if error is None or status in (CONFLICT, BAD_VALUE):
            return IndexAnswer(status, "" if error is None else _reason(error))
        if status == NOT_FOUND:
            raise LandingError(
                f"{alias} at {self.host} is gone: readers have an index of a later version, or somebody deleted this one"
            )
        raise self._failure(status, error)

    def _exchange(
        self, method: str, path: str, body: bytes | None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        headers = {**self._pool.headers, "Content-Type": kind} if body is not None else None
        try:
            reply = self._pool.request(method, self._base + path, body=body, headers=headers)
        except SSLError as error:
            cure = "give a certificate that this machine trusts (SSL_CERT_FILE)"
            raise LandingError(f"{self.host} cannot be trusted: {_words(error)}; {cure}") from error
        except HTTPError as error:
            raise self._away(_words(error)) from error
        return reply.status, reply.data

    def _checked(self, status: int, data: bytes) -> bytes:
        if status in _DONE:
            return data
        try:
            error = orjson.loads(data)["error"]
        except (orjson.JSONDecodeError, KeyError, TypeError):  # a server in between answers as it likes
            error = " ".join(data.decode(errors="replace").split())[:200] or "no reason given"
        raise self._failure(status, error)

    def _failure(self, status: int, error: Any) -> TargetAway | LandingError:
        kind = error.get("type") if isinstance(error, Mapping) else None
        if status == 429 or status >= 500 or kind == _BLOCKED:
            return self._away(f"{status}: {_reason(error)}")
        return LandingError(f"{self.host} refuses the landing: {status}: {_reason(error)}")

    def _away(self, why: str) -> TargetAway:
        cure = "start that OpenSearch, or make room in it, or correct --to; nothing is lost"
        return TargetAway(f"{self.host} takes no documents: {why}", part="target", cure=cure)


def _reason(error: Any) -> str:
    """The reason in an error, with its cause."""
    if not isinstance(error, Mapping):
        return str(error)
    cause = error.get("caused_by")
    return f"{error.get('type')}: {error.get('reason')}" + (f" ({_reason(cause)})" if cause else "")


def _words(error: Exception) -> str:
    return " ".join(str(error).split())


OWN: Final = "statestore"
"""The member in which an entry keeps what is not of the document."""
_REFUSED: Final = "refused-"
KEEP_DAYS: Final = 7
"""So long a tombstone stays, to refuse older messages of its key from a partition that another process reads late."""
MOST_CHARACTERS: Final = 10_000
"""A note of a refused document has at most so much of its document and of its key: a server takes every note."""
_OWN_FIELDS: Final = {
    "kind": {"type": "keyword"},
    "key": {"type": "keyword", "ignore_above": 8191},
    "sequence": {"type": "long"},
    "incarnation": {"type": "integer"},
    "product_version": {"type": "integer"},
    "published_at": {"type": "date"},
    "deleted_at": {"type": "date"},
}


def index_body(mapping: Mapping[str, Any], topic: LandedTopic, write_alias: str) -> dict[str, Any]:
    """The request that makes an index. `mapping`: of the product's documents."""
    properties = {**mapping["properties"], OWN: {"dynamic": False, "properties": _OWN_FIELDS}}
    return {
        "aliases": {write_alias: {}},
        "mappings": {**mapping, "properties": properties, "_meta": {OWN: topic._asdict()}},
        "settings": {"index.translog.durability": "request"},
    }


def bound_body(meta: Mapping[str, Any], topic: LandedTopic, incarnation: int) -> dict[str, Any]:
    """The request that binds an index to a topic that was created again. `meta`: of the index now."""
    bound = topic._asdict() | {"incarnation": incarnation}
    return {"_meta": {**meta, OWN: bound}, "properties": {OWN: {"dynamic": False, "properties": _OWN_FIELDS}}}


def version_of(incarnation: int, number: int) -> int:
    """The version of an entry with this sequence or offset."""
    return incarnation * (HIGHEST_SEQUENCE + 1) + number


def of_kind(*kinds: str) -> dict[str, Any]:
    """The query for entries of these kinds."""
    return {"terms": {f"{OWN}.kind": kinds}}


def earlier_versions(version: int) -> dict[str, Any]:
    """The query for documents of earlier versions of the product, with those that the index refuses."""
    return {"query": {"range": {f"{OWN}.product_version": {"lt": version}}}}


def forgotten() -> dict[str, Any]:
    """The query for tombstones that are older than KEEP_DAYS."""
    old = {"range": {f"{OWN}.deleted_at": {"lt": f"now-{KEEP_DAYS}d"}}}
    return {"bool": {"filter": [of_kind("tombstone"), old]}}


def earlier_incarnations(incarnation: int) -> dict[str, Any]:
    """The query for documents, tombstones and notes of earlier topics of this name."""
    these = {"range": {f"{OWN}.incarnation": {"gte": incarnation}}}
    return {"bool": {"filter": [of_kind("document", "tombstone", "refused")], "must_not": [these]}}


def entry_of(message: LandedMessage, incarnation: int = 0) -> IndexWrite | None:
    """The entry of a message; None for a document that is no JSON object."""
    version = version_of(incarnation, message.sequence)
    if message.document is None:
        gone = {"kind": "tombstone", "sequence": message.sequence, "incarnation": incarnation}
        return IndexWrite(id_of(message), version, orjson.dumps({OWN: gone | {"deleted_at": int(time() * 1000)}}))
    text = message.document.replace("\n", " ").replace("\r", " ").strip()
    if not text.startswith("{") or not is_object(text):
        return None
    members = text[1:].lstrip()
    own = orjson.dumps({"kind": "document", **_shared(message, incarnation)}).decode()
    source = f'{{"{OWN}":{own}{"" if members.startswith("}") else ","}{members}'
    return IndexWrite(id_of(message), version, source.encode())


def refused_entry(message: LandedMessage, reason: str, incarnation: int = 0) -> IndexWrite:
    """The note of a document that the index refuses. No server refuses it: a long key or document is cut."""
    shared = _shared(message, incarnation) | {"key": shortened(message.key, MOST_CHARACTERS)}
    texts = {"reason": reason, "document": message.document or ""}
    own = {"kind": "refused", **shared} | {name: shortened(text, MOST_CHARACTERS) for name, text in texts.items()}
    return IndexWrite(refused_id(message), version_of(incarnation, message.sequence), orjson.dumps({OWN: own}))


def end_of_refused(message: LandedMessage, incarnation: int = 0) -> IndexWrite:
    """Removes the note of a document that the index refused, where the message is newer."""
    return IndexWrite(refused_id(message), version_of(incarnation, message.sequence), None)


def offset_entry(partition: int, offset: int, incarnation: int = 0) -> IndexWrite:
    """The entry of a partition. A process that is late never puts an offset back."""
    own = {"kind": "offset", "partition": partition, "next_offset": offset, "landed_at": int(time() * 1000)}
    version = version_of(incarnation, offset)
    return IndexWrite(f"offset-{partition}", version, orjson.dumps({OWN: own | {"incarnation": incarnation}}))


def document_of(entry: Mapping[str, Any]) -> LandedDocument:
    """The document in an entry, whose numbers are exact."""
    own = entry[OWN]
    document = {name: value for name, value in entry.items() if name != OWN}
    return LandedDocument(own["key"], simplejson.dumps(document, use_decimal=True), int(own["sequence"]))


def refused_of(id_: str, entry: Mapping[str, Any]) -> RefusedDocument:
    """The refused document in a note."""
    own = entry[OWN]
    return RefusedDocument(own["key"], int(own["sequence"]), own["reason"], bytes.fromhex(id_.removeprefix(_REFUSED)))


def stored_version(own: Mapping[str, Any]) -> int:
    """The version of an entry, by its own part."""
    return version_of(incarnation_of(own), int(own["sequence"]))


def incarnation_of(own: Mapping[str, Any]) -> int:
    """The incarnation of an entry; an earlier release counted none."""
    return int(own.get("incarnation", 0))


def id_of(message: LandedMessage) -> str:
    return message.key_hash.hex()


def refused_id(message: LandedMessage) -> str:
    return f"{_REFUSED}{id_of(message)}"


def _shared(message: LandedMessage, incarnation: int) -> dict[str, Any]:
    return {
        "key": message.key,
        "sequence": message.sequence,
        "incarnation": incarnation,
        "product_version": message.version,
        "published_at": message.published_at,
    }


PAGE: Final = 1_000
"""This many entries come with each answer of a search."""
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
        return Opened(self._id(), incarnation > 0 and self._count(earlier_incarnations(incarnation)) > 0)

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
        self._bulk([refused_entry(message, reason, incarnation) for message, reason in refused])
        self._bulk([offset_entry(partition, end, incarnation) for partition, end in ends.items()])
        counts["refused"] = len({message.key for message, _ in refused})
        counts["superseded"] = len(messages) - sum(counts.values())
        counts["later"] = sum(message.version > self._version for message in messages)
        return counts

    def show(self) -> str:
        self.refused()  # a document that a later message replaced does not wait
        self._refresh()
        if waiting := self._count(earlier_versions(self._version)["query"]):
            return f"{waiting:,} documents are of earlier versions of the product"
        found = orjson.loads(self._client.find(f"/_alias/{self._name}") or b"{}")
        if self._index not in found:
            self._move_alias(list(found))
        return ""

    def forget_earlier(self) -> int:
        self._refresh()
        version = version_of(self._incarnation, 0)
        found = [
            (id_, entry[OWN]["kind"])
            for id_, entry in self._search(earlier_incarnations(self._incarnation), own_only=True)
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
        own = [entry[OWN] for _, entry in self._search(of_kind("offset"))]
        offsets = {int(one["partition"]): int(one["next_offset"]) for one in own if self._is_of_this(one)}
        return Moment(offsets, self._documents(), self._refused()[0])

    def close(self) -> None:
        self._client.close()

    def _documents(self) -> Iterator[LandedDocument]:
        with closing(self._search(of_kind("document"))) as found:
            yield from (document_of(entry) for _, entry in found)

    def _exists(self) -> bool:
        return self._client.find(f"/{self._index}") is not None

    def _create(self, topic: LandedTopic) -> None:
        try:
            self._client.send("PUT", f"/{self._index}", index_body(self._mapping, topic, self._write_alias))
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
        return LandedTopic(**given), incarnation_of(bound)

    def _bind(self, topic: LandedTopic, incarnation: int) -> None:
        body = bound_body(self._meta(), topic, incarnation)
        self._client.send("PUT", f"/{self._index}/_mapping", body)

    def _id(self) -> str:
        found = orjson.loads(self._client.send("GET", f"/{self._index}/_settings/index.uuid"))
        return str(found[self._index]["settings"]["index"]["uuid"])

    def _count(self, query: Mapping[str, Any]) -> int:
        answer = self._client.send("POST", f"/{self._index}/_count", {"query": query})
        return int(orjson.loads(answer)["count"])

    def _is_of_this(self, own: Mapping[str, Any]) -> bool:
        """Whether an entry is of the topic that the index holds, and of no earlier one of its name."""
        return incarnation_of(own) == self._incarnation

    def _write(self, messages: Sequence[LandedMessage], counts: Counter[str]) -> list[tuple[LandedMessage, str]]:
        """Writes one message of each root. Returns those that the index refuses, with the reason."""
        incarnation = self._incarnation
        made = [(message, entry_of(message, incarnation)) for message in messages]
        refused = [(message, "the document is no JSON object") for message, entry in made if entry is None]
        sent = [(message, entry) for message, entry in made if entry is not None]
        ended = [end_of_refused(message, incarnation) for message in messages if message.document is None]
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
        here = {"index": self._index, "alias": self._name, "filter": of_kind("document")}
        self._client.send("POST", "/_aliases", {"actions": [*former, {"add": here}]})

    def _refused(self) -> tuple[list[RefusedDocument], list[IndexWrite]]:
        """The refused documents that no later message replaced, and the writes that remove the others."""
        notes = [(id_, entry) for id_, entry in self._search(of_kind("refused"))]
        held = self._get([id_.removeprefix("refused-") for id_, _ in notes])
        standing, ended = [], []
        for id_, entry in notes:
            after, version = held.get(id_.removeprefix("refused-")), stored_version(entry[OWN])
            if after is not None and stored_version(after) >= version:
                ended.append(IndexWrite(id_, version, None))
            else:
                standing.append(refused_of(id_, entry))
        return sorted(standing), ended

    def _forget(self) -> None:
        """Removes old tombstones, and notes of documents that a later message replaced."""
        self._refresh()
        old = [(id_, stored_version(entry[OWN])) for id_, entry in self._search(forgotten())]
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


def open_index(place: LandingPlace) -> Target:
    """The index at a place. Raises SettingError for a place that no index can be."""
    if not place.version:
        raise SettingError("--definitions has no version of the product, which names the index: leave the flag out")
    if place.indexes:
        raise SettingError("--index is for Postgres: an index of OpenSearch has every declared member")
    return SearchTarget(place.url, place.name, place.version, index_mapping(place.product, place.entities))

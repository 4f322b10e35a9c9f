"""Compares published documents with the state. The last message of each root is compared with the document that the steps
assemble now, and, with SQL, with the answer of the product's SQL over the state's rows (`processor.inspect.mirror`).

    1. with SQL: hash all its documents; this finds roots that were never published
    2. hash the last message of every key in the product's topic, and count those of an older version of the product
    3. for these keys, and for roots that have no message, or a sample of both, assemble the documents from the state, with open
       changes laid over index answers
    4. for keys that differ, wait W and read topic, state and SQL again: a job may have been between the readings. A document that
       waits at the gate of its product is no difference: the job publishes it when its time comes

Promises: a reported difference is one of value. Verify names a document that may depend on a row that Postgres cannot hold, and
does not compare it with SQL. Numbers are compared by value; with SQL, timestamps are compared in microseconds
and undeclared columns are left out. A difference is between one moment of the topic and one of the
state; SQL's rows are read over a longer time.
While a job runs, verify may report a document that the job
rewrites all the time, or that a large fan-out has not reached yet, although that document will become right.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from time import time
from typing import NamedTuple

from processor.gates.stored_roots import stored_roots
from processor.inspect.comparable import comparable
from processor.inspect.mirror import LeftOutRow, Mirror
from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan
from processor.plan.root_key import root_of
from processor.plan.touch import Root, Touch
from processor.product.document_type import Schema, document_schema
from processor.progress.ledger import NO_DOCUMENT, hash_of
from processor.progress.open_changes import stored_overlay
from processor.records import canonical_json
from processor.records.record import Record
from processor.rounds.publish_stage import VERSION_HEADER, encoded_document
from processor.rounds.round import CHUNK
from processor.rounds.step_runner import StepRunner
from processor.steps.find_roots import find_roots, resume
from statestore import keys
from statestore.items import DELETED

TopicReader = Callable[[], Iterable[Record]]
"""Reads the product's topic from its beginning to its present end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A document that differs. `key`: of the message; `root`: the key as the table encodes it, None if it is not a key of the
    root; values None: no document. `stale`: published and state differ, so publishing again helps; `refuted`: state and SQL
    differ, so publishing again does not help; `waits`: the document is only waiting at its gate."""

    product: str
    key: str
    root: str | None
    published: bytes | None
    state: bytes | None
    sql: bytes | None = None
    stale: bool = True
    refuted: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCompared:
    """A document that was compared with the state only, not with SQL. `key`: of the message; `reason`: names the row that
    Postgres cannot hold."""

    product: str
    key: str
    reason: str


class _Unpublished(NamedTuple):
    """A stored root for which the topic has no message: its encoded key."""

    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationResult:
    """The number of documents that were compared, those that differ, and those that were not compared with SQL, in the order of
    their keys. `outdated`: how many messages of the topic are of an older version of the product; `waiting`: how many documents
    wait at the gate of the product."""

    compared: int
    differences: tuple[Difference, ...]
    not_compared: tuple[NotCompared, ...] = ()
    outdated: int = 0
    waiting: int = 0

    @property
    def unpublished(self) -> int:
        """The documents of the state that the topic does not have."""
        return sum(d.published is None and d.state is not None for d in self.differences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Compares documents of a plan. `wait`: sleeps for W. `mirror`: answers SQL; None: no comparison with SQL."""

    plan: Plan
    runner: StepRunner
    wait: Callable[[], None]
    mirror: Mirror | None = None

    def verify(
        self, product: ProductPlan, topic: TopicReader, sample: int | None, random: Random
    ) -> VerificationResult:
        """Compares all documents of a product, or a sample of `sample` documents."""
        schema = self._schema(product)
        answers = {key: hash_of(_comparable(text, schema)) for key, text in self._sql_documents(product)}
        published, outdated = dict[str, str](), set[str]()
        for record in topic():
            key = _key_text(record)
            published[key] = hash_of(record.value)
            (outdated.add if _is_outdated(record, product) else outdated.discard)(key)
        beyond_sql = self._beyond_sql(product)
        known = sorted(published.keys() | answers.keys() | beyond_sql.keys())
        roots = [_Unpublished(root) for root in self._roots_without(product, known)]
        every: list[str | _Unpublished] = [*known, *roots]
        drawn = every if sample is None or sample >= len(every) else random.sample(every, sample)
        chosen = [one for one in drawn if not isinstance(one, _Unpublished)]
        chosen += self._message_keys(product, [one.root for one in drawn if isinstance(one, _Unpublished)])
        suspects = {key for key in chosen if self._root(product, key) is None}
        for key, state in self._state_documents(product, chosen):
            if published.get(key, NO_DOCUMENT) != hash_of(state) or (
                self.mirror
                and key not in beyond_sql
                and answers.get(key, NO_DOCUMENT) != hash_of(_comparable(state, schema))
            ):
                suspects.add(key)
        found = tuple(self._second_look(product, topic, suspects)) if suspects else ()
        differences = tuple(one for one in found if not one.waits)
        return VerificationResult(
            compared=len(chosen),
            differences=differences,
            waiting=len(found) - len(differences),
            not_compared=tuple(
                NotCompared(product=product.product.name, key=key, reason=beyond_sql[key])
                for key in sorted(set(chosen) & beyond_sql.keys())
            ),
            outdated=len(outdated),
        )

    def _roots_without(self, product: ProductPlan, known: Iterable[str]) -> Iterator[str]:
        """The encoded keys of the stored roots whose message key is not known, without those that have no row."""
        seen = {self._root(product, key) for key in known}
        entity = self.plan.entities[product.product.root].entity
        for partition in keys.partitions(entity.name, entity.shards):
            for key in self.runner.store.walk(partition, DELETED):
                if key.sk not in seen:
                    yield key.sk

    def _message_keys(self, product: ProductPlan, roots: Iterable[str]) -> Iterator[str]:
        """The message keys of the roots that have a document."""
        rest = iter(roots)
        while chunk := list(islice(rest, CHUNK)):
            bodies = self.runner.run(encoded_document(self.plan, product, root, Counter()) for root in chunk)
            yield from (body.key for body in bodies if body.value is not None)

    def _beyond_sql(self, product: ProductPlan) -> dict[str, str]:
        """The message keys of documents that may depend on a row that Postgres cannot hold, each with the row and the reason."""
        roots: dict[str, str] = {}
        for left_out in self.mirror.left_out if self.mirror else ():
            reason = f"{left_out.entity} {left_out.row.key.sk}: {left_out.reason}"
            for root in self._roots_above(product, left_out):
                roots.setdefault(root, reason)
        bodies = self.runner.run(encoded_document(self.plan, product, root, Counter()) for root in roots)
        return {body.key: reason for body, reason in zip(bodies, roots.values(), strict=True) if body.key}

    def _roots_above(self, product: ProductPlan, left_out: LeftOutRow) -> set[str]:
        """The encoded keys of the roots whose documents may depend on a row."""
        touch = Touch(left_out.entity, left_out.row, frozenset(), None, "applied")
        (found,) = self.runner.run([find_roots(touch, self.plan)])
        roots, fan_outs = set(found.roots), list(found.fan_outs)
        while fan_outs:
            fan_out = fan_outs.pop()
            if fan_out.product != product.product.name:
                continue
            (resumed,) = self.runner.run([resume(fan_out, self.plan)])
            roots |= resumed.found.roots
            fan_outs += resumed.found.fan_outs
            if resumed.after is not None:
                fan_outs.append(fan_out._replace(after=resumed.after))
        return {root for name, root in roots if name == product.product.name}

    def _second_look(self, product: ProductPlan, topic: TopicReader, suspects: Collection[str]) -> Iterator[Difference]:
        self.wait()
        if self.mirror:
            self.mirror.forget()
        schema = self._schema(product)
        answers = {key: text for key, text in self._sql_documents(product) if key in suspects}
        beyond_sql = self._beyond_sql(product)
        second, waiting = replace(self, runner=with_open_changes(self.runner)), self._waiting()
        published = {key: record.value for record in topic() if (key := _key_text(record)) in suspects}
        states = dict(second._state_documents(product, sorted(suspects)))
        waiting |= self._waiting()  # some began to wait meanwhile
        for key in sorted(suspects):
            state, answer = states.get(key), answers.get(key)
            stale = key not in states or not _equal(published.get(key), state)
            asked = self.mirror is not None and key not in beyond_sql
            refuted = asked and not _equal(*(_comparable(v, schema) for v in (state, answer)))
            root = self._root(product, key)
            waits = stale and root is not None and (product.product.name, root) in waiting
            if stale or refuted:
                yield Difference(
                    product=product.product.name,
                    key=key,
                    root=root,
                    published=published.get(key),
                    state=state,
                    sql=answer,
                    stale=stale and not waits,
                    refuted=refuted,
                    waits=waits and not refuted,
                )

    def _waiting(self) -> set[Root]:
        """The roots that wait at gates."""
        return {*stored_roots(self.plan, self.runner.store, time()).held}

    def _sql_documents(self, product: ProductPlan) -> Iterator[tuple[str, bytes]]:
        """The documents that SQL answers, by message key; none without a mirror."""
        if self.mirror:
            for key, text in self.mirror.documents(product.product):
                yield key, text.encode()

    def _schema(self, product: ProductPlan) -> Schema:
        return document_schema(product.product, self.plan.declared_entities)

    def _state_documents(self, product: ProductPlan, wanted: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """The documents of these message keys, assembled from the state. Keys that are not keys of the root are left out."""
        roots = iter([(key, root) for key in wanted if (root := self._root(product, key)) is not None])
        while chunk := list(islice(roots, CHUNK)):
            bodies = self.runner.run(encoded_document(self.plan, product, root, Counter()) for _, root in chunk)
            yield from zip((key for key, _ in chunk), (body.value for body in bodies), strict=True)

    def _root(self, product: ProductPlan, key: str) -> str | None:
        return root_of(self.plan.entities[product.product.root].entity, key)


def with_open_changes(runner: StepRunner) -> StepRunner:
    """The runner with the open changes that are durable now laid over index answers."""
    return replace(runner, overlays=tuple(stored_overlay(runner.store)))


def _is_outdated(record: Record, product: ProductPlan) -> bool:
    """Whether the message is a document of an older version of the product. A tombstone is the same in every version."""
    if record.value is None:
        return False
    version = dict(record.headers).get(VERSION_HEADER)
    return version is not None and version.isdigit() and int(version) < product.version


def _key_text(record: Record) -> str:
    return (record.key or b"").decode(errors="replace")


def _comparable(document: bytes | None, schema: Schema) -> bytes | None:
    """The document in the form that compares with that of SQL; bytes that are not JSON stay unchanged."""
    try:
        return document and canonical_json.encode(comparable(canonical_json.loads(document), schema))
    except ValueError:
        return document


def _equal(one: bytes | None, other: bytes | None) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return canonical_json.equal(canonical_json.loads(one), canonical_json.loads(other))
    except ValueError:
        return False

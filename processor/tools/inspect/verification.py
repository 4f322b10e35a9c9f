"""Compares published documents with the state. The last message of each root is compared with the document that the steps
assemble now, and, with SQL, with the answer of the product's SQL over the state's rows (`Mirror`).

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

The mirror copies the state's rows into plain tables of Postgres. It reads the rows from the table's own partitions, strongly
consistent, without an index and without the steps. It holds one page of rows at a time, and reads an entity once for all
products, until `forget`. It leaves out rows that Postgres cannot hold, and names them. Does not: read all rows at one moment.

`comparable` reduces a document to the part that SQL can answer: declared members, and timestamps in microseconds. Documents of
equal value become the same text: members in the order of their names, numbers in their shortest form.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from itertools import islice
from random import Random
from time import time
from typing import Any, Final, NamedTuple, Protocol

from processor.engine.plan.plan import EntityPlan, Plan, ProductPlan
from processor.engine.plan.row_image import declared_row
from processor.engine.plan.step import Root, Touch
from processor.engine.protocol.find_roots import find_roots, resume
from processor.engine.protocol.gates import stored_roots
from processor.engine.protocol.ledger import NO_DOCUMENT, hash_of
from processor.engine.protocol.open_changes import stored_overlay
from processor.engine.protocol.ticks import CLOCK, clock_in
from processor.engine.rounds.publish_stage import VERSION_HEADER, encoded_document
from processor.engine.rounds.round import CHUNK
from processor.engine.rounds.step_runner import StepRunner
from processor.language.product.avro import EncodedDocument
from processor.language.product.document import Headers
from processor.language.product.document_type import Schema, document_schema
from processor.language.product.join_fields import array_of
from processor.language.product.product import Product
from processor.tools.inspect.rows import roots_in
from processor.values import canonical_json
from processor.values.entity import ColumnType, Entity
from processor.values.record import Record, Value, sequence_of
from processor.values.values import round_to_microseconds, to_microseconds, to_timestamp
from statestore.items import Row
from statestore.keys import partitions
from statestore.store import Store

_MOST_DIGITS: Final = 131_072
"""Digits of a numeric before its point."""
_MOST_DECIMALS: Final = 16_383
"""Digits of a numeric after its point."""
_NUL: Final = "a NUL character, which Postgres cannot hold"


def why_not_held(entity: Entity, columns: Mapping[str, Value], used: Collection[str] | None) -> str | None:
    """Why PostgreSQL cannot hold a row as it is; None if it can. `used`: the columns that count in addition to the key,
    None for all."""
    for name, column in entity.columns.items():
        if used is not None and name not in used and name not in entity.key:
            continue
        value = columns.get(name)
        if name in entity.key and column.name == "timestamp" and round_to_microseconds(str(value)) != value:
            return f"key column {name} has more digits than the microseconds of Postgres"
        if reason := _why_refused(value, column):
            return f"column {name} has {reason}"
    return None


def _why_refused(value: Value, column: ColumnType) -> str | None:
    if value is None:
        return None
    if column.array:
        element = replace(column, array=False)
        return next((reason for each in value if (reason := _why_refused(each, element))), None)
    if column.name == "string":
        return _NUL if "\0" in value else None
    return _why_json_refused(value) if column.name == "json" else None


def _why_json_refused(value: Value) -> str | None:
    match value:
        case str():
            return _NUL if "\0" in value else None
        case dict():
            return _why_json_refused([*value, *value.values()])
        case list():
            return next((reason for each in value if (reason := _why_json_refused(each))), None)
        case int() | Decimal() if type(value) is not bool:
            return _why_number_refused(Decimal(value))
    return None


def _why_number_refused(number: Decimal) -> str | None:
    if number.adjusted() < _MOST_DIGITS and int(number.as_tuple().exponent) >= -_MOST_DECIMALS:
        return None
    return "a number beyond the range of Postgres"


class SqlTables(Protocol):
    """Tables of entities that SQL runs over. `processor.tools.inspect.oracle.Oracle` implements it."""

    def fill(self, name: str, rows: Iterable[Mapping[str, Value]], indexes: Collection[tuple[str, ...]]) -> None:
        """Replaces the table of an entity by one with these rows and with indexes of these columns."""

    def answer(self, product: Product, clock: int) -> Iterator[tuple[str, str]]:
        """The key and the document, as JSON, of each root. `clock`: of the product, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that the tables lack, because Postgres cannot hold it. `reason`: names the column."""

    entity: str
    row: Row
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A copy of the rows in `tables`. `report`: called with a line of progress before each entity is read. `left_out`: the rows
    that the copy lacks."""

    plan: Plan
    store: Store
    tables: SqlTables
    report: Callable[[str], None]
    left_out: list[LeftOutRow] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def documents(self, product: Product) -> Iterator[tuple[str, str]]:
        """The answer of the product's SQL: the key and the document, as JSON, of each root."""
        for name in sorted({product.root, *(join.entity for _, join in product.walk())} - self._read):
            entity = self.plan.entities[name]
            self.report(f"reading the rows of {name} into Postgres")
            self.tables.fill(name, self._rows(entity), _indexes(entity))
            self._read.add(name)
        return self.tables.answer(product, clock_in(self.store.get([CLOCK]).get(CLOCK)) if product.clock else 0)

    def forget(self) -> None:
        """Forgets which entities were read, so that the next `documents` reads their rows again."""
        self._read.clear()
        self.left_out.clear()

    def _rows(self, entity: EntityPlan) -> Iterator[Mapping[str, Value]]:
        """The rows that Postgres can hold. Columns that no product uses are null."""
        used = None if entity.used is None else {*entity.used, *entity.joined(), *entity.entity.key}
        for pk in partitions(entity.name, entity.entity.shards):
            for item in self.store.items(pk):
                row = declared_row(item, entity)
                if row.columns is None:
                    continue
                if reason := why_not_held(entity.entity, row.columns, used):
                    self.left_out.append(LeftOutRow(entity=entity.name, row=row, reason=reason))
                else:
                    yield row.columns if used is None else {name: row.columns.get(name) for name in used}


def _indexes(entity: EntityPlan) -> set[tuple[str, ...]]:
    """The columns that joins find rows by, except keys and elements of arrays."""
    return {columns for columns in (*entity.slots.values(), *entity.edges.values()) if array_of(columns) is None}


_TIMESTAMP: Final = ColumnType(name="timestamp")
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def comparable(value: Value, schema: Mapping[str, Any]) -> Value:
    """The document, or a part of it, without the undeclared members of whole rows, and with timestamps in the precision of
    PostgreSQL. A float becomes the shortest number that means it: PostgreSQL prints some floats with other digits than Python.
    `schema`: of the part, made by `json_schema.document_schema`. A value that does not fit it is unchanged."""
    match value:
        case dict():
            known = schema.get("properties", {})
            whole = "properties" in schema and "additionalProperties" not in schema
            return {n: comparable(value[n], known.get(n, {})) for n in sorted(value) if n in known or not whole}
        case list():
            return [comparable(element, schema.get("items", {})) for element in value]
        case str() if schema.get("format") == "date-time":
            return _instant(value)
        case int() | Decimal() if type(value) is not bool and schema.get("format") == "double":
            return Decimal(repr(float(value))).normalize(_EXACT) if value else 0
        case int() | Decimal() if type(value) is not bool:
            return Decimal(value).normalize(_EXACT) if value else 0
    return value


def _instant(text: str) -> str:
    try:
        return to_microseconds(to_timestamp(text, _TIMESTAMP, None))
    except ValueError:
        return text


NOTHING: Final = EncodedDocument("", None)
TopicReader = Callable[[], Iterable[Record]]
"""Reads the product's topic from its beginning to its present end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A document that differs. `key`: of the message; `root`: the key as the table encodes it, None if it is not a key of the
    root; values None: no document. `stale`: published and state differ, so publishing again helps; `refuted`: state and SQL
    differ, so publishing again does not help; `waits`: the document is only waiting at its gate. `published_headers`,
    `state_headers`: those of the product. `partitions`: those that show a document of the key, where another one than that of the
    key may do so; `strays`: those of them without the last message."""

    product: str
    key: str
    root: str | None
    published: bytes | None
    state: bytes | None
    sql: bytes | None = None
    stale: bool = True
    refuted: bool = False
    waits: bool = False
    published_headers: Headers = ()
    state_headers: Headers = ()
    partitions: tuple[int, ...] = ()
    strays: tuple[int, ...] = ()


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
    wait at the gate of the product; `passed`: how many messages of the topic are of each other product."""

    compared: int
    differences: tuple[Difference, ...]
    not_compared: tuple[NotCompared, ...] = ()
    outdated: int = 0
    waiting: int = 0
    passed: Mapping[str, int] = field(default_factory=dict)

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
        own = self.plan.sharing(product) and _OwnMessages(self.plan, product, topic)
        topic = own or topic
        schema = self._schema(product)
        answers = {key: hash_of(_comparable(text, schema)) for key, text in self._sql_documents(product)}
        last, outdated = dict[tuple[str, int], _Last](), set[str]()
        for record in topic():
            key = _key_text(record)
            last[key, record.partition] = _Last.of(record, product)
            (outdated.add if _is_outdated(record, product) else outdated.discard)(key)
        messages = _by_key(last)
        published = {key: shown[0].hash for key, shown in messages.items()}
        beyond_sql = self._beyond_sql(product)
        known = sorted(published.keys() | answers.keys() | beyond_sql.keys())
        roots = [_Unpublished(root) for root in self._roots_without(product, known)]
        every: list[str | _Unpublished] = [*known, *roots]
        drawn = every if sample is None or sample >= len(every) else random.sample(every, sample)
        chosen = [one for one in drawn if not isinstance(one, _Unpublished)]
        chosen += self._message_keys(product, [one.root for one in drawn if isinstance(one, _Unpublished)])
        suspects = {key for key in chosen if self._root(product, key) is None}
        suspects |= {key for key in chosen if _places(messages.get(key, [])[1:])}
        for key, state in self._state_documents(product, chosen):
            if published.get(key, NO_DOCUMENT) != hash_of(state.value, state.headers) or (
                self.mirror
                and key not in beyond_sql
                and answers.get(key, NO_DOCUMENT) != hash_of(_comparable(state.value, schema))
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
            passed=dict(own.passed) if own else {},
        )

    def _roots_without(self, product: ProductPlan, known: Iterable[str]) -> Iterator[str]:
        """The encoded keys of the stored roots whose message key is not known, without those that have no row."""
        seen = {self._root(product, key) for key in known}
        return (root for root in roots_in(self.runner.store, self.plan, product) if root not in seen)

    def _message_keys(self, product: ProductPlan, roots: Iterable[str]) -> Iterator[str]:
        """The message keys of the roots that have a document."""
        return (body.key for _, body in self._bodies(product, roots) if body.value is not None)

    def _beyond_sql(self, product: ProductPlan) -> dict[str, str]:
        """The message keys of documents that may depend on a row that Postgres cannot hold, each with the row and the reason."""
        roots: dict[str, str] = {}
        for left_out in self.mirror.left_out if self.mirror else ():
            reason = f"{left_out.entity} {left_out.row.key.sk}: {left_out.reason}"
            for root in self._roots_above(product, left_out):
                roots.setdefault(root, reason)
        return {body.key: roots[root] for root, body in self._bodies(product, roots) if body.key}

    def _roots_above(self, product: ProductPlan, left_out: LeftOutRow) -> set[str]:
        """The encoded keys of the roots whose documents may depend on a row."""
        touch = Touch(left_out.entity, left_out.row, frozenset(), None, "applied")
        (found,) = self.runner.run([find_roots(touch, self.plan)])
        roots, fan_outs = set(found.roots), list(found.fan_outs)
        while fan_outs:
            fan_out = fan_outs.pop()
            if fan_out.product != product.product.name:
                continue
            ((resumed,),) = self.runner.run([resume([fan_out], self.plan)])
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
        records = {(key, one.partition): one for one in topic() if (key := _key_text(one)) in suspects}
        messages = _by_key({at: _Last.of(one, product) for at, one in records.items()})
        states = dict(second._state_documents(product, sorted(suspects)))
        waiting |= self._waiting()  # some began to wait meanwhile
        for key in sorted(suspects):
            body, answer, shown = states.get(key, NOTHING), answers.get(key), messages.get(key, [])
            record, strays = records[key, shown[0].partition] if shown else None, _places(shown[1:])
            published, state = None if record is None else record.value, body.value
            headers = _own_headers(record, product) if record and published is not None else ()
            stale = key not in states or not _equal(published, state) or headers != body.headers
            stale = stale or bool(strays)
            asked = self.mirror is not None and key not in beyond_sql
            refuted = asked and not _equal(*(_comparable(v, schema) for v in (state, answer)))
            root = self._root(product, key)
            waits = stale and root is not None and (product.product.name, root) in waiting
            if stale or refuted:
                yield Difference(
                    product=product.product.name,
                    key=key,
                    root=root,
                    published=published,
                    state=state,
                    published_headers=headers,
                    state_headers=body.headers,
                    partitions=_places(shown) if product.product.partition_by or strays else (),
                    strays=strays,
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

    def _state_documents(self, product: ProductPlan, wanted: Iterable[str]) -> Iterator[tuple[str, EncodedDocument]]:
        """The documents of these message keys, assembled from the state. Keys that are not keys of the root are left out."""
        pairs = [(key, root) for key in wanted if (root := self._root(product, key)) is not None]
        bodies = self._bodies(product, (root for _, root in pairs))
        return ((key, body) for (key, _), (_, body) in zip(pairs, bodies, strict=True))

    def _bodies(self, product: ProductPlan, roots: Iterable[str]) -> Iterator[tuple[str, EncodedDocument]]:
        """The encoded keys of roots with their documents, assembled from the state in chunks."""
        rest = iter(roots)
        while chunk := list(islice(rest, CHUNK)):
            steps = (encoded_document(self.plan, product, root, Counter()) for root in chunk)
            yield from zip(chunk, self.runner.run(steps), strict=True)

    def _root(self, product: ProductPlan, key: str) -> str | None:
        return self.plan.root_of(product, key)


@dataclass(slots=True)
class _OwnMessages:
    """Reads a topic without the messages of the other products that share it. `passed`: how many those are, by product."""

    plan: Plan
    product: ProductPlan
    topic: TopicReader
    passed: Counter[str] = field(default_factory=Counter)

    def __call__(self) -> Iterator[Record]:
        self.passed.clear()
        others = self.plan.sharing(self.product)
        for record in self.topic():
            owner = next((one for one in others if self.plan.root_of(one, _key_text(record)) is not None), None)
            if owner is None:
                yield record
            else:
                self.passed[owner.product.name] += 1


class _Last(NamedTuple):
    """The last message of a key in a partition. `sequence`: 0 for a message that no job wrote."""

    sequence: int
    partition: int
    hash: str

    @classmethod
    def of(cls, record: Record, product: ProductPlan) -> "_Last":
        """What counts of a record."""
        sequence = sequence_of(dict(record.headers)) or 0
        return cls(sequence, record.partition, hash_of(record.value, _own_headers(record, product)))


def _by_key(last: Mapping[tuple[str, int], _Last]) -> dict[str, list[_Last]]:
    """The last messages of each key, one for each partition that has any: that with the highest sequence first, which is the
    document."""
    found: dict[str, list[_Last]] = {}
    for (key, _), one in last.items():
        found.setdefault(key, []).append(one)
    return {key: sorted(some, reverse=True) for key, some in found.items()}


def _places(messages: Iterable[_Last]) -> tuple[int, ...]:
    """The partitions that show a document."""
    return tuple([one.partition for one in messages if one.hash != NO_DOCUMENT])


def with_open_changes(runner: StepRunner) -> StepRunner:
    """The runner with the open changes that are durable now laid over index answers."""
    return replace(runner, overlays=tuple(stored_overlay(runner.store)))


def _is_outdated(record: Record, product: ProductPlan) -> bool:
    """Whether the message is a document of an older version of the product. A tombstone is the same in every version."""
    if record.value is None:
        return False
    version = dict(record.headers).get(VERSION_HEADER)
    return version is not None and version.isdigit() and int(version) < product.version


def _own_headers(record: Record, product: ProductPlan) -> Headers:
    """The headers of a message that the product gives it."""
    found = dict(record.headers)
    return tuple([(name, text) for name, _ in product.product.headers if (text := found.get(name)) is not None])


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

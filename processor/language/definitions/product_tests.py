"""Reads tests of products: YAML files under `tests/` of a definitions directory. Each file is a list of cases.

    - test: a star shows the repository that it points to
      product: user_profile            # optional where there is only one product
      clock: 2026-11-20T08:00:00Z      # of a product with a clock: the moment of the test
      given:                           # rows by entity, stored first
        user: [{id: 1, email: ada@example.org, username: ada}]
      changes:                         # then lines of recorded topics, in order
        - {topic: star, key: {...}, value: {...}}
        - after: 2 s                   # optional, for a product that documents wait for: so much time passes
      expect:                          # whole documents by key; null: no document
        ada@example.org: {email: ada@example.org, starred_repos: []}
      contains:                        # only these members of documents
        ada@example.org: {username: ada}

An author writes a key as for `statestore get`: its one value, or a JSON object. This module runs nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.shape import PAUSE, TEST, as_map, as_text, check_keys, describe_node, read_duration
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode, read_yaml
from processor.language.product.document import message_key, read_root_key
from processor.language.product.product import Definitions, Product, root_entity
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.envelopes.kinds import row_value
from processor.values.record import Record, Value
from processor.values.recorded_topics import read_record
from processor.values.values import to_seconds

_CASE = "write a list of `{test: name, given: ..., expect: ...}`"
_EXPECT = "write documents by their key, null for none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedDocument:
    """An expected document. `key`: the key of its message; `document`: its members, None for no document; `whole`: the published
    document has exactly these members, else at least these."""

    key: str
    document: Value
    whole: bool
    line: int


class ChangesPart(NamedTuple):
    """Records that come together, and the seconds after which the test continues; None: when all documents are out."""

    records: tuple[Record, ...]
    after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test. `given`: records, whose documents are out before the first of the `changes` comes. The timestamp of a record is
    its line in the file. `clock`: the moment at which the changes come, in seconds since 1970; 0 without a clock."""

    name: str
    file: str
    line: int
    product: str
    given: tuple[Record, ...]
    changes: tuple[ChangesPart, ...]
    expected: tuple[ExpectedDocument, ...]
    clock: int = 0


def read_cases(texts: Mapping[str, str], definitions: Definitions) -> tuple[Case, ...]:
    """The cases of the files in the order of the files' names. Raises: DefinitionError with all problems."""
    problems = Problems()
    cases = [case for file in sorted(texts) for case in _read_file(file, texts[file], definitions, problems)]
    problems.raise_if_any()
    return tuple(cases)


def _read_file(file: str, text: str, definitions: Definitions, problems: Problems) -> Iterator[Case]:
    root = read_yaml(file, text, problems)
    if root is None:
        return
    if not isinstance(root, Sequence):
        problems.add(root, f"a file of tests is {describe_node(root)}, not a list", _CASE)
        return
    for node in root.items:
        body = as_map(node, "a test", _CASE, problems)
        case = _Reader(definitions, problems).case(body) if body else None
        if case is not None:
            yield case


class _Reader:
    """Reads one case. `_highest`: the highest offset so far of each (topic, partition) of its records."""

    def __init__(self, definitions: Definitions, problems: Problems) -> None:
        self._definitions = definitions
        self._problems = problems
        self._highest: dict[tuple[str, int], int] = {}

    def case(self, body: Map) -> Case | None:
        check_keys(body, "a test", TEST, self._problems)
        name_node = body.get("test") or Scalar(file=body.file, line=body.line, value=None, text="")
        name = as_text(name_node, "`test`, its name,", _CASE, self._problems)
        product = self._product(body)
        if name is None or product is None:
            return None
        if "expect" not in body.entries and "contains" not in body.entries:
            self._problems.add(body, f"the test `{name}` expects nothing", f"{_EXPECT}, below `expect` or `contains`")
        return Case(
            name=name,
            file=body.file,
            line=body.line,
            product=product.name,
            given=tuple(self._given(body.get("given"))),
            changes=tuple(self._changes(body.get("changes"))),
            expected=(*self._expected(body, "expect", product), *self._expected(body, "contains", product)),
            clock=self._clock(body, product),
        )

    def _clock(self, body: Map, product: Product) -> int:
        """The moment of the test; 0 for a product without a clock."""
        node, cure = body.get("clock"), "write the moment of the test, `clock: 2026-11-20T08:00:00Z`"
        if bool(node) is not bool(product.clock):
            what = "the product has a clock, and the test no `clock`" if product.clock else "the product has no clock"
            self._problems.add(node or body, what, cure if product.clock else "remove `clock`")
        if not node or not product.clock:
            return 0
        text = node.text if isinstance(node, Scalar) else ""
        try:
            return to_seconds(text)
        except ValueError:
            self._problems.add(node, f"`clock` is `{text}`", cure)
            return 0

    def _product(self, body: Map) -> Product | None:
        products = self._definitions.products
        node = body.get("product")
        if node is None:
            if len(products) == 1:
                return next(iter(products.values()))
            self._problems.add(body, "the test names no `product`", f"write one of {', '.join(products) or 'none yet'}")
            return None
        name = as_text(node, "`product`", "write the name of a product", self._problems)
        if name is not None and name not in products:
            self._problems.add(node, f"there is no product `{name}`", suggest(name, products))
        return products.get(name or "")

    def _given(self, node: YamlNode | None) -> Iterator[Record]:
        cure = "write rows by entity: `given: {user: [{id: 1}]}`"
        tables = as_map(node, "`given`", cure, self._problems)
        for name, (key, rows) in tables.entries.items() if tables else ():
            entity = self._definitions.entities.get(name)
            if entity is None:
                self._problems.add(key, f"there is no entity `{name}`", suggest(name, self._definitions.entities))
                continue
            for row in self._items(rows, f"the rows of `{name}`", cure):
                if body := as_map(row, f"a row of `{name}`", cure, self._problems):
                    yield from self._row(entity, body)

    def _row(self, entity: Entity, body: Map) -> Iterator[Record]:
        if missing := [column for column in entity.key if body.get(column) is None]:
            what = f"a row of `{entity.name}` has no `{missing[0]}`, a column of its key"
            self._problems.add(body, what, "add it")
            return
        row = {name: as_json(node) for name, (_, node) in body.entries.items()}
        line = {"topic": entity.topic, "key": {c: row[c] for c in entity.key}, "value": row_value(row, entity)}
        yield from self._record(line, body)

    def _changes(self, node: YamlNode | None) -> Iterator[ChangesPart]:
        cure = "write `{topic: user, key: {...}, value: {...}}`"
        records: list[Record] = []
        for item in self._items(node, "`changes`", cure) if node else ():
            body = as_map(item, "a change", cure, self._problems)
            if body and (pause := body.get("after")):
                check_keys(body, "a pause", PAUSE, self._problems)
                yield ChangesPart(tuple(records), read_duration(pause, "`after`", self._problems))
                records = []
            elif body:
                records += self._record(as_json(body), body)
        if records:
            yield ChangesPart(tuple(records), None)

    def _record(self, line: Value, node: YamlNode) -> Iterator[Record]:
        try:
            record = read_record(line, node.line, self._highest)
        except ValueError as error:
            what, _, cure = str(error).partition(": ")
            self._problems.add(node, f"this is not a line of a recorded topic: {what}", cure)
            return
        entities = self._definitions.entities.values()
        topics = {topic for entity in entities for topic in (entity.topic, entity.transactions) if topic}
        if record.topic not in topics:
            self._problems.add(node, f"no entity has the topic `{record.topic}`", suggest(record.topic, topics))
        yield replace(record, timestamp=node.line)

    def _items(self, node: YamlNode, what: str, cure: str) -> tuple[YamlNode, ...]:
        if isinstance(node, Sequence):
            return node.items
        self._problems.add(node, f"{what} is {describe_node(node)}, not a list", cure)
        return ()

    def _expected(self, body: Map, word: str, product: Product) -> Iterator[ExpectedDocument]:
        root = root_entity(product, self._definitions.entities)
        documents = as_map(body.get(word), f"`{word}`", _EXPECT, self._problems)
        for text, (key, node) in documents.entries.items() if documents else ():
            try:
                parts = read_root_key(root, text)
            except ValueError as error:
                self._problems.add(key, "this is not a key of a document", str(error))
                continue
            of_message = message_key(product, canonical_json.dumps(dict(zip(root.key, parts, strict=True))))
            document = as_json(node)
            if word == "contains" and not isinstance(document, dict):
                self._problems.add(
                    key, f"`contains` of `{text}` is {describe_node(node)}, not a mapping", "use `expect`"
                )
            yield ExpectedDocument(key=of_message, document=document, whole=word == "expect", line=key.line)


def as_json(node: YamlNode) -> Value:
    """The value of a node: text, int, Decimal, bool, null, or lists and mappings of them."""
    match node:
        case Map(entries=entries):
            return {name: as_json(value) for name, (_, value) in entries.items()}
        case Sequence(items=items):
            return [as_json(item) for item in items]
        case Scalar(is_float=True, text=text):
            try:
                return Decimal(text)
            except InvalidOperation:
                return text
        case Scalar(value=value):
            return value

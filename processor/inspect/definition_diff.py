"""Compares the documents of a product by its live definition with those by a new one, over the rows of a state.

    1. draw the roots: all of them, or a uniform sample
    2. assemble each root's document by both definitions, from the same answers of the store where both read one store
    3. group the differences, and count the messages that an `apply` of the new definition sends

Promises: writes nothing. Each counted difference is one of value, between two documents that the steps assembled. Slots and edges
that stored rows do not hold yet are answered by `processor.inspect.unfilled_rows`.
Does not: wait for a job that writes meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from random import Random
from typing import Any, NamedTuple

from processor.inspect.document_changes import ChangeGroup, ChangeGroups, DocumentChange, document_changes
from processor.inspect.join_findings import JoinCounter, JoinFinding
from processor.inspect.unfilled_rows import UnfilledRows, with_unfilled
from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan
from processor.plan.step import Lookup, Step
from processor.plan.tree import merge
from processor.product.avro_datum import avro_datum
from processor.product.document import GONE, Renderer
from processor.progress.ledger import NO_DOCUMENT, group_key, group_partition, read_entry
from processor.records import canonical_json
from processor.records.record import Value
from processor.rounds.publish_part import root_message_key
from processor.rounds.round import CHUNK
from processor.rounds.step_runner import StepRunner
from processor.steps.assemble import assemble_tree, shown_rows
from statestore.attribute_values import item_size
from statestore.items import DELETED
from statestore.metered import READ_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """A plan, and the state that it reads. `unfilled`: rows that slots and edges of the state lack for this plan."""

    plan: Plan
    runner: StepRunner
    unfilled: UnfilledRows = field(default_factory=UnfilledRows)


@dataclass(slots=True, kw_only=True)
class DocumentSizes:
    """The documents of one definition. `total`: their bytes together; `largest`: the bytes of the largest one, whose message has
    the key `key`."""

    documents: int = 0
    total: int = 0
    largest: int = 0
    key: str = ""

    def add(self, key: str, value: bytes) -> None:
        self.documents += 1
        self.total += len(value)
        if len(value) > self.largest:
            self.largest, self.key = len(value), key


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductDiff:
    """The documents of a product by two definitions.

    new: there is no live definition; publishes: `apply` publishes the product, False where only
    an entity changes. roots: the stored root rows; compared: those of them that were compared. differ: documents that differ.
    tombstones: roots whose document an `apply` deletes in the topic; left: keys without a root row that get one more tombstone,
    because the topic is another one. read_units: of the compared documents by the new definition. joins: the findings of its
    joins.
    """

    product: str
    new: bool
    publishes: bool
    roots: int
    compared: int
    differ: int
    groups: tuple[ChangeGroup, ...]
    before: DocumentSizes
    after: DocumentSizes
    tombstones: int
    left: int
    read_units: float
    joins: tuple[JoinFinding, ...]

    @property
    def share(self) -> float:
        """The part of all roots that was compared."""
        return self.compared / self.roots if self.roots else 1.0

    @property
    def messages(self) -> int:
        """The messages that an `apply` sends; of a sample, as many as its share lets one expect."""
        return round((self.after.documents + self.tombstones) / self.share) + self.left if self.publishes else 0


class _Made(NamedTuple):
    """A document. `value`: None where there is none; `error`: why it cannot be published; `units`: of its reads."""

    key: str
    value: bytes | None
    error: str = ""
    units: float = 0.0


class _Maker:
    """Makes the documents of a product of one side."""

    def __init__(self, side: DiffSide, product: ProductPlan, *, counts: bool) -> None:
        entities = {name: planned.entity for name, planned in side.plan.entities.items()}
        self.side, self.product = side, product
        self._tree = merge([product])
        self._to_avro = avro_datum(product.product, entities).write if product.product.format == "avro" else None
        self._renderer = Renderer(product=product.product, entities=entities, tally=Counter())
        self.joins = JoinCounter(product=product, entities=entities) if counts else None

    def document(self, root: str) -> Step[_Made]:
        """The document of a root."""
        plan, name, units = self.side.plan, self.product.product.name, list[float]()
        step = _metered(assemble_tree(plan, self._tree, root), units.append)
        found = yield from with_unfilled(step, self.side.unfilled)
        if found is None:
            return _Made("", None, units=sum(units))
        shape = self._tree.shape[name]
        key = root_message_key(plan, self.product.product.root, found.match)
        try:
            document = self._renderer.document(shown_rows(found, shape))
            value = None if document is GONE else self._encoded(document)
        except Exception as error:  # such a document stops the product of a job, or is a dead letter there
            return _Made(key, None, f"{type(error).__name__}: {error}", sum(units))
        if value is not None and self.joins is not None:
            self.joins.count(shown_rows(found, shape))
        return _Made(key, value, units=sum(units))

    def _encoded(self, document: Value) -> bytes:
        """The document as JSON. Raises ValueError or TypeError for one that the format of the product does not hold."""
        if self._to_avro is not None:
            self._to_avro(document)
        return canonical_json.encode(document)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffReport:
    """The diffs of an apply. `notes`: on the state that they compare; `seed`: of the sample, None without one."""

    products: tuple[ProductDiff, ...]
    notes: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionDiff:
    """Compares products of two sides. `live`: by the definitions of now; `planned`: by the new ones. Both may have one runner.
    `sample`: the most roots of a product to compare, None for all; `progress`: gets a line for each product."""

    live: DiffSide
    planned: DiffSide
    random: Random
    sample: int | None = None
    progress: Callable[[str], None] = lambda _: None

    def product(self, name: str, *, publishes: bool) -> ProductDiff:
        """The diff of a product of the new definitions. `publishes`: whether an `apply` publishes it."""
        new, old = self.planned.plan.products[name], self.live.plan.products.get(name)
        if old is not None and old.retracted:
            old = None
        roots = self._roots(new.product.root)
        drawn = roots if self.sample is None or self.sample >= len(roots) else self.random.sample(roots, self.sample)
        self.progress(f"comparing {len(drawn):,} of {len(roots):,} documents of {name}")
        after, before = (
            _Maker(self.planned, new, counts=True),
            None if old is None else _Maker(self.live, old, counts=False),
        )
        groups, sizes, tombstones, units = ChangeGroups(), (DocumentSizes(), DocumentSizes()), 0, 0.0
        for chunk, ones, others in self._documents(sorted(drawn), before, after):
            for one, other in zip(ones, others, strict=True):
                groups.add(other.key or one.key, _differences(one, other))
                for size, made in zip(sizes, (one, other), strict=True):
                    if made.value is not None:
                        size.add(made.key, made.value)
            units += sum(made.units for made in others)
            without = [root for root, made in zip(chunk, others, strict=True) if made.value is None and not made.error]
            tombstones += self._tombstones(old, new, without)
        assert after.joins is not None
        return ProductDiff(
            product=name,
            new=old is None,
            publishes=publishes,
            roots=len(roots),
            compared=len(drawn),
            differ=groups.differ,
            groups=groups.found(),
            before=sizes[0],
            after=sizes[1],
            tombstones=tombstones,
            left=self._left(old, new, roots),
            read_units=units,
            joins=tuple(after.joins.findings.values()),
        )

    def _documents(
        self, roots: Sequence[str], before: _Maker | None, after: _Maker
    ) -> Iterator[tuple[list[str], list[_Made], list[_Made]]]:
        """Roots with their documents by both definitions, in chunks. One run of one runner asks the store for both at once."""
        rest = iter(roots)
        while chunk := list(islice(rest, CHUNK)):
            steps = [after.document(root) for root in chunk]
            if before is None:
                yield chunk, [_Made("", None)] * len(chunk), self.planned.runner.run(steps)
            elif self.live.runner is self.planned.runner:
                made = self.live.runner.run([*map(before.document, chunk), *steps])
                yield chunk, made[: len(chunk)], made[len(chunk) :]
            else:
                yield chunk, self.live.runner.run(map(before.document, chunk)), self.planned.runner.run(steps)

    def _roots(self, entity: str) -> list[str]:
        """The encoded keys of the root rows of both sides."""
        found: dict[str, None] = {}
        sides = (self.planned,) if self.live.runner is self.planned.runner else (self.live, self.planned)
        for side in (one for one in sides if entity in one.plan.entities):
            for partition in side.plan.entities[entity].partitions():
                found |= dict.fromkeys(key.sk for key in side.runner.store.walk(partition, DELETED))
        return list(found)

    def _tombstones(self, old: ProductPlan | None, new: ProductPlan, roots: Sequence[str]) -> int:
        """How many of these roots, which have no document, get a tombstone: those whose last message is another one."""
        if old is None or not roots:
            return 0
        keys = [group_key(old.ledger, root) for root in roots]
        items = self.live.runner.store.get(keys)
        entries = (read_entry(items.get(key), old.number) for key in keys)
        return sum(not entry.shows(NO_DOCUMENT, new.version, new.product.topic) for entry in entries)

    def _left(self, old: ProductPlan | None, new: ProductPlan, roots: Iterable[str]) -> int:
        """How many keys of the ledger without a root row get a tombstone in another topic."""
        if old is None or old.product.topic == new.product.topic:
            return 0
        known, entries = {*roots}, self.live.runner.store.items(group_partition(old.ledger))
        return sum(item["SK"] not in known and read_entry(item, old.number).mark is not None for item in entries)


def _differences(one: _Made, other: _Made) -> Iterator[DocumentChange]:
    before, after = (None if made.value is None else canonical_json.loads(made.value) for made in (one, other))
    if other.error:
        yield DocumentChange("cannot be published", "", before, other.error)
    else:
        yield from document_changes(before, after)


def _metered(step: Step[Any], spend: Callable[[float], object]) -> Step[Any]:
    """The step. `spend` gets the read units of each request, as `statestore.metered` counts them."""
    try:
        asked = next(step)
        while True:
            answers = yield asked
            for request, answer in zip(asked, answers, strict=True):
                spend(_units(request, answer))
            asked = step.send(answers)
    except StopIteration as end:
        return end.value


def _units(request: object, answer: Any) -> float:
    if not isinstance(request, Lookup):
        return _whole_units(0 if answer is None else item_size(answer))
    if isinstance(request.source, str):
        return 1 + sum(_whole_units(item_size(item)) for item in answer.items)
    return _whole_units(sum(map(item_size, answer.items))) / 2


def _whole_units(bytes: int) -> int:
    return max(1, ceil(bytes / READ_BYTES))

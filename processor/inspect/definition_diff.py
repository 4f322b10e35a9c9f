"""Compares the documents of a product by its live definition with those by a new one, over the rows of a state.

    1. draw the roots: all of them, or a uniform sample
    2. assemble each root's document by both definitions, from the same answers of the store where both read one store
    3. group the differences, and count the messages that an `apply` of the new definition sends

Promises: writes nothing. Each counted difference is one of value, between two documents that the steps assembled. Slots and edges
that stored rows do not hold yet are answered by `processor.inspect.unfilled_rows`.
Does not: wait for a job that writes meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from processor.inspect.document_changes import ChangeGroup, ChangeGroups, DocumentChange, document_changes
from processor.inspect.document_maker import DiffSide, DocumentMaker, MadeDocument
from processor.inspect.join_findings import JoinFinding
from processor.plan.product_plan import ProductPlan
from processor.progress.ledger import NO_DOCUMENT, group_key, group_partition, read_entry
from processor.records import canonical_json
from processor.rounds.round import CHUNK
from statestore.items import DELETED


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

    new: there is no live definition; paused: the job sends its messages once it is resumed; publishes: False where only
    an entity changes. roots: the stored root rows; compared: those of them that were compared. differ: documents that differ.
    tombstones: roots whose document an `apply` deletes in the topic; left: keys without a root row that get one more tombstone,
    because the topic is another one. read_units: of the compared documents by the new definition. joins: the findings of its
    joins.
    """

    product: str
    new: bool
    paused: bool
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
        after = DocumentMaker(self.planned, new, counts=True)
        before = None if old is None else DocumentMaker(self.live, old, counts=False)
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
            paused=new.paused,
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
        self, roots: Sequence[str], before: DocumentMaker | None, after: DocumentMaker
    ) -> Iterator[tuple[list[str], list[MadeDocument], list[MadeDocument]]]:
        """Roots with their documents by both definitions, in chunks. One run of one runner asks the store for both at once."""
        rest = iter(roots)
        while chunk := list(islice(rest, CHUNK)):
            steps = [after.document(root) for root in chunk]
            if before is None:
                yield chunk, [MadeDocument("", None)] * len(chunk), self.planned.runner.run(steps)
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


def _differences(one: MadeDocument, other: MadeDocument) -> Iterator[DocumentChange]:
    before, after = (None if made.value is None else canonical_json.loads(made.value) for made in (one, other))
    if other.error:
        yield DocumentChange("cannot be published", "", before, other.error)
    else:
        yield from document_changes(before, after)

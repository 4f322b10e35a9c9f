"""Looks documents and rows up in the table, by the definitions of the registry.

Promises: a look-up works by a version of the registry that is at most a second old (`processor.serve.plan_view`), and has a store
for itself. It reads the table and the registry, and nothing of a job. Open changes are laid over index answers
(`processor.serve.open_view`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from time import monotonic
from typing import Any, NamedTuple, cast

from processor.gates.wait import Wait
from processor.inspect.explain import explain
from processor.inspect.lineage import lineage
from processor.inspect.rows import absence_text, document_keys, former_topics, page_of, row_object
from processor.plan.plan import EntityPlan, Plan
from processor.plan.product_plan import ProductPlan
from processor.product.document import read_root_key
from processor.product.document_type import document_schema
from processor.progress.ledger import (
    NO_DOCUMENT,
    Mark,
    group_key,
    group_partition,
    hash_of,
    read_entry,
    read_run,
    run_key,
)
from processor.records import canonical_json
from processor.records.entity import Entity
from processor.records.message import MAX_MESSAGE_BYTES
from processor.rounds.publish_stage import encoded_document
from processor.rounds.step_runner import StepRunner
from processor.serve.bounded_reads import BoundedReads
from processor.serve.gate_view import GateView
from processor.serve.open_row import open_change_object, open_changes_of
from processor.serve.open_view import OpenView
from processor.serve.plan_view import PlanView
from processor.serve.problem import LookUpProblem
from processor.serve.state_age import state_age
from processor.serve.store_pool import StorePool
from registry.model import EpochBoundary
from statestore import keys
from statestore.keys import Key
from statestore.store import Item, Store


class FoundDocument(NamedTuple):
    """A document as the state has it now. `value`: as JSON; `digest`: its hash, as the ledger counts it; `sequence`: of the
    last message that the ledger knows for this root, 0 for none; `published`: whether that message shows this document; `wait`:
    why the root waits at the gate of the product, None where it does not; `age`: of the state at most, in seconds
    (`processor.serve.state_age`), None where no job says it. `key`: of its messages."""

    value: bytes
    digest: str
    sequence: int
    published: bool
    wait: Wait | None
    age: int | None
    key: str | bytes = ""

    @property
    def waits(self) -> bool:
        """Whether the root waits at the gate of the product."""
        return self.wait is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReader:
    """Answers look-ups. `boundaries`: of the registry. `most_rows`: that a look-up reads, `most_rows_of`: one of this product;
    `most_bytes`: of a document."""

    stores: StorePool
    view: PlanView
    boundaries: Callable[[Iterable[str]], tuple[EpochBoundary, ...]]
    most_rows: int = 10_000
    most_rows_of: Mapping[str, int] = field(default_factory=dict)
    most_bytes: int = MAX_MESSAGE_BYTES
    _open: OpenView = field(default_factory=OpenView)
    _gates: GateView = field(default_factory=GateView)

    def products(self) -> list[dict[str, Any]]:
        """The products, by name."""
        plan = self.plan()
        return [_product_object(plan, one) for _, one in sorted(plan.products.items())]

    def schema(self, product: str) -> dict[str, Any]:
        """The JSON Schema of the documents of a product."""
        plan = self.plan()
        return document_schema(_product(plan, product).product, plan.declared_entities)

    def plan(self) -> Plan:
        """The plan of the registry as it is now."""
        return self.view.now().plan

    def entity(self, name: str) -> Entity:
        """An entity. Raises LookUpProblem for another name."""
        return _entity(self.plan(), name).entity

    def root(self, product: str) -> Entity:
        """The root entity of a product. Raises LookUpProblem for another name."""
        plan = self.plan()
        return plan.entities[_product(plan, product).product.root].entity

    def document(self, product: str, key: str) -> FoundDocument:
        """The document of a root. Raises LookUpProblem where there is none."""
        looked, plan, jobs = self.view.now()
        chosen = _product(plan, product)
        root = _encoded(plan.entities[chosen.product.root], key)
        seconds = state_age(jobs, {plan.entities[name].entity.topic for name in _entities(chosen)})
        age = None if seconds is None else ceil(seconds + monotonic() - looked)
        at = group_key(chosen.ledger, root)
        with self.stores.lent() as store:
            before = read_entry(store.get([at]).get(at), chosen.number)
            (body,) = self._runner(store, product).run([encoded_document(plan, chosen, root, Counter())])
            if body.value is None:
                raise LookUpProblem(404, f"{product} has no document for {key}", sequence=before.seq)
            if len(body.value) > self.most_bytes:
                raise LookUpProblem(
                    413, f"the document has {len(body.value):,} bytes, and the limit is {self.most_bytes:,}"
                )
            digest = hash_of(body.value)
            shown = digest != NO_DOCUMENT and before.shows(digest, chosen.version, chosen.product.topic)
            published = shown and _acknowledged(store, before.mark)
            wait = None if published else self._gates.wait(plan, store, (product, root))
        return FoundDocument(body.value, digest, before.seq, published, wait, age, body.key)

    def row(self, entity: str, key: str) -> dict[str, Any]:
        """A stored row, as `statestore row --json` shows it. Raises LookUpProblem where the table has none."""
        plan = self.plan()
        chosen = _entity(plan, entity)
        return self._row(plan, chosen, _encoded(chosen, key))

    def row_at(self, entity: str, sk: str) -> dict[str, Any]:
        """The same by the row's encoded key, as a lineage has it."""
        plan = self.plan()
        return self._row(plan, _entity(plan, entity), sk)

    def open_changes(self, entity: str, sk: str) -> list[dict[str, Any]]:
        """The open changes of a row, by its encoded key: those that the job has not settled, or settled some seconds ago."""
        plan = self.plan()
        chosen, topics = _entity(plan, entity), former_topics(self.boundaries(plan.entities))
        with self.stores.lent() as store:
            found = open_changes_of(chosen.key(sk), self._open.overlays(store))
        return [open_change_object(one, chosen, topics) for one in found]

    def keys(self, product: str, after: str, most: int) -> list[str]:
        """The keys of some documents: those that follow the text `after` in the ledger. Reads at most so many items of it."""
        chosen = _product(self.plan(), product)
        begin = group_key(chosen.ledger, after) if after else None
        with self.stores.lent() as store:
            page = page_of(store, [group_partition(chosen.ledger)], begin, most)
        return list(document_keys(page.items, chosen.number))

    def items(self, keys: Collection[Key]) -> list[Item]:
        """The items with these keys, as far as the table has them."""
        with self.stores.lent() as store:
            return list(store.get(keys).values())

    def access_paths(self, product: str) -> dict[str, Any]:
        """The access paths of a product."""
        plan = self.plan()
        return asdict(explain(plan, _product(plan, product)))

    def lineage(self, product: str, key: str) -> dict[str, Any]:
        """Why a document is as it is."""
        plan = self.plan()
        chosen = _product(plan, product)
        root = _encoded(plan.entities[chosen.product.root], key)
        topics = former_topics(self.boundaries(plan.entities))
        with self.stores.lent() as store:
            (found,) = self._runner(store, product).run([lineage(plan, chosen, root, topics)])
        return asdict(found)

    def _row(self, plan: Plan, entity: EntityPlan, sk: str) -> dict[str, Any]:
        at = entity.key(sk)
        with self.stores.lent() as store:
            item = store.get([at]).get(at)
        if item is None:
            raise LookUpProblem(404, absence_text(entity, sk))
        return row_object(item, entity, former_topics(self.boundaries(plan.entities)))

    def _runner(self, store: Store, product: str) -> StepRunner:
        bounded = cast(Store, BoundedReads(store, self.most_rows_of.get(product, self.most_rows)))
        return StepRunner(store=bounded, overlays=self._open.overlays(store))


def _acknowledged(store: Store, mark: Mark | None) -> bool:
    if mark is None:
        return True
    at = run_key(mark.run)
    return read_run(mark.run, store.get([at]).get(at)).acknowledges(mark)


def _entities(chosen: ProductPlan) -> set[str]:
    return {chosen.product.root, *(join.entity for _, join in chosen.product.walk())}


def document_object(found: FoundDocument) -> dict[str, Any]:
    """A found document as JSON values, for an assistant."""
    return {
        "document": canonical_json.loads(found.value),
        "sequence": found.sequence,
        "published": found.published,
        "waits": found.waits,
        "age": found.age,
    }


def _product(plan: Plan, name: str) -> ProductPlan:
    if name not in plan.products:
        raise LookUpProblem(404, f"there is no product `{name}`; there are {', '.join(sorted(plan.products))}")
    return plan.products[name]


def _entity(plan: Plan, name: str) -> EntityPlan:
    if name not in plan.entities:
        raise LookUpProblem(404, f"there is no entity `{name}`; there are {', '.join(sorted(plan.entities))}")
    return plan.entities[name]


def _encoded(entity: EntityPlan, text: str) -> str:
    try:
        return keys.encode(read_root_key(entity.entity, text)) or ""
    except ValueError as error:
        raise LookUpProblem(400, str(error)) from None


def _product_object(plan: Plan, one: ProductPlan) -> dict[str, Any]:
    return {
        "product": one.product.name,
        "version": one.version,
        "topic": one.product.topic,
        "format": one.product.format,
        "root": one.product.root,
        "key": list(plan.entities[one.product.root].entity.key),
        "paused": one.paused,
    }

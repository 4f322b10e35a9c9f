"""Looks documents and rows up in the table, by the definitions of the registry.

Promises: a look-up works by a version of the registry that is at most PLAN_SECONDS old. It reads the table and the registry, and
nothing of a job. Open changes are laid over index answers, as `get` does; the reader reads them, and the roots that wait at
gates, once in OVERLAY_SECONDS. One look-up runs at a time, because a store has one connection.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from threading import Lock
from time import monotonic, time
from typing import Any, Final, NamedTuple, cast

from processor.gates.stored_roots import stored_roots
from processor.inspect.access_paths import explain
from processor.inspect.lineage import lineage
from processor.inspect.row_text import row_object
from processor.inspect.stored_row import absence_text, former_topics
from processor.plan.plan import EntityPlan, Plan
from processor.plan.planning import plan_of
from processor.plan.product_plan import ProductPlan
from processor.plan.touch import Root
from processor.product.document_key import read_root_key
from processor.product.json_schema import document_schema
from processor.progress.ledger import NO_DOCUMENT, Mark, group_key, hash_of, read_entry, read_run, run_key
from processor.progress.open_changes import stored_overlay
from processor.progress.overlay import Overlay
from processor.records import canonical_json
from processor.records.message import MAX_MESSAGE_BYTES
from processor.rounds.publish_stage import encoded_document
from processor.rounds.step_runner import StepRunner
from processor.serve.bounded_reads import BoundedReads
from processor.serve.problem import LookUpProblem
from registry.model import EpochBoundary, Snapshot
from statestore import keys
from statestore.store import Store

PLAN_SECONDS: Final = 1.0
OVERLAY_SECONDS: Final = 1.0
MOST_ROWS: Final = 10_000


class FoundDocument(NamedTuple):
    """A document as the state has it now. `value`: as JSON; `digest`: its hash, as the ledger counts it; `sequence`: of the
    last message that the ledger knows for this root, 0 for none; `published`: whether that message shows this document;
    `waits`: whether the root waits at the gate of the product."""

    value: bytes
    digest: str
    sequence: int
    published: bool
    waits: bool


@dataclass(slots=True, kw_only=True)
class StateReader:
    """Answers look-ups. `snapshot`, `boundaries`: of the registry. `most_rows`: that a look-up reads; `most_bytes`: of a
    document."""

    store: Store
    snapshot: Callable[[], Snapshot]
    boundaries: Callable[[Iterable[str]], tuple[EpochBoundary, ...]]
    plan_of: Callable[[Snapshot], Plan] = plan_of
    most_rows: int = MOST_ROWS
    most_bytes: int = MAX_MESSAGE_BYTES
    _lock: AbstractContextManager[Any] = field(default_factory=Lock)
    _plan: tuple[float, Plan] | None = None
    _overlays: tuple[float, tuple[Overlay, ...]] | None = None
    _waits: tuple[float, frozenset[Root]] | None = None

    def products(self) -> list[dict[str, Any]]:
        """The products, by name."""
        with self._look() as plan:
            return [_product_object(plan, one) for _, one in sorted(plan.products.items())]

    def schema(self, product: str) -> dict[str, Any]:
        """The JSON Schema of the documents of a product."""
        with self._look() as plan:
            return document_schema(_product(plan, product).product, plan.declared_entities)

    def plan(self) -> Plan:
        """The plan of the registry as it is now."""
        with self._look() as plan:
            return plan

    def document(self, product: str, key: str) -> FoundDocument:
        """The document of a root. Raises LookUpProblem where there is none."""
        with self._look() as plan:
            chosen = _product(plan, product)
            root = _encoded(plan.entities[chosen.product.root], key)
            at = group_key(chosen.ledger, root)
            before = read_entry(self.store.get([at]).get(at), chosen.number)
            (body,) = self._runner().run([encoded_document(plan, chosen, root, Counter())])
            if body.value is None:
                raise LookUpProblem(404, f"{product} has no document for {key}", sequence=before.seq)
            if len(body.value) > self.most_bytes:
                raise LookUpProblem(
                    413, f"the document has {len(body.value):,} bytes, and the limit is {self.most_bytes:,}"
                )
            digest = hash_of(body.value)
            shown = digest != NO_DOCUMENT and before.shows(digest, chosen.version, chosen.product.topic)
            shown = shown and self._acknowledged(before.mark)
            waits = not shown and (product, root) in self._waiting(plan)
            return FoundDocument(body.value, digest, before.seq, shown, waits)

    def row(self, entity: str, key: str) -> dict[str, Any]:
        """A stored row, as `statestore row --json` shows it. Raises LookUpProblem where the table has none."""
        with self._look() as plan:
            if entity not in plan.entities:
                raise LookUpProblem(404, f"there is no entity `{entity}`; there are {', '.join(sorted(plan.entities))}")
            chosen = plan.entities[entity]
            at = chosen.key(_encoded(chosen, key))
            item = self.store.get([at]).get(at)
            if item is None:
                raise LookUpProblem(404, absence_text(chosen, at.sk))
            return row_object(item, chosen, former_topics(self.boundaries(plan.entities)))

    def access_paths(self, product: str) -> dict[str, Any]:
        """The access paths of a product."""
        with self._look() as plan:
            return asdict(explain(plan, _product(plan, product)))

    def lineage(self, product: str, key: str) -> dict[str, Any]:
        """Why a document is as it is."""
        with self._look() as plan:
            chosen = _product(plan, product)
            root = _encoded(plan.entities[chosen.product.root], key)
            topics = former_topics(self.boundaries(plan.entities))
            (found,) = self._runner().run([lineage(plan, chosen, root, topics)])
            return asdict(found)

    @contextmanager
    def _look(self) -> Iterator[Plan]:
        """The plan for one look-up, alone in this process."""
        with self._lock:
            now = monotonic()
            if self._plan is None or now - self._plan[0] >= PLAN_SECONDS:
                snapshot = self.snapshot()
                known = self._plan[1] if self._plan else None
                same = known is not None and known.version == snapshot.version
                self._plan = (now, known if known is not None and same else self.plan_of(snapshot))
            yield self._plan[1]

    def _runner(self) -> StepRunner:
        now = monotonic()
        if self._overlays is None or now - self._overlays[0] >= OVERLAY_SECONDS:
            self._overlays = (now, tuple(stored_overlay(self.store)))
        store = cast(Store, BoundedReads(self.store, self.most_rows))
        return StepRunner(store=store, overlays=self._overlays[1])

    def _waiting(self, plan: Plan) -> frozenset[Root]:
        """The roots that wait at gates."""
        now = monotonic()
        if self._waits is None or now - self._waits[0] >= OVERLAY_SECONDS:
            self._waits = (now, frozenset(stored_roots(plan, self.store, time()).held))
        return self._waits[1]

    def _acknowledged(self, mark: Mark | None) -> bool:
        if mark is None:
            return True
        at = run_key(mark.run)
        return read_run(mark.run, self.store.get([at]).get(at)).acknowledges(mark)


def document_object(found: FoundDocument) -> dict[str, Any]:
    """A found document as JSON values, for an assistant."""
    return {
        "document": canonical_json.loads(found.value),
        "sequence": found.sequence,
        "published": found.published,
        "waits": found.waits,
    }


def _product(plan: Plan, name: str) -> ProductPlan:
    if name not in plan.products:
        raise LookUpProblem(404, f"there is no product `{name}`; there are {', '.join(sorted(plan.products))}")
    return plan.products[name]


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

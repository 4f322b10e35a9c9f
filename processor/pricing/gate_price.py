"""The price of holding: the write units of the items by which a product with a gate keeps its roots that wait.

The items are those of one batch, written and deleted, with the note of their release where the product has `every`. Each event is
on another root, whose key has 16 characters, and in a transaction of its own. Left out: changes of one root that wait together
make one document, so `every` and `quiet` save the writes and reads of the others; a fan-out writes an item for each of its pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from processor.gates.held_portion import Held, SeenPlace, SeenRecords, make_portions
from processor.gates.ranges import ranges_of
from processor.gates.release_notes import ReleaseNotes
from processor.gates.seen_transactions import tables_of, topics_of
from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan
from processor.pricing.price import BATCH
from processor.product.product import OPEN
from statestore.metered import MeteredStore
from statestore.store import Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePrice:
    """The write units of holding. `alone`: of an event that is alone in its batch; `in_batch`: of one of `BATCH` events."""

    product: str
    alone: float
    in_batch: float


def price_gates(plan: Plan) -> Iterator[GatePrice]:
    """The price of holding of each product with a gate."""
    for name, planned in plan.products.items():
        if planned.gate != OPEN:
            yield GatePrice(product=name, alone=_units(planned, plan, 1), in_batch=_units(planned, plan, BATCH))


def _units(planned: ProductPlan, plan: Plan, events: int) -> float:
    """The write units of an event in a batch of so many."""
    name = planned.product.name
    roots = [(name, sha256(b"%d" % n).hexdigest()[:16]) for n in range(events)]
    seen = {
        (topic, f"{10**6 + n}"): SeenRecords(n, n, {(table, 0): SeenPlace(n, n, ranges_of([1]))})
        for topic in sorted(topics_of(planned, plan))[:1]
        for table in sorted(tables_of(plan)[topic])[:1]
        for n in range(events)
    }
    held = Held(roots={root: float(n) for n, root in enumerate(roots)}, seen=seen)
    writes = [portion.write() for portion in make_portions(held, 1, 1, 0.0)]
    if planned.gate.every:
        writes.append(ReleaseNotes(run=1).begin(roots, 1, 0.0, 0.0))
    store = MeteredStore()
    for write in writes:
        store.write(write)
        store.delete(Delete(key=write.key))
    return round(store.written / events, 4)

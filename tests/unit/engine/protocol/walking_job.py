"""A job whose rounds only walk: over two entities and one product, in a store of its own."""

from dataclasses import replace
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.walks import WalkedPage, WalkName, Walks
from processor.language.definitions.load import load
from statestore.memory import MemoryStore
from statestore.store import Delete, Refused, Write

TEXTS = {
    "entities.yaml": "star: {key: [id], columns: {id: int, who: string, note: string}}\n"
    "user: {key: [id], columns: {id: int, name: string}}",
    "p.yaml": "product: p\nroot: user\nfields: [id]\nembed: {stars: {many: star, on: {who: name}, value: id}}",
}
PLAN = plan_alone(load(TEXTS), 20)
FILL_STAR: WalkName = ("fill", "star")
FILL_USER: WalkName = ("fill", "user")
PUBLISH: WalkName = ("publish", "p")


def with_entity(plan: Plan, name: str, **changes: Any) -> Plan:
    return replace(plan, entities={**plan.entities, name: replace(plan.entities[name], **changes)})


def with_product(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, products={"p": replace(plan.products["p"], **changes)})


class WalkingJob:
    """The walks of a run over a store of their own. `filled`: whether the table has rows. `probes`: whether an index may be
    late."""

    def __init__(
        self, run: int = 1, store: MemoryStore | None = None, *, filled: bool = True, probes: bool = True
    ) -> None:
        self.store = store or MemoryStore()
        self.filled = filled
        self.walks = Walks(run=run, wait=5.0, probes=probes)
        self.walks.load(self.store.partition("WALKS"))

    def adopt(self, plan: Plan = PLAN, now: float = 0.0) -> list[Write | Delete]:
        self.plan = plan
        requests = self.walks.adopt(plan, now, now, lambda _: not self.filled)
        self.keep(requests)
        return requests

    def keep(self, requests: Any) -> None:
        for request in requests:
            done = self.store.delete(request) if isinstance(request, Delete) else self.store.write(request)
            assert not isinstance(done, Refused)

    def round(self, now: float = 0.0, after: str | None = None, unseen: Any = ()) -> list[WalkName]:
        """A round over the next pages, all of which end in the same way; the walks that it continued."""
        pages = self.walks.next()
        walked = [WalkedPage(page, after, rows=1, unseen=unseen if page.probes else ()) for page in pages]
        self.keep(self.walks.advance(walked, self.plan, now))
        return [page.walk for page in pages]

    def finish(self, now: float = 0.0) -> None:
        while self.walks.next() or self.walks.shown_at:
            self.round(now)
            self.keep(self.walks.end_fills(self.plan, now + 5))

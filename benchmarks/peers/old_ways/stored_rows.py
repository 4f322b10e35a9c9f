"""Statestore's own way over the memory store: the steps as `statestore try` runs them, settling included."""

from benchmarks.peers.old_ways.way import ReadCountingStore, WayCounts
from processor.engine.plan.plan import Plan
from processor.engine.plan.root_key import root_of
from processor.engine.rounds.clock import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values import canonical_json
from processor.values.record import Record, Value


class StoredRows:
    """A trial over an empty store."""

    def __init__(self, plan: Plan) -> None:
        settings, clock = Settings(), VirtualClock()
        self._store = ReadCountingStore(settings.slots, clock=clock.now)
        self._trial = Trial(plan=plan, settings=settings, clock=clock, other_store=self._store)

    def process(self, records: list[Record]) -> None:
        self._trial.batch(records)
        self._trial.background_work()

    def finish(self) -> None:
        """Settles the changes that are open."""
        self._trial.finish()

    def counts(self) -> WayCounts:
        return self._store.counts(len(self._trial.published.messages))

    def documents(self) -> dict[str, dict[str, Value]]:
        plan, last = self._trial.plan, dict[str, dict[str, Value]]()
        topics = {product.product.topic: product.product for product in plan.products.values()}
        for message in self._trial.published.messages:
            product = topics[message.topic]
            topic = last.setdefault(product.name, {})
            root = root_of(plan.entities[product.root].entity, (message.key or b"").decode()) or ""
            topic.pop(root, None)
            if message.value is not None:
                topic[root] = canonical_json.loads(message.value)
        return last

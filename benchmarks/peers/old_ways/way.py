"""A way to maintain documents, and the parts that the older ways share: the changes of a batch, the products that a change
concerns, and the topic of each product with its last documents.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from hashlib import sha256
from typing import Protocol

from processor.engine.plan.plan import Plan, root_of
from processor.engine.protocol.decode import decode
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values import canonical_json
from processor.values.record import Change, Record, Value
from statestore import keys
from statestore.keys import Key
from statestore.memory import MeteredStore
from statestore.store import Item, Page, Query, Write

RowKey = tuple[str, str]
"""The entity of a row, and its encoded primary key."""
RowColumns = Mapping[str, Value]
Place = tuple[str, int | None]
"""A product, and the join through which it shows a row; None for the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayCounts:
    """What a way has used so far. `requests`: to the store, or statements; `written`, `read`: request units of DynamoDB; `rows`:
    rows or items that the store read; `server_cpu`: CPU seconds of the store's own processes."""

    requests: int
    rows: int
    documents: int
    written: int = 0
    read: Decimal = Decimal(0)
    server_cpu: float = 0.0

    def since(self, earlier: "WayCounts") -> "WayCounts":
        """The counts without those of an earlier moment."""
        return WayCounts(**{f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)})


class Way(Protocol):
    """A design that keeps the documents of a plan's products up to date."""

    def process(self, records: list[Record]) -> None:
        """Stores the changes of a batch, and sends the documents that differ from the last ones."""

    def finish(self) -> None:
        """Ends the work that remains after the last batch."""

    def counts(self) -> WayCounts:
        """What the way has used so far."""

    def documents(self) -> dict[str, dict[str, Value]]:
        """The last documents: product -> encoded root key -> document."""


@dataclass(slots=True)
class DocumentTopics:
    """The topics of the products. `last`: product -> root -> text of the last document; `sent`: how many messages."""

    last: dict[str, dict[str, bytes]] = field(default_factory=dict)
    sent: int = 0

    def send(self, product: str, root: str, text: bytes | None) -> None:
        """Sends a document, or the deletion of one."""
        self.sent += 1
        topic = self.last.setdefault(product, {})
        if text is None:
            topic.pop(root, None)
        else:
            topic[root] = text

    def documents(self) -> dict[str, dict[str, Value]]:
        """The last documents, as values."""
        return {
            product: {root: canonical_json.loads(text) for root, text in topic.items()}
            for product, topic in self.last.items()
        }


BATCH_WRITES = 25
"""Conditional writes that one BatchExecuteStatement of DynamoDB takes."""


class ReadCountingStore(MeteredStore):
    """A metered store that also counts the items that it read, in `rows`."""

    rows = 0

    def write_batch(self, writes: Sequence[Write]) -> None:
        """Does writes in the requests of BatchExecuteStatement, which statestore itself does not send."""
        for write in writes:
            self.write(write)
        self.requests["UpdateItem"] -= len(writes)
        self.requests["BatchExecuteStatement"] += -(-len(writes) // BATCH_WRITES)

    def get(self, keys: Iterable[Key]) -> dict[Key, Item]:
        found = super().get(list(keys))
        self.rows += len(found)
        return found

    def get_weak(self, keys: Iterable[Key]) -> dict[Key, Item]:
        found = super().get_weak(list(keys))
        self.rows += len(found)
        return found

    def query(self, query: Query) -> list[Item]:
        found = super().query(query)
        self.rows += len(found)
        return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        found = super().page(source, after, limit)
        self.rows += len(found.items)
        return found

    def partition(self, pk: str) -> list[Item]:
        found = super().partition(pk)
        self.rows += len(found)
        return found

    def counts(self, documents: int) -> WayCounts:
        """What the store has charged so far, with this many documents."""
        requests = self.requests.total()
        return WayCounts(
            requests=requests, rows=self.rows, documents=documents, written=self.written, read=self.read_units
        )


def last_changes(records: Iterable[Record], plan: Plan) -> dict[RowKey, Change]:
    """The last change of each row in a batch."""
    changes: dict[RowKey, Change] = {}
    entities = {plan.entities[name].entity.topic: plan.entities[name].entity for name in plan.entities}
    for record in records:
        match decode(record, entities.get(record.topic)):
            case Change() as change:
                changes[change.entity, keys.encode(change.key) or ""] = change
    return changes


def places(plan: Plan, entity: str, old: RowColumns | None, new: RowColumns | None) -> Iterator[Place]:
    """Where products show a row, if they read a column that its change alters. None: there is no row."""
    changed = None if old is None or new is None else {name for name in new if new[name] != old[name]}
    for product, index in plan.occurrences.get(entity, ()):
        used = plan.products[product].used if index is None else plan.products[product].nodes[index].used
        if changed is None or (changed if used is None else changed & used):
            yield product, index


def digest(text: bytes) -> str:
    """The fingerprint of the last document, which a way compares."""
    return sha256(text).hexdigest()[:32]


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

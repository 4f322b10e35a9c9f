"""Makes a table forget what its job remembers: of runs, open changes, walks, and published documents.

A table that was restored to an earlier moment, or whose registry is lost, keeps its rows and edges. Its progress is wrong: the
topics of the products have later messages than its ledger, and its walks follow earlier layouts. Truncates stay: no row says
that the source emptied its table. The forms of decimals stay too: the rows were read by them. So the ledger begins again with the
documents that the topics show, each of them invalid. The next run brings each row to the layouts of the registry, asks the
indexes for it, and publishes every document, or its tombstone, with a higher sequence.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.plan.product_plan import ProductPlan
from processor.engine.plan.root_key import root_of
from processor.engine.protocol.identity import IDENTITY, SEQUENCES, TRACES, ledgers_in
from processor.engine.protocol.ledger import INVALIDATED, LedgerEntry, Mark, group_key, reserve
from processor.engine.protocol.published_topics import TOPICS
from processor.engine.protocol.walk import PARTITION as WALKS
from processor.engine.protocol.walk import read_walk, write_walk
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.values.record import Message, Record, sequence_of
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Delete, Item, Store, Write

CHUNK = 1_000
Messages = Callable[[str], Iterable[Message | Record]]
"""The messages of a topic; none if there is no such topic."""
NOBODY = Mark(0, 0, 0, 0)


def messages_in(settings: Settings) -> Messages:
    """The messages of the topics of a broker."""
    address, kafka = settings.bootstrap_servers, dict(settings.kafka)
    return lambda topic: read_topic(address, kafka, topic) if Admin(address, kafka).topics([topic]) else ()


def forget_progress(plan: Plan, store: Store, messages: Messages) -> None:
    """Deletes the progress, and last the identity, so that a call that broke off can be repeated. The ends of replays stay: a
    dropped dead letter stays dropped. Holds the message keys of a product in memory. `messages`: of the products' topics."""
    ledgers = sorted(ledgers_in(store.partition(SEQUENCES)))
    own = (*TRACES, SEQUENCES, TOPICS)
    for item in store.partition(WALKS):
        name, walk = read_walk(item)
        forgotten = write_walk(name, walk, 0)._replace(when=None)  # the next run has any number
        store.write(forgotten) if name[0] == "truncate" else store.delete(Delete(key=forgotten.key))
    for pk in (*ledgers, *own):
        _delete(store, pk)
    for product in plan.products.values():
        shown = _shown(plan, product, messages(product.product.topic))
        while chunk := list(islice(shown, CHUNK)):
            items = store.get([group_key(product.ledger, one.root) for one in chunk])
            store.write_all([_invalid(product, one, items) for one in chunk])
    _delete(store, IDENTITY.pk)


def _delete(store: Store, pk: str) -> None:
    """Deletes all items of a partition."""
    items = (Delete(key=key_of_item(item)) for item in store.items(pk))
    while chunk := list(islice(items, CHUNK)):
        store.write_all(chunk)


class ShownRoot(NamedTuple):
    """A root whose document a topic shows: its encoded key, and the key and the sequence of the message."""

    root: str
    key: str
    sequence: int


def _invalid(product: ProductPlan, shown: ShownRoot, items: Mapping[Key, Item]) -> Write:
    """An invalid entry for the document, in the ledger item that other products may have made already."""
    at = group_key(product.ledger, shown.root)
    entry = LedgerEntry(shown.sequence, INVALIDATED, NOBODY)
    return reserve(at, items.get(at), {product.number: entry}, shown.key)


def _shown(plan: Plan, product: ProductPlan, messages: Iterable[Message | Record]) -> Iterator[ShownRoot]:
    """The roots whose documents the messages show."""
    shown: dict[str, int] = {}
    for message in messages:
        if (sequence := sequence_of(dict(message.headers))) is None:
            continue
        key = (message.key or b"").decode(errors="replace")
        shown.pop(key, None)
        if message.value is not None:
            shown[key] = sequence
    for key, number in shown.items():
        root = root_of(plan.entities[product.product.root].entity, key)
        if root is not None:
            yield ShownRoot(root, key, number)

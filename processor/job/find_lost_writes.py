"""Looks whether the table or the registry went back to an earlier moment, before a run trusts them.

It asks first what others know of the table, then the table. So a run that still goes on is no false alarm.
"""

from collections.abc import Iterator

from processor.errors import ForeignPart
from processor.kafka.reader import read_last
from processor.plan.plan import Plan
from processor.plan.root_key import root_of
from processor.progress.erasures import erasure_key, read_erasure
from processor.progress.identity import SEQUENCES, read_sequences
from processor.progress.ledger import group_key, group_partition, read_entry, read_run, run_key
from processor.progress.lost_writes import RUNS, ShownMessage, later_run, lost_message, lost_round
from processor.settings.settings import Settings
from registry.repository import Registry
from statestore.errors import NoTable
from statestore.item_attributes import key_of_item
from statestore.store import Store


def find_lost_writes(settings: Settings, plan: Plan, registry: Registry, store: Store) -> str:
    """What the table lacks; empty where nothing proves that. Raises ForeignPart where the registry is older than the table."""
    if not registry.binding().table:
        return ""
    try:
        _check_registry(settings, registry, store)
        mark = registry.runs.mark()
        if mark.run and (lost := lost_round(mark, read_run(mark.run, store.get([key := run_key(mark.run)]).get(key)))):
            return lost
        return _lost_message(settings, plan, store)
    except NoTable:  # the identity says more of that
        return ""


def _check_registry(settings: Settings, registry: Registry, store: Store) -> None:
    seen = store.page(RUNS, run_key(registry.runs.mark().generation), 1).items
    for key in map(key_of_item, seen):
        if why := later_run(key, registry.runs.mark().generation):  # again: a run may have begun meanwhile
            raise ForeignPart(
                f"the registry {settings.registry_schema} went back to an earlier moment: {why}. A standby without its last "
                "writes took over, or a backup was restored. Restore a newer backup, or stop every job and make a new registry "
                "for the table: `statestore rebuild-registry --registry-is-lost` with another --registry-schema"
            )


def _lost_message(settings: Settings, plan: Plan, store: Store) -> str:
    sequences = read_sequences(store.partition(SEQUENCES))
    ledgers = {name: product.ledger for name, product in plan.products.items()}
    known = {n: sequences[n, pk] for n, ledger in ledgers.items() if (n, pk := group_partition(ledger)) in sequences}
    shown = [one for one in _shown(settings, plan) if one.product in known]
    items = {one: group_key(ledgers[one.product], one.root) for one in shown}
    notes = {one: erasure_key(ledgers[one.product].root, one.root) for one in shown}
    found = store.get({*items.values(), *notes.values()}) if shown else {}
    for one in shown:
        number = ledgers[one.product].number
        erased = read_erasure(item).sequences.get(number, 0) if (item := found.get(notes[one])) else 0
        if lost := lost_message(one, read_entry(found.get(items[one]), number, known[one.product]), erased):
            return lost
    return ""


def _shown(settings: Settings, plan: Plan) -> Iterator[ShownMessage]:
    """The last message of each partition of the topics of the plan's products."""
    products = {product.product.topic: name for name, product in plan.products.items()}
    for message in read_last(settings.bootstrap_servers, dict(settings.kafka), products):
        name, sequence = products[message.topic], dict(message.headers).get("statestore.sequence") or b""
        root = plan.entities[plan.products[name].product.root].entity
        sk = root_of(root, (message.key or b"").decode(errors="replace"))
        if sk is not None and sequence.isdigit():
            at = f"topic {message.topic}, partition {message.partition}, offset {message.offset}"
            yield ShownMessage(name, sk, int(sequence), at)

"""Looks whether the table or the registry went back to an earlier moment, before a run trusts them.

It asks first what others know of the table, then the table. So a run that still goes on is no false alarm.
"""

from collections.abc import Iterator

from processor.engine.plan.plan import Plan
from processor.engine.plan.root_key import root_of
from processor.engine.protocol.erasures import erasure_key, read_erasure
from processor.engine.protocol.identity import SEQUENCES, read_sequences
from processor.engine.protocol.ledger import group_key, group_partition, read_entry, read_run, run_key
from processor.engine.protocol.lost_writes import RUNS, ShownMessage, later_run, lost_message, lost_round
from processor.environment.settings.settings import Settings
from processor.errors import ForeignPart
from processor.job.kafka.reader import read_last
from processor.values.record import Record, read_sequence, sequence_of
from registry.repository import Registry
from statestore.errors import NoTable
from statestore.items import key_of_item
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
    topics = {name: product.product.topic for name, product in plan.products.items()}
    known = {
        name: sequences[at]
        for name, ledger in ledgers.items()
        if (at := (name, group_partition(ledger), topics[name])) in sequences
    }
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
    """The last message of each partition of the topics of the plan's products. A message that the product's job cannot have
    written is no evidence."""
    products = {product.product.topic: name for name, product in plan.products.items()}

    def shown(message: Record) -> ShownMessage | None:
        product, headers = plan.products[products[message.topic]], dict(message.headers)
        sequence, key = sequence_of(headers), (message.key or b"").decode(errors="replace")
        name, root = product.product.name, root_of(plan.entities[product.product.root].entity, key)
        versions = (("product_version", product.version), ("registry_version", plan.version))
        if sequence is None or root is None or headers["statestore.product"] != name.encode():
            return None
        if any(read_sequence(headers[f"statestore.{of}"]) not in range(1, most + 1) for of, most in versions):
            return None
        at = f"topic {message.topic}, partition {message.partition}, offset {message.offset}"
        return ShownMessage(name, root, sequence, at)

    for message in read_last(settings.bootstrap_servers, dict(settings.kafka), products, lambda one: bool(shown(one))):
        if (one := shown(message)) is not None:
            yield one

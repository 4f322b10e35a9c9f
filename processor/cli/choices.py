"""What a verb works with, as its flags name it: the plan, the registry's table, an entity, a row, a document and its wait at the
gate, the arrival of a record, dead letters by position, prices and samples."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import islice
from random import randrange
from time import time
from typing import NamedTuple

from processor.cli.options import load_definitions, load_settings, reachable_settings
from processor.cli.verb import flag
from processor.engine.plan.plan import EntityPlan, Plan, ProductPlan
from processor.engine.plan.planning import plan_alone, plan_of, product_of
from processor.engine.protocol.epochs import read_epochs
from processor.engine.protocol.gates import Wait, stored_roots, wait_of
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.ledger import group_key, hash_of, read_entry
from processor.engine.rounds.events import no_report
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.resolve import open_registry, resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.kafka.schemas import open_schemas
from processor.language.definitions.problems import suggest
from processor.language.product.avro import EncodedDocument
from processor.language.product.document import read_root_key
from processor.tools.inspect.prices import DEFAULT, Prices, read_prices
from processor.tools.inspect.rows import Origin
from processor.tools.inspect.verification import with_open_changes
from processor.values.entity import Entity
from processor.values.record import Value
from registry.model import EpochBoundary, Snapshot
from statestore import keys
from statestore.store import Store

KEY_TEXT = 'JSON such as {"id": 7}, or the value of a single column'
"""How people write a key, for the help of verbs."""
MOST_READS = 20
"""Of a transaction topic: each takes a fifth of a second at most, and gives some thousand ends."""
MOST_ASKED = 20
"""Records that a verb asks Kafka for: each is a request of its own."""
DOCUMENT_KEY = flag("key", f"the root's key: {KEY_TEXT}", "KEY")
TIME = flag("--time", f"ask Kafka when the records of the first {MOST_ASKED} rows came")
PRICES = (
    flag("--prices", f"prices of another region than {DEFAULT.region} (TOML)", "FILE"),
    flag("--no-price", "no prices: those of hundreds of products take long"),
)


def chosen_plan(options: argparse.Namespace) -> Plan:
    """The plan of `--definitions`, with the slots that a first `apply` would give; without the flag, the registry's plan."""
    if options.definitions:
        return plan_alone(load_definitions(options), load_settings(options).slots)
    with reachable_settings(options) as settings:
        return stored_plan(settings)


def chosen_prices(options: argparse.Namespace) -> Prices:
    """The prices of `PRICES`."""
    return read_prices(options.prices) if options.prices else DEFAULT


def chosen_seed(options: argparse.Namespace) -> int:
    """The seed of `--seed`, or a new one."""
    return randrange(2**32) if options.seed is None else int(options.seed)


def empty_registry(settings: Settings) -> Snapshot:
    """The snapshot of a registry before the first apply."""
    return Snapshot(version=0, slots=settings.slots, entities=(), products=(), assignments=(), joins=())


def stored_plan(settings: Settings) -> Plan:
    """The plan of the definitions that the registry holds."""
    with open_registry(settings) as registry:
        return plan_of(registry.snapshot())


def stored_boundaries(settings: Settings, plan: Plan) -> tuple[EpochBoundary, ...]:
    """The boundaries of all topics that the entities of the plan ever read."""
    with open_registry(settings) as registry:
        return registry.epochs([], list(plan.entities))


@contextmanager
def stored_state(settings: Settings) -> Iterator[tuple[Plan, Store]]:
    """The plan of the registry, and the store of its table inside the block. Raises OwnedByAnother when the table is not that of
    the registry."""
    from processor.job.run.binding import readable_store

    with ExitStack() as stack:
        with open_registry(settings) as registry:
            plan = plan_of(registry.snapshot())
            store = stack.enter_context(readable_store(settings, registry))
        yield plan, store


def chosen_entity(plan: Plan, name: str) -> EntityPlan:
    """The entity with this name. Raises StatestoreError, with the nearest name, if there is none."""
    if name not in plan.entities:
        raise StatestoreError(f"there is no entity `{name}`; {suggest(name, plan.entities)}")
    return plan.entities[name]


def typed_key(entity: Entity, text: str) -> tuple[Value, ...]:
    """The values of the primary key that the text names. Raises StatestoreError for a text that is no key."""
    try:
        return read_root_key(entity, text)
    except ValueError as error:
        raise StatestoreError(str(error)) from None


class RequestedDocument(NamedTuple):
    """The document that the user asks for: plan, product, and the root's encoded key. `runner`: lays the open changes over
    index answers, as a job does."""

    plan: Plan
    product: ProductPlan
    root: str
    runner: StepRunner


@contextmanager
def requested_document(options: argparse.Namespace, settings: Settings) -> Iterator[RequestedDocument]:
    """The document that PRODUCT and KEY name, inside the block. Raises StatestoreError if there is no such product, or KEY is not
    a key."""
    with stored_state(settings) as (plan, store):
        product = product_of(plan, options.product)
        root = keys.encode(typed_key(plan.root_entity(product), options.key)) or ""
        yield RequestedDocument(plan, product, root, with_open_changes(StepRunner(store=store)))


def chosen_wait(
    requested: RequestedDocument, document: EncodedDocument, settings: Settings | None = None
) -> Wait | None:
    """The wait of the document; None where it does not wait, or its last message shows it as it is now. `settings`: with the
    broker that has the ends of transactions; without it no end is known."""
    plan, product, sk, runner = requested
    held, root = stored_roots(plan, runner.store, time()), (product.product.name, sk)
    at = group_key(product.ledger, sk)
    entry = read_entry(runner.store.get([at]).get(at), product.number)
    if entry.shows(hash_of(document.value, document.headers), product.version, product.product.topic):
        return None  # a portion may name the root for a while after its release
    if settings and settings.bootstrap_servers and root in held.held and held.blocker(root):
        _learn_ends(held, settings)
    return wait_of(held, root)


def _learn_ends(held: HeldRoots, settings: Settings) -> None:
    """Takes the ends that the transaction topics have now."""
    from processor.job.run.feed import transaction_feed

    feed = transaction_feed(settings, open_schemas(resolve_schema_registry(settings.schema_registry)), no_report)
    try:
        for topic, since in held.transactions.missing_ends().items():
            for _ in range(MOST_READS):
                held.take_ends(topic, ends := feed.ends(topic, since))
                if not ends:
                    break
    finally:
        feed.close()


def arrivals(
    settings: Settings, origins: Iterable[Origin], boundaries: Sequence[EpochBoundary]
) -> Mapping[Origin, str]:
    """For the first of these records when each came, by Kafka's timestamp; or why Kafka does not say."""
    from processor.job.kafka.reader import read_record

    epochs = read_epochs(boundaries)
    found: dict[Origin, str] = {}
    for origin in islice(dict.fromkeys(origins), MOST_ASKED):
        place = (origin.topic, origin.partition, origin.offset)
        if epochs.of(*place) != origin.epoch:
            found[origin] = "unknown: the topic was created again since, or has other offsets"
        elif (record := read_record(settings.bootstrap_servers, dict(settings.kafka), *place)) is None:
            found[origin] = "unknown: Kafka does not hold the record any more"
        else:
            found[origin] = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    return found

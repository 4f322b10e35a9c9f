"""The parts outside of a job: their addresses, a small question to some of them, and the errors by which each says that it does
not answer, or takes no work now."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager

from processor.counts import REQUEST
from processor.engine.protocol.identity import IDENTITY
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import kind_of, open_store
from processor.job.kafka.open_schemas import open_client
from registry.repository.connection import registry_place
from statestore.store import THROTTLES

REGISTRY, STORE, SCHEMA_REGISTRY, BROKER = "registry", "store", "schema registry", "broker"
"""The parts outside of a job."""
OUTAGES = {
    "registry.errors.RegistryUnreachable": (REGISTRY, "start that Postgres, or wait for its failover"),
    "registry.errors.RegistryBusy": (REGISTRY, "end the other edit"),
    "statestore.errors.Transient": (STORE, "wait for the store and the network, or look at the server"),
    "statestore.errors.Throttled": (
        STORE,
        "wait; or give the table and its indexes more capacity (on demand, warm throughput), write less at once (a smaller "
        "--batch-size), and spread an entity with many writes over `shards`",
    ),
    "processor.errors.SchemaRegistryAway": (
        SCHEMA_REGISTRY,
        "start it, or correct [schema_registry] in the settings file",
    ),
    "processor.errors.KafkaError": (BROKER, "start the broker, or correct --bootstrap-servers"),
}
"""The failures after which the job may go on by itself: the part that each names, and what an operator can do meanwhile. By the
name of the error, since the failure of a task comes as text."""
THROTTLED = "statestore.errors.Throttled"

MOST_THROTTLED = 0.1
"""A batch with a larger share of throttled requests makes the job degraded."""


def strain(tally: Mapping[str, int]) -> tuple[str, str] | None:
    """Why a batch that ended shows a store with too much to do, and what an operator can do; None where it shows none."""
    throttles = sum(count for name, count in tally.items() if name.startswith(THROTTLES))
    requests = sum(count for name, count in tally.items() if name.startswith(REQUEST))
    if throttles <= MOST_THROTTLED * requests:
        return None
    text = f"the store throttled {throttles:,} of {requests:,} requests of the last batch; the job goes on, in smaller pieces"
    return text, OUTAGES[THROTTLED][1]


def broker_away(servers: str, error: Exception) -> tuple[str, str]:
    """The text and the cure of the trouble with a broker that does not answer the monitor."""
    text = (
        f"Kafka at {servers} does not answer ({error}); the job keeps its place, publishes nothing, and goes on by itself; its "
        "lag is unknown"
    )
    return text, OUTAGES["processor.errors.KafkaError"][1]


def cure_of(part: str) -> str:
    """What an operator can do about a part that does not answer."""
    return next(cure for name, cure in OUTAGES.values() if name == part)


def places(settings: Settings) -> Mapping[str, str]:
    """The address of each part that the settings name, without user and password."""
    found = {
        REGISTRY: registry_place(settings.registry),
        STORE: kind_of(settings.store).where(settings),
        BROKER: settings.bootstrap_servers,
        SCHEMA_REGISTRY: dict(settings.schema_registry).get("url", ""),
    }
    return {part: place for part, place in found.items() if place}


Question = Callable[[Settings], AbstractContextManager[Callable[[], object]]]
"""Opens a client of a part. The function that it makes asks the part a small question."""


@contextmanager
def _ask_store(settings: Settings) -> Iterator[Callable[[], object]]:
    with closing(open_store(settings, RetryBudget.ONCE)) as store:
        yield lambda: store.get([IDENTITY])


@contextmanager
def _ask_schema_registry(settings: Settings) -> Iterator[Callable[[], object]]:
    with closing(open_client(settings.schema_registry)) as client:
        yield client.kinds


QUESTIONS: Mapping[str, Question] = {STORE: _ask_store, SCHEMA_REGISTRY: _ask_schema_registry}
"""Of the parts that nobody else asks now and then."""

"""The parts outside of a job, and the errors by which each says that it does not answer, or takes no work now."""

from collections.abc import Mapping

from processor.rounds.spending import REQUEST
from processor.settings.settings import Settings
from processor.stores.kinds import kind_of
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


def places(settings: Settings) -> Mapping[str, str]:
    """The address of the parts whose errors may not name it, without user and password."""
    return {STORE: kind_of(settings.store).where(settings), BROKER: settings.bootstrap_servers}

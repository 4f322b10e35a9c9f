"""The clients with which the checks ask the world. Each is made when a check first needs it, and tries only once.

And the way to each part: a name without an address, a closed port, no answer and a failure of TLS are different findings.
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, plan_of
from processor.environment.settings.resolve import open_registry, resolve_kafka
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import kind_of, open_store
from processor.environment.stores.postgres import PostgresProbe
from processor.errors import SettingError
from processor.finding import CONNECT_SECONDS, Checks, Finding, NothingToCheck, failure, no_way, ok, warning
from statestore.store import Store
from statestore.table import TableState

if TYPE_CHECKING:
    from processor.job.kafka.admin import ClusterProbe
    from processor.language.product.product import Definitions
    from registry.repository import Registry
    from statestore.postgres.table import Durability


Answer = TypeVar("Answer")


class CheckContext:
    """This machine, and the parts that the settings name. `definitions`: those to check in place of the registry's."""

    def __init__(self, settings: Settings, *, embedded: bool, definitions: "Definitions | None" = None) -> None:
        self.settings, self.embedded, self.definitions = settings, embedded, definitions

    @cached_property
    def registry(self) -> "Registry":
        """Raises RegistryError for a wrong address."""
        return open_registry(self.settings)

    @cached_property
    def store(self) -> Store:
        """Raises StoreError for a wrong address, or without a region."""
        return open_store(self.settings, RetryBudget.ONCE)

    @cached_property
    def table(self) -> Any:
        """The probe of the table's kind of store. Raises StoreError as `store` does."""
        return kind_of(self.settings.store).probe(self.settings)

    @cached_property
    def table_state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises StoreError."""
        state: TableState | None = self.table.state()
        return state

    @property
    def registry_durability(self) -> "Durability":
        """What a crash leaves of the commits of the registry. Raises StoreError."""
        return PostgresProbe(replace(self.settings, store_url="")).durability()

    @cached_property
    def plan(self) -> Plan:
        """The plan that a job would run. Raises RegistryError; PlanError, DefinitionError for definitions that do not fit."""
        return (
            plan_alone(self.definitions, self.settings.slots) if self.definitions else plan_of(self.registry.snapshot())
        )

    @cached_property
    def kafka(self) -> "ClusterProbe":
        """Raises SettingError, KafkaError where no broker takes the settings."""
        from processor.job.kafka.admin import ClusterProbe

        return ClusterProbe(self.settings.bootstrap_servers, dict(resolve_kafka(self.settings.kafka)))

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question about this machine: a function in the file of its check. Tests answer by its name."""
        return question()

    def now(self) -> float:
        """This machine's clock, in seconds since 1970."""
        return time()

    def reach(self, host: str, port: int) -> None:
        """Connects, and closes the connection. Raises OSError."""
        socket.create_connection((host, port), CONNECT_SECONDS).close()

    def close(self) -> None:
        """Closes the clients that were made."""
        for name in ("registry", "store"):
            if name in self.__dict__:
                getattr(self, name).close()


WAYS = Checks()
POSTGRES = "correct --registry, the PG* variables, or the role in Postgres"
KAFKA = "correct [kafka] in the settings file (docs/kafka.md), or --bootstrap-servers"
KAFKA_PORT = 9092
Address = tuple[str, int]


@WAYS.check("postgres", "the way to Postgres", cure=POSTGRES)
def check_registry_way(around: CheckContext) -> Iterator[Finding]:
    """The way to Postgres."""
    found = [address for address in around.registry.addresses() if not address[0].startswith("/")]
    if not found:
        raise NothingToCheck("Postgres answers on a socket of this machine")
    yield from _reach_some(around, found, "--registry, or PGHOST and PGPORT")


@WAYS.check("kafka", "the way to Kafka", cure=KAFKA)
def check_broker_way(around: CheckContext) -> Iterator[Finding]:
    """The way to the brokers that the settings name."""
    if not around.settings.bootstrap_servers:
        yield failure("the settings name no broker", "--bootstrap-servers HOST:PORT, or STATESTORE_BOOTSTRAP_SERVERS")
        return
    yield from _reach_some(around, list(_brokers(around.settings.bootstrap_servers)), "--bootstrap-servers")


def _reach_some(around: CheckContext, addresses: list[Address], setting: str) -> Iterator[Finding]:
    """One address that answers is enough; each other one is a warning."""
    wrong = list(unreachable(around, addresses, setting))
    if len(wrong) == len(addresses):
        yield from wrong
        return
    yield from (warning(finding.text, finding.cure) for finding in wrong)
    if not wrong:
        yield ok(", ".join(map(shown_address, addresses)))


def unreachable(around: CheckContext, addresses: Iterable[Address], setting: str) -> Iterator[Finding]:
    """A finding for each address without a connection."""
    for address in addresses:
        try:
            around.reach(*address)
        except OSError as error:
            yield no_way(shown_address(address), error, setting)


def _brokers(servers: str) -> Iterator[Address]:
    for one in servers.split(","):
        host, colon, port = one.strip().rpartition("://")[2].rpartition(":")
        if colon and not port.isdecimal():
            raise SettingError(f"{one.strip()!r} is not HOST:PORT")
        yield ((host or port).strip("[]"), int(port) if colon else KAFKA_PORT)


def shown_address(address: Address) -> str:
    """The address as HOST:PORT."""
    return f"{address[0]}:{address[1]}"

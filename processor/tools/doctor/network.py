"""The way to each part: a name without an address, a closed port, no answer and a failure of TLS are different findings."""

from collections.abc import Iterable, Iterator

from processor.errors import SettingError
from processor.finding import Checks, Finding, NothingToCheck, failure, no_way, ok, warning
from processor.tools.doctor.surroundings import Surroundings

CHECKS = Checks()
POSTGRES = "correct --registry, the PG* variables, or the role in Postgres"
KAFKA = "correct [kafka] in the settings file (docs/kafka.md), or --bootstrap-servers"
KAFKA_PORT = 9092
Address = tuple[str, int]


@CHECKS.check("postgres", "the way to Postgres", cure=POSTGRES)
def check_registry_way(around: Surroundings) -> Iterator[Finding]:
    """The way to Postgres."""
    found = [address for address in around.registry.addresses() if not address[0].startswith("/")]
    if not found:
        raise NothingToCheck("Postgres answers on a socket of this machine")
    yield from _reach_some(around, found, "--registry, or PGHOST and PGPORT")


@CHECKS.check("kafka", "the way to Kafka", cure=KAFKA)
def check_broker_way(around: Surroundings) -> Iterator[Finding]:
    """The way to the brokers that the settings name."""
    if not around.settings.bootstrap_servers:
        yield failure("the settings name no broker", "--bootstrap-servers HOST:PORT, or STATESTORE_BOOTSTRAP_SERVERS")
        return
    yield from _reach_some(around, list(_brokers(around.settings.bootstrap_servers)), "--bootstrap-servers")


def _reach_some(around: Surroundings, addresses: list[Address], setting: str) -> Iterator[Finding]:
    """One address that answers is enough; each other one is a warning."""
    wrong = list(unreachable(around, addresses, setting))
    if len(wrong) == len(addresses):
        yield from wrong
        return
    yield from (warning(finding.text, finding.cure) for finding in wrong)
    if not wrong:
        yield ok(", ".join(map(shown_address, addresses)))


def unreachable(around: Surroundings, addresses: Iterable[Address], setting: str) -> Iterator[Finding]:
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

"""The way to each part: a name without an address, a closed port, no answer and a failure of TLS are different findings."""

from collections.abc import Iterable, Iterator

from processor.doctor.surroundings import Surroundings
from processor.errors import SettingError
from processor.findings.finding import Finding, NothingToCheck, failure, ok, warning
from processor.findings.network_findings import clock_finding, no_way

KAFKA_PORT = 9092
Address = tuple[str, int]


def check_registry_clock(around: Surroundings) -> Iterator[Finding]:
    """This machine's clock, compared with that of Postgres."""
    yield clock_finding(around.now() - around.registry.state().now, "Postgres")


def check_registry_way(around: Surroundings) -> Iterator[Finding]:
    """The way to Postgres."""
    found = [address for address in around.registry.addresses() if not address[0].startswith("/")]
    if not found:
        raise NothingToCheck("Postgres answers on a socket of this machine")
    yield from _reach_some(around, found, "--registry, or PGHOST and PGPORT")


def check_broker_way(around: Surroundings) -> Iterator[Finding]:
    """The way to the brokers that the settings name."""
    if not around.settings.bootstrap_servers:
        yield failure("the settings name no broker", "--bootstrap-servers HOST:PORT, or STATESTORE_BOOTSTRAP_SERVERS")
        return
    yield from _reach_some(around, list(_brokers(around.settings.bootstrap_servers)), "--bootstrap-servers")


def check_brokers(around: Surroundings) -> Iterator[Finding]:
    """The way to each broker of the cluster, by the address that the broker itself gives to clients."""
    brokers = around.kafka.cluster().brokers
    wrong = list(_unreachable(around, brokers, "`advertised.listeners` of this broker, or the network"))
    yield from wrong
    if not wrong:
        yield ok(f"{len(brokers)} in reach: {', '.join(map(_place, brokers))}")


def _reach_some(around: Surroundings, addresses: list[Address], setting: str) -> Iterator[Finding]:
    """One address that answers is enough; each other one is a warning."""
    wrong = list(_unreachable(around, addresses, setting))
    if len(wrong) == len(addresses):
        yield from wrong
        return
    yield from (warning(finding.text, finding.cure) for finding in wrong)
    if not wrong:
        yield ok(", ".join(map(_place, addresses)))


def _unreachable(around: Surroundings, addresses: Iterable[Address], setting: str) -> Iterator[Finding]:
    for address in addresses:
        try:
            around.reach(*address)
        except OSError as error:
            yield no_way(_place(address), error, setting)


def _brokers(servers: str) -> Iterator[Address]:
    for one in servers.split(","):
        host, colon, port = one.strip().rpartition("://")[2].rpartition(":")
        if colon and not port.isdecimal():
            raise SettingError(f"{one.strip()!r} is not HOST:PORT")
        yield ((host or port).strip("[]"), int(port) if colon else KAFKA_PORT)


def _place(address: Address) -> str:
    return f"{address[0]}:{address[1]}"

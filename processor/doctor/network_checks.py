"""The way to each part: a name without an address, a closed port, no answer and a failure of TLS are different findings."""

import socket
import ssl
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from processor.doctor.finding import Finding, NothingToCheck, failure, ok, warning
from processor.doctor.surroundings import CONNECT_SECONDS, Surroundings
from processor.errors import SettingError

CLOCK_SECONDS = 5.0
"""Two clocks that differ by more make wrong ages of documents. The header `Date` has whole seconds."""
REFUSED_SECONDS = 240.0
"""AWS refuses a request whose time is wrong by 5 minutes."""
KAFKA_PORT = 9092
Address = tuple[str, int]


def check_endpoint(around: Surroundings) -> Iterator[Finding]:
    """The way to the API of DynamoDB, with TLS, through the proxy where there is one."""
    table = around.table
    parts = urlsplit(table.proxy or table.endpoint)
    place = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    try:
        around.table.server_time(CONNECT_SECONDS)
    except OSError as error:
        yield no_way(place, error, "--endpoint, or AWS_REGION and --region")
        return
    endpoint = urlsplit(table.endpoint)
    if endpoint.scheme == "http" and not is_this_machine(endpoint.hostname or ""):
        yield warning(
            f"the connection to {table.endpoint} has no TLS: others on the way can read and change it",
            "give an --endpoint of https://, or none for that of AWS",
        )
    else:
        yield ok(table.endpoint + (f" through the proxy {table.proxy}" if table.proxy else ""))


def check_endpoint_clock(around: Surroundings) -> Iterator[Finding]:
    """This machine's clock, compared with that of DynamoDB."""
    server = around.table.server_time(CONNECT_SECONDS)
    if server is None:
        raise NothingToCheck("the endpoint gives no time")
    yield _clock(around.now() - server.timestamp(), "DynamoDB")


def check_registry_clock(around: Surroundings) -> Iterator[Finding]:
    """This machine's clock, compared with that of Postgres."""
    yield _clock(around.now() - around.registry.state().now, "Postgres")


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


def is_this_machine(host: str) -> bool:
    """Whether what goes to a host stays on this machine."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified  # 0.0.0.0 as a server's own address: all of this machine


def no_way(place: str, error: OSError, setting: str) -> Finding:
    """The finding for an address without a connection."""
    match error:
        case ssl.SSLCertVerificationError():
            cure = "AWS_CA_BUNDLE names the certificates to trust; correct it, or the name of the host"
            return failure(f"{place}: TLS: {error.verify_message}", cure)
        case ssl.SSLError():
            return failure(f"{place}: TLS fails: {error.strerror or error}", f"does it speak TLS? Correct {setting}")
        case socket.gaierror():
            return failure(f"{place}: DNS gives no address ({error.strerror})", f"correct {setting}, or DNS")
        case ConnectionRefusedError():
            return failure(f"{place} refuses connections", f"start the server, or correct {setting}")
        case TimeoutError():
            cure = f"let the firewall, the security group and the routes allow it, or correct {setting}"
            return failure(f"{place}: no answer within {CONNECT_SECONDS:g} s", cure)
    return failure(f"{place}: {error.strerror or error}", f"correct {setting}, or the network")


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


def _clock(ahead: float, other: str) -> Finding:
    text = f"this machine is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {other}"
    cure = "let NTP set the clocks"
    if abs(ahead) > REFUSED_SECONDS:
        return failure(f"{text}: AWS refuses requests, and ages of documents are wrong", cure)
    if abs(ahead) > CLOCK_SECONDS:
        return warning(f"{text}: ages of documents are wrong by that", cure)
    return ok(f"this machine and {other} agree")

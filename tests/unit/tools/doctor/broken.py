"""Set-ups with one fault each, and the finding that names it."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from processor.engine.protocol.identity import write_identity
from processor.engine.protocol.ticks import CLOCK
from processor.errors import PartError, PlanError
from registry.errors import RegistryUnreachable
from registry.model import JobStatus
from statestore.keys import row_key
from statestore.memory import MemoryStore
from statestore.store import Terminal, Write
from statestore.writes import write_note
from tests.unit.tools.doctor.healthy import DURABLE, NOW, REGISTRY, TABLE, TIME, Healthy, fail

REFUSED = ConnectionRefusedError(111, "Connection refused")


class Fault(NamedTuple):
    """A fault and its finding."""

    name: str
    breaks: Callable[[Healthy], object]
    """Breaks a healthy set-up."""
    check: str
    state: str
    text: str
    """A word in the text."""
    cure: str
    """A word in the cure."""
    store: str = "dynamodb"
    """The kind of the table."""


def settings(**changed: Any) -> Callable[[Healthy], object]:
    return lambda around: setattr(around, "settings", replace(around.settings, **changed))


def set_to(path: str, value: Any) -> Callable[[Healthy], object]:
    """Sets an attribute of the set-up, or of a part of it."""

    def breaks(around: Any) -> None:
        *parts, name = path.split(".")
        for part in parts:
            around = getattr(around, part)
        setattr(around, name, value)

    return breaks


def registry(**changed: Any) -> Callable[[Healthy], object]:
    return set_to("registry.found", replace(REGISTRY, **changed))


def durable(**changed: Any) -> Callable[[Healthy], object]:
    return set_to("registry_durability", DURABLE._replace(**changed))


def table(**changed: Any) -> Callable[[Healthy], object]:
    return set_to("table_state", replace(TABLE, **changed))


def without_endpoint(error: OSError) -> Callable[[Healthy], object]:
    return set_to("table.server_time", fail(error))


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


def denied(method: str, index: str = "") -> Callable[[Healthy], object]:
    """DynamoDB denies a request of the store; with `index` only its queries."""

    class Denying(MemoryStore):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name != method:
                return found

            def ask(*given: Any) -> Any:
                if not index or getattr(given[0], "slot", "") == index:
                    raise Terminal(
                        f"querying {index}: AccessDeniedException: User: x is not authorized to perform this"
                    )
                return found(*given)

            return ask

    def breaks(around: Healthy) -> None:
        around.store = Denying(20)
        MemoryStore.write(around.store, write_identity("id"))

    return breaks


def python_and_spark(version: tuple[int, int], spark: str) -> Callable[[Healthy], None]:
    """The versions of this machine."""

    def breaks(around: Healthy) -> None:
        around.python_version, around.spark_version = version, spark

    return breaks


def newer_row(around: Healthy) -> None:
    around.store.write(Write(row_key("user", 1, "octo@example.org"), {"_f": 99, "_v": "1"}))


def clocked(seconds: float) -> Callable[[Healthy], None]:
    """A product with a clock, which is so far ahead of this machine."""

    def breaks(around: Healthy) -> None:
        (name, planned), *_ = around.plan.products.items()
        product = replace(planned.product, clock=60)
        around.plan = replace(around.plan, products={**around.plan.products, name: replace(planned, product=product)})
        around.store.write(write_note(CLOCK, {"run": 1, "time": int(NOW + seconds), "bucket": 0}))
        around.registry.leases = (replace(LEASE, alive=True),)

    return breaks


LEASE = JobStatus(
    job="statestore",
    owner="host:7",
    alive=False,
    generation=3,
    applied_version=1,
    renewed_at=TIME,
)
NO_JAVA = PartError("Java", "there is no java on PATH", "install a JDK")
NARROW = "its key is not PK (hash), SK (range): give another table name"

PART_FAULTS = [
    Fault("an old Python", set_to("python_version", (3, 10)), "python", "failure", "3.10", "install Python 3.11"),
    Fault("Python 3.13 and Spark 3", set_to("python_version", (3, 13)), "python", "failure", "3.5.7", "or Spark 4"),
    Fault(
        "an untested Python", python_and_spark((3, 14), "4.1.1"), "python", "warning", "3.14", "use Python 3.11 to 3.13"
    ),
    Fault("no PySpark", set_to("spark_version", None), "spark", "warning", "not installed", "pip install"),
    Fault("an old Spark", set_to("spark_version", "3.4.1"), "spark", "failure", "3.4.1", "3.5.4 or newer"),
    Fault("an unknown Spark", set_to("spark_version", "5.0.0"), "spark", "warning", "5.0.0", "use Spark 3.5"),
    Fault("no Java", set_to("java_path", fail(NO_JAVA)), "java", "failure", "no java on PATH", "Java 17"),
    Fault("no connector", set_to("has_connector", False), "jars", "warning", "not here yet", "Maven Central"),
    Fault(
        "a mistyped variable",
        set_to("variables", {"STATESTORE_BATCHSIZE": "10"}),
        "variables",
        "warning",
        "no setting reads the variable STATESTORE_BATCHSIZE",
        "did you mean STATESTORE_BATCH_SIZE?",
    ),
    Fault("W of 0", settings(wait_seconds=0.0), "waits", "warning", "W is 0 s", "--wait-seconds"),
    Fault("W of an hour", settings(wait_seconds=3600.0), "waits", "warning", "3600 s", "--wait-seconds"),
    Fault("markers for a day", settings(marker_days=1), "markers", "warning", "marker_days is 1", "--marker-days"),
    Fault(
        "a host without an address",
        without_endpoint(socket.gaierror(-2, "Name or service not known")),
        "dynamodb",
        "failure",
        "DNS gives no address",
        "AWS_REGION",
    ),
    Fault("a closed port", without_endpoint(REFUSED), "dynamodb", "failure", "refuses", "start the server"),
    Fault("no answer", without_endpoint(TimeoutError()), "dynamodb", "failure", "no answer", "security group"),
    Fault("no TLS", set_to("table.endpoint", "http://dynamodb:8000"), "dynamodb", "warning", "has no TLS", "https://"),
    Fault("a wrong certificate", without_endpoint(untrusted()), "dynamodb", "failure", "self-signed", "AWS_CA_BUNDLE"),
    Fault(
        "a port without TLS",
        without_endpoint(ssl.SSLError(1, "wrong version number")),
        "dynamodb",
        "failure",
        "TLS fails",
        "does it speak TLS",
    ),
    Fault(
        "a clock of yesterday", set_to("table.time", TIME + timedelta(1)), "dynamodb clock", "failure", "behind", "NTP"
    ),
    Fault("a clock ahead", registry(now=NOW - 20), "postgres clock", "warning", "20 s ahead of Postgres", "NTP"),
    Fault(
        "no Postgres",
        set_to("closed", {"registry.example.org": REFUSED}),
        "postgres",
        "failure",
        "registry.example.org:5432 refuses",
        "--registry",
    ),
    Fault(
        "a wrong password of Postgres",
        set_to("registry.state", fail(RegistryUnreachable("password authentication failed"))),
        "registry login",
        "failure",
        "password authentication failed",
        "the role in Postgres",
    ),
    Fault("Postgres without TLS", registry(tls=False), "registry login", "warning", "no TLS", "sslmode=verify-full"),
    Fault("an untested Postgres", registry(release=19), "server", "warning", "PostgreSQL 19", "15 to 18"),
    Fault("an old Postgres", registry(release=13), "server", "failure", "13 is too old", "14 or newer"),
    Fault("no registry", registry(exists=False), "registry", "warning", "no registry", "statestore apply"),
    Fault(
        "no right to create a registry",
        registry(exists=False, may_create=False),
        "registry",
        "failure",
        "may not create",
        "GRANT statestore_job TO etl",
    ),
    Fault(
        "a newer registry",
        registry(known=False, current=False, revision="0099"),
        "registry",
        "failure",
        "0099",
        "install that release",
    ),
    Fault("no fsync", durable(fsync=False), "commits", "warning", "fsync is off", "restart or reload"),
    Fault("torn pages", durable(full_page_writes=False), "commits", "warning", "breaks pages", "set it to on"),
    Fault(
        "a late standby",
        durable(standbys=1, behind=4096),
        "commits",
        "warning",
        "no commit waits for a standby, and the farthest lacks 4,096 bytes",
        "synchronous_standby_names",
    ),
    Fault(
        "a hidden standby",
        durable(standbys=1, hidden=1),
        "commits",
        "warning",
        "how far its standbys are: 1",
        "GRANT",
    ),
    Fault("an older registry", registry(current=False), "registry", "warning", "older", "migrates it"),
    Fault("a reader", registry(missing=("INSERT on leases",)), "rights", "failure", "INSERT on leases", "GRANT"),
    Fault(
        "no definitions",
        lambda around: setattr(type(around), "plan", property(fail(PlanError("the registry holds no definitions")))),
        "definitions",
        "failure",
        "no definitions",
        "statestore apply",
    ),
    Fault("a job that died", set_to("registry.leases", (LEASE,)), "lease", "warning", "host:7", "start the job again"),
    Fault(
        "no credentials",
        set_to("table.credentials_source", fail(Terminal("Unable to locate credentials"))),
        "credentials",
        "failure",
        "Unable to locate credentials",
        "AWS_ACCESS_KEY_ID",
    ),
    Fault("a table that begins", table(status="CREATING"), "table", "failure", "CREATING", "wait until it is ACTIVE"),
    Fault("another key", table(misfits=(NARROW,)), "keys", "failure", "its key is not PK", "another table name"),
    Fault(
        "an index that fills", table(indexes={"GSI_2": "CREATING"}), "indexes", "failure", "GSI_2 is CREATING", "wait"
    ),
    Fault("too few indexes", table(slots=5), "slots", "failure", "5 slots, not 20", "statestore add-slots 20"),
    Fault("no TTL", table(expires_by=None), "ttl", "warning", "off", "start of the job"),
    Fault("another TTL", table(expires_by="until"), "ttl", "failure", "by until", "update-time-to-live"),
    Fault("no protection", table(protected=False), "protection", "warning", "deletion protection", "turn deletion"),
    Fault("no recovery", table(recoverable=False), "protection", "warning", "point-in-time", "recovery on"),
    Fault(
        "hidden recovery", table(recoverable=None), "protection", "warning", "does not say", "DescribeContinuousBackups"
    ),
    Fault("fixed capacity", table(on_demand=False), "protection", "warning", "provisioned", "autoscaling"),
    Fault("no right to write", denied("write"), "permissions", "failure", "UpdateItem", "dynamodb:UpdateItem"),
    Fault("no right to read", denied("get"), "permissions", "failure", "BatchGetItem", "dynamodb:BatchGetItem"),
    Fault("no right to an index", denied("page", "GSI_7"), "permissions", "failure", "GSI_7", "index/*"),
    Fault("a clock of tomorrow", clocked(86_400), "product clock", "failure", "86,400 s ahead", "let NTP set"),
    Fault("a clock that rests", clocked(-9000), "product clock", "warning", "9,000 s behind", "statestore status"),
    Fault("a newer row", newer_row, "items", "failure", "format 99", "install the release"),
]

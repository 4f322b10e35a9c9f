"""A table in DynamoDB: its settings, its checks by `doctor`, and its kind of store."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlsplit

from processor.environment.programs.servers import MOTO_NAME, start_moto
from processor.environment.stores.kind import (
    INDEX_READS,
    EmbeddedStore,
    Loader,
    RetryBudget,
    StoreAddresses,
    StoreChecks,
    StoreKind,
    TableSettings,
    TableSurroundings,
    existing_table,
    setting,
)
from processor.errors import SettingError
from processor.finding import (
    CONNECT_SECONDS,
    Checks,
    Finding,
    NothingToCheck,
    clock_finding,
    failure,
    is_this_machine,
    no_way,
    ok,
    warning,
)
from statestore.store import FencingToken
from statestore.table import TTL

if TYPE_CHECKING:
    from statestore.dynamodb.store import DynamoStore
    from statestore.dynamodb.table import TableProbe

DENIED = "AccessDenied|not authorized|: 403:"
"""In the words of DynamoDB; a proxy, or moto, only has the HTTP status."""
AWS = "see the error; the policy of the role, --table, --region and --endpoint decide"
ENDPOINT = "set AWS_REGION, or correct --endpoint"
KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role"
WAY, BEFORE, TABLE = Checks(), Checks(), Checks()


class DynamoQuestions(Protocol):
    """The way to the table, as far as the checks look at it."""

    endpoint: str
    proxy: str | None

    def server_time(self, seconds: float) -> datetime | None: ...
    def credentials_source(self) -> str: ...


@WAY.check("dynamodb", "the way to DynamoDB", cure=ENDPOINT)
def check_endpoint(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
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


@WAY.check("dynamodb clock", "the clocks of this machine and of DynamoDB", cure=ENDPOINT, needs=("dynamodb",))
def check_endpoint_clock(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """This machine's clock, compared with that of DynamoDB."""
    server = around.table.server_time(CONNECT_SECONDS)
    if server is None:
        raise NothingToCheck("the endpoint gives no time")
    yield clock_finding(around.now() - server.timestamp(), "DynamoDB")


@BEFORE.check("credentials", "where AWS credentials come from", cure=KEYS, needs=("dynamodb",))
def check_credentials(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """Where the credentials of AWS come from."""
    yield ok(f"AWS credentials come from {around.table.credentials_source()}")


@TABLE.check("ttl", "the TTL of the table", cure=AWS, needs=("table",))
def check_ttl(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """The TTL attribute of the table."""
    state = existing_table(around)
    if state.expires:
        yield ok(f"on, by {TTL}")
    elif state.expires_by is None:
        cure = "the next start of the job turns it on; or `aws dynamodb update-time-to-live`"
        yield warning("off: delete markers stay for ever", cure)
    else:
        cure = "`aws dynamodb update-time-to-live`: turn it off, wait an hour, start the job"
        yield failure(f"items expire by {state.expires_by}, not by {TTL}", cure)


@TABLE.check("protection", "protection, recovery, billing", cure=AWS, needs=("table",))
def check_protection(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """The protection against loss, and the mode of billing."""
    if around.embedded:
        raise NothingToCheck("the table is embedded")
    state = existing_table(around)
    if not state.protected:
        yield warning("the table has no deletion protection", "turn deletion protection on")
    if state.recoverable is None:
        yield warning("DynamoDB does not say whether point-in-time recovery is on", "allow DescribeContinuousBackups")
    elif not state.recoverable:
        yield warning("point-in-time recovery is off", "turn point-in-time recovery on")
    if not state.on_demand:
        cure = "autoscaling for the table and each index, or billing on demand: both also while the job runs"
        yield warning("the capacity is provisioned: a job that catches up is throttled", cure)
    elif state.protected and state.recoverable:
        yield ok("deletion protection, point-in-time recovery, billing on demand")


def denied(action: str, error: str) -> Finding | None:
    """The finding for a request that the policy of the role does not allow."""
    if not re.search(DENIED, error):
        return None
    if action != INDEX_READS:
        cure = f"allow dynamodb:{action} on the table in the policy of the role"
        return failure(f"{action} is not allowed", cure)
    index = re.search(r"querying (\w+)", error)
    cure = "allow dynamodb:Query on the table's index/* in the policy of the role"
    return failure(f"{action} is not allowed{f', on {index[1]} first' if index else ''}", cure)


CHECKS = StoreChecks(
    way=WAY, before=BEFORE, table=TABLE, cure=AWS, denied=denied, untried="CreateTable and UpdateTable"
)


@dataclass(frozen=True, kw_only=True)
class DynamoSettings(TableSettings):
    """The settings of a table in DynamoDB."""

    __slots__ = ()

    endpoint: str = setting("", "address of the DynamoDB API, if it is not that of AWS")
    region: str = setting("", "AWS region, if AWS_REGION is not set")
    import_files: str = setting(
        "",
        "s3://BUCKET/PREFIX: where `load` writes the files that DynamoDB imports; `load` deletes what is there before",
    )
    dynamodb_client: str = setting(
        "lean", "the client that reads and writes items: lean, or boto3, which takes ten times the CPU"
    )


def _open(settings: DynamoSettings, budget: RetryBudget, fence: FencingToken | None) -> "DynamoStore":
    """DynamoDB knows no fence: the conditions of the writes refuse what an older run sends."""
    from statestore.dynamodb.retries import Patience
    from statestore.dynamodb.store import DynamoStore

    patience = {
        RetryBudget.ONCE: Patience(attempts=1),
        RetryBudget.LOOK_UP: Patience(attempts=3),
        RetryBudget.VERB: Patience(),
        RetryBudget.JOB: Patience(slow_s=180.0, throttled_for_s=60.0),  # then the job does the batch again
    }
    return DynamoStore(
        table=settings.table,
        endpoint_url=settings.endpoint or None,
        region=_region(settings),
        client="boto3" if settings.dynamodb_client == "boto3" else "lean",
        patience=patience[budget],
        show_keys=settings.log_values,
        threads=settings.threads,
    )


def _load(settings: DynamoSettings, fence: FencingToken) -> Loader:
    from statestore.dynamodb.load import DynamoLoader

    return DynamoLoader(
        table=settings.table,
        files=settings.import_files,
        run=fence.generation,
        endpoint_url=settings.endpoint or None,
        region=_region(settings),
    )


def _probe(settings: DynamoSettings) -> "TableProbe":
    return _open(settings, RetryBudget.ONCE, None).probe()


def _region(settings: DynamoSettings) -> str | None:
    return settings.region or os.environ.get("AWS_REGION")


def _where(settings: DynamoSettings) -> str:
    region = _region(settings)
    return settings.endpoint or (f"DynamoDB in {region}" if region else "DynamoDB")


def _check(settings: DynamoSettings) -> None:
    if settings.dynamodb_client not in ("lean", "boto3"):
        raise SettingError(f"dynamodb_client: there is no {settings.dynamodb_client!r}; use lean or boto3")


def _read_address(url: SplitResult, query: dict[str, str], settings: DynamoSettings) -> Mapping[str, Any] | None:
    if query.keys() - {"endpoint"}:
        return None
    return {
        "region": url.netloc or settings.region,
        "table": url.path.strip("/") or settings.table,
        "endpoint": query.get("endpoint", "" if url.netloc else settings.endpoint),
    }


def _embedded_settings(settings: DynamoSettings, registry: str, endpoint: str) -> Mapping[str, Any]:
    return {"endpoint": endpoint, "region": settings.region or "us-east-1"}


DYNAMODB: StoreKind[DynamoSettings] = StoreKind(
    name="dynamodb",
    open=_open,
    probe=_probe,
    where=_where,
    check=_check,
    needed=("endpoint", "region"),
    checks=CHECKS,
    addresses=StoreAddresses(schemes=("dynamodb",), form="dynamodb://REGION/TABLE", read=_read_address),
    embedded=EmbeddedStore(
        title=MOTO_NAME,
        part="dynamodb",
        start=start_moto,
        settings=_embedded_settings,
        environment={"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"},
    ),
    slot="GSI_",
    expiry="DynamoDB removes it within days",
    load=_load,
)

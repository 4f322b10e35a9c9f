"""The checks of a table in DynamoDB, and of the way to it."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from processor.environment.stores.store_kind import INDEX_READS, StoreChecks, TableSurroundings, existing_table
from processor.finding import (
    CONNECT_SECONDS,
    DoctorCheck,
    Finding,
    NothingToCheck,
    clock_finding,
    failure,
    is_this_machine,
    no_way,
    ok,
    warning,
)
from statestore.table import TTL

DENIED = "AccessDenied|not authorized|: 403:"
"""In the words of DynamoDB; a proxy, or moto, only has the HTTP status."""
AWS = "see the error; the policy of the role, --table, --region and --endpoint decide"
ENDPOINT = "set AWS_REGION, or correct --endpoint"


class DynamoQuestions(Protocol):
    """The way to the table, as far as the checks look at it."""

    endpoint: str
    proxy: str | None

    def server_time(self, seconds: float) -> datetime | None: ...
    def credentials_source(self) -> str: ...


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


def check_endpoint_clock(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """This machine's clock, compared with that of DynamoDB."""
    server = around.table.server_time(CONNECT_SECONDS)
    if server is None:
        raise NothingToCheck("the endpoint gives no time")
    yield clock_finding(around.now() - server.timestamp(), "DynamoDB")


def check_credentials(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """Where the credentials of AWS come from."""
    yield ok(f"AWS credentials come from {around.table.credentials_source()}")


def check_ttl(around: TableSurroundings[DynamoQuestions]) -> Iterator[Finding]:
    """The attribute by which the table deletes items."""
    state = existing_table(around)
    if state.expires:
        yield ok(f"on, by {TTL}")
    elif state.expires_by is None:
        cure = "the next start of the job turns it on; or `aws dynamodb update-time-to-live`"
        yield warning("off: delete markers stay for ever", cure)
    else:
        cure = "`aws dynamodb update-time-to-live`: turn it off, wait an hour, start the job"
        yield failure(f"items expire by {state.expires_by}, not by {TTL}", cure)


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
    way=(
        DoctorCheck(name="dynamodb", looks_at="the way to DynamoDB", look=check_endpoint, cure=ENDPOINT),
        DoctorCheck(
            name="dynamodb clock",
            looks_at="the clocks of this machine and of DynamoDB",
            look=check_endpoint_clock,
            cure=ENDPOINT,
            needs=("dynamodb",),
        ),
    ),
    before=(
        DoctorCheck(
            name="credentials",
            looks_at="where AWS credentials come from",
            look=check_credentials,
            cure="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role",
            needs=("dynamodb",),
        ),
    ),
    table=(
        DoctorCheck(name="ttl", looks_at="the TTL of the table", look=check_ttl, cure=AWS, needs=("table",)),
        DoctorCheck(
            name="protection",
            looks_at="protection, recovery, billing",
            look=check_protection,
            cure=AWS,
            needs=("table",),
        ),
    ),
    cure=AWS,
    denied=denied,
    untried="CreateTable and UpdateTable",
)

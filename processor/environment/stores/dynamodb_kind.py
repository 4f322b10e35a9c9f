"""A table in DynamoDB."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from processor.environment.programs.servers import MOTO_NAME, start_moto
from processor.environment.stores.dynamodb_checks import CHECKS
from processor.environment.stores.setting_field import setting
from processor.environment.stores.store_kind import Effort, EmbeddedStore, StoreAddresses, StoreKind, TableSettings
from processor.errors import SettingError
from statestore.store import FencingToken

if TYPE_CHECKING:
    from statestore.dynamodb.store import DynamoStore
    from statestore.dynamodb.table import TableProbe


@dataclass(frozen=True, kw_only=True)
class DynamoSettings(TableSettings):
    """The settings of a table in DynamoDB."""

    __slots__ = ()

    endpoint: str = setting("", "address of the DynamoDB API, if it is not that of AWS")
    region: str = setting("", "AWS region, if AWS_REGION is not set")
    dynamodb_client: str = setting(
        "lean", "the client that reads and writes items: lean, or boto3, which takes ten times the CPU"
    )


def _open(settings: DynamoSettings, effort: Effort, fence: FencingToken | None) -> "DynamoStore":
    """DynamoDB knows no fence: the conditions of the writes refuse what an older run sends."""
    from statestore.dynamodb.retries import Patience
    from statestore.dynamodb.store import DynamoStore

    patience = {
        Effort.ONCE: Patience(attempts=1),
        Effort.LOOK_UP: Patience(attempts=3),
        Effort.VERB: Patience(),
        Effort.JOB: Patience(slow_s=180.0, throttled_for_s=60.0),  # then the job does the batch again
    }
    return DynamoStore(
        table=settings.table,
        endpoint_url=settings.endpoint or None,
        region=_region(settings),
        client="boto3" if settings.dynamodb_client == "boto3" else "lean",
        patience=patience[effort],
        show_keys=settings.log_values,
        threads=settings.threads,
    )


def _probe(settings: DynamoSettings) -> "TableProbe":
    return _open(settings, Effort.ONCE, None).probe()


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
    remover="DynamoDB removes it within days",
)

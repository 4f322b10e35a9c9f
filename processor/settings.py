"""The settings of a job: one frozen value, read once at start.

A setting comes from its flag (`--batch-size`), else from the environment (`STATESTORE_BATCH_SIZE`), else from the settings file
(TOML, `batch_size = ...`), else its default. AWS_* and PG* are respected by the clients below. Kafka's own names
(`security.protocol`, ...) stand in the file's `[kafka]` table and go to Spark's connector and to librdkafka alike.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from processor.errors import SettingError

ENV = "STATESTORE_"


def _setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a job is told. Times are in seconds unless the name says otherwise."""

    job: str = _setting("statestore", "name of the job: its lease and its transactional ids go by it")
    table: str = _setting("statestore", "the DynamoDB table")
    slots: int = _setting(20, "how many GSI_n the table is created with", 1, 20)
    endpoint: str = _setting("", "address of the DynamoDB API, when it is not AWS's own")
    region: str = _setting("", "AWS region, when AWS_REGION does not say")
    registry: str = _setting("postgresql+psycopg://", "address of the registry's Postgres; PG* fill what it leaves out")
    registry_schema: str = _setting("statestore", "the Postgres schema that holds the registry")
    bootstrap_servers: str = _setting("", "Kafka brokers, host:port[,host:port]")
    checkpoint: str = _setting("", "directory of Spark's checkpoint")
    batch_size: int = _setting(10_000, "most records a micro-batch", 1)
    publish_slots: int = _setting(4, "publishers in parallel, each fenced by its own transactional id", 1, 1000)
    threads: int = _setting(16, "requests in flight per Python worker", 1, 64)
    partitions: int = _setting(2, "partitions of topics that have to be created", 1)
    rejects_topic: str = _setting("statestore.rejects", "the topic for dead letters")
    max_reject_share: float = _setting(0.5, "share of dead letters in a batch beyond which the job stops", 0, 1)
    max_reject_free: int = _setting(100, "so many dead letters a batch never stop the job", 0)
    marker_days: int = _setting(30, "days for which a deleted row's marker is kept; longer than any replay", 1)
    wait_seconds: float = _setting(5.0, "W: how late an index is expected to be at most, and its replicas to differ", 0)
    settle_seconds: float = _setting(5.0, "S: how long after a change it is settled", 0)
    fan_out_page: int = _setting(
        1_000, "rows of one change that are followed up in one go; the others wait their turn", 1
    )
    lease_seconds: int = _setting(30, "after how long without a sign of life a job counts as gone", 5)
    spark_master: str = _setting("", "Spark master; empty: what spark-submit or the platform says, local[2] without")
    kafka: tuple[tuple[str, str], ...] = field(default=(), metadata={"help": ""})


def flags() -> list[tuple[str, str]]:
    """The (name, help) of each setting that has a flag."""
    return [(f.name, _help(f)) for f in fields(Settings) if f.name != "kafka"]


def read_settings(
    given: Mapping[str, Any], environment: Mapping[str, str] | None = None, file: str | None = None
) -> Settings:
    """The settings that flags (`given`, None for absent), environment and file make. Raises SettingError naming what is wrong."""
    env = os.environ if environment is None else environment
    path = file or env.get(ENV + "SETTINGS")
    stored = _read_file(Path(path)) if path else {}
    known = {f.name: f for f in fields(Settings)}
    for name in stored:
        if name not in known:
            raise SettingError(f"{path}: there is no setting `{name}`; the settings are {', '.join(sorted(known))}")
    values: dict[str, Any] = {}
    for name, f in known.items():
        if name == "kafka":
            values[name] = _kafka(stored.get("kafka", {}), path)
        elif given.get(name) is not None:
            values[name] = _value(f, given[name], f"--{name.replace('_', '-')}")
        elif ENV + name.upper() in env:
            values[name] = _value(f, env[ENV + name.upper()], ENV + name.upper())
        elif name in stored:
            values[name] = _value(f, stored[name], f"{path}: {name}")
    if "bootstrap_servers" not in values and "KAFKA_BOOTSTRAP_SERVERS" in env:
        values["bootstrap_servers"] = env["KAFKA_BOOTSTRAP_SERVERS"]
    settings = Settings(**values)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", settings.registry_schema):
        raise SettingError(
            f"registry_schema: {settings.registry_schema!r} is no plain Postgres name; use a-z, 0-9 and _"
        )
    return settings


def _help(f: Any) -> str:
    default = "" if f.default == "" else f" (default {f.default})"
    return str(f.metadata["help"]).replace("%", "%%") + default


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"the settings file {path} is not TOML: {error}") from None


def _kafka(table: Any, path: str | None) -> tuple[tuple[str, str], ...]:
    if not isinstance(table, dict) or not all(isinstance(v, str | int) for v in table.values()):
        raise SettingError(
            f'{path}: [kafka] holds Kafka\'s own names with text values, such as "security.protocol" = "SSL"'
        )
    return tuple(sorted((name, str(value)) for name, value in table.items()))


def _value(f: Any, value: Any, where: str) -> Any:
    kind = type(f.default)
    try:
        if kind is not str and isinstance(value, bool):
            raise ValueError
        converted = kind(value)
    except (TypeError, ValueError):
        raise SettingError(f"{where}: {value!r} is no {'number' if kind is float else 'whole number'}") from None
    low, high = f.metadata["low"], f.metadata["high"]
    if (low is not None and converted < low) or (high is not None and converted > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise SettingError(f"{where}: {converted} is out of range; it must be {bounds}")
    return converted

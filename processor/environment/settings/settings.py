"""The settings of a job: one frozen value, read once at start.

A setting comes from its flag (`--batch-size`), else from the environment (`STATESTORE_BATCH_SIZE`), else from the settings file
(TOML, `batch_size = ...`), else from its default. The AWS and Postgres clients read AWS_* and PG* themselves. The file's table
`[kafka]` says how the clients of Kafka connect (kafka.py), `[schema_registry]` does the same for the schema registry
(schema_registry.py), and `[secrets]` has those of `hmac_sha256` (kafka.py). No file and no flag holds a secret: a reference
names its place (kafka.py).
"""

import math
import os
import re
import socket
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from processor.environment.settings.kafka import EXAMPLES, Secret, is_reference, read_kafka, read_secrets
from processor.environment.settings.schema_registry import read_schema_registry
from processor.environment.stores.kind import LARGEST, setting
from processor.environment.stores.kinds import FIRST, KINDS, StoreSettings, embedded_kind, kind_of, names, place_of
from processor.errors import SettingError
from processor.text import nearest
from statestore.store import PAGE


@cache
def statestore_version() -> str:
    """The version of the installed package."""
    return version("statestore")


def owner_name() -> str:
    """Host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, kw_only=True)
class PlaceSettings(StoreSettings):
    """The table and the registry, with the settings of each kind of store."""

    __slots__ = ()

    store: str = setting(FIRST, f"where the table is: {names()}; with --embedded {embedded_kind().name} by default")
    slots: int = setting(
        20, "number of index columns GSI_n of a new registry and its table (`add-slots` raises it later)", 1, 20
    )
    registry_password: str = setting("", "reference to the password of the registry's user: env:, file: or secret:")

    @property
    def place(self) -> str:
        """The table as the registry names it: `statestore` in DynamoDB, `postgres:statestore` in Postgres."""
        return place_of(self.store, self.table)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The run, its lease, and its waits."""

    __slots__ = ()

    job: str = setting("statestore", "name of the job: its lease and its transactional ids contain it")
    lease_seconds: int = setting(30, "seconds without a heartbeat after which a job counts as dead", 5)
    outage_seconds: int = setting(
        43_200,
        "how long a running job waits for an unreachable dependency (registry, store, broker) before it ends, so that its "
        "supervisor starts it again with new addresses and secrets",
        0,
    )


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """The topics and their producers."""

    __slots__ = ()

    bootstrap_servers: str = setting("", "Kafka brokers, host:port[,host:port]")
    lanes: int = setting(4, "parallel publishers, each fenced by its own transactional id", 1, 1000)
    partitions: int = setting(2, "number of partitions of a topic that the job creates", 1)
    dead_letter_topic: str = setting("statestore.rejects", "the topic for dead letters", former="rejects_topic")
    transaction_seconds: int = setting(
        900, "longest Kafka transaction of a publisher; at most the broker's transaction.max.timeout.ms", 1, 2_000_000
    )


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """The stream and its micro-batches."""

    __slots__ = ()

    checkpoint: str = setting("", "directory of Spark's checkpoint")
    spark_master: str = setting(
        "", "Spark master (empty: the choice of spark-submit or of the platform, else local[2])"
    )
    batch_size: int = setting(10_000, "most records in a micro-batch", 1)
    max_reject_share: float = setting(
        0.05, "the job stops where a batch, or the last minutes of a topic, have a larger share of dead letters", 0, 1
    )
    max_reject_free: int = setting(
        100, "at most this number of dead letters, in a batch or in the last minutes of a topic, never stops the job", 0
    )
    reject_window_seconds: int = setting(600, "how long these last minutes of a topic are", 1)
    catch_up_records: int = setting(
        100_000, "a job that is further behind its topics writes rows first, and publishes each root later; 0: never", 0
    )
    catch_up_seconds: int = setting(
        600, "seconds of catching up after which the job publishes all documents although it is still behind", 1
    )


@dataclass(frozen=True, kw_only=True)
class SettleSettings:
    """The work on rows: settling, fan-outs, walks and delete markers."""

    __slots__ = ()

    wait_seconds: float = setting(5.0, "W: longest delay that is expected of an index, or between its replicas", 0)
    settle_seconds: float = setting(5.0, "S: how long after a change the job settles it", 0)
    fan_out_page: int = setting(
        PAGE, "rows that the fan-out of one change follows in a round; later rounds follow the rest", 1
    )
    walk_page: int = setting(
        500, "stored rows that a walk (a fill or a publication) takes from a partition in a round", 1
    )
    walk_rate: int = setting(2_000, "stored rows a second that walks take, 0 for no limit", 0)
    marker_days: int = setting(
        30, "days for which a delete marker is kept; must be longer than any replay takes", 1, 100_000
    )


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """The driver's page and the metrics."""

    __slots__ = ()

    status_port: int = setting(
        0, "port of the driver's page, with /metrics for Prometheus, /status.json and /health; 0: none", 0, 65535
    )
    status_host: str = setting(
        "127.0.0.1", "address at which the driver's page answers; all who reach it may read the page"
    )
    cloudwatch_namespace: str = setting(
        "", "namespace of CloudWatch: the job prints its metrics on standard output as EMF lines; empty: none"
    )


ENV = "STATESTORE_"
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
PASSWORDS = {"registry": "registry_password"} | dict(pair for kind in KINDS.values() for pair in kind.passwords)
"""The settings with an address, and for each the setting with its password."""
CONFIDENTIAL = (*PASSWORDS, *PASSWORDS.values())
"""The settings that no error and no representation shows."""
_TABLES: dict[str, Callable[[Any, str | None], tuple[tuple[str, str], ...]]] = {
    "kafka": read_kafka,
    "schema_registry": read_schema_registry,
    "secrets": read_secrets,
}
"""The settings that are tables of the file, without a flag and a variable."""
PASSWORD = re.compile(r"://[^:/@]*:[^@]+@|[?&](ssl)?password=")
"""In an address: its password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(PlaceSettings, RunSettings, KafkaSettings, BatchSettings, SettleSettings, WatchSettings):
    """The settings of one job: all groups. Times are in seconds unless the name says otherwise."""

    kafka: tuple[tuple[str, str], ...] = field(default=(), metadata={"help": ""})
    schema_registry: tuple[tuple[str, str], ...] = field(default=(), metadata={"help": ""})
    secrets: tuple[tuple[str, str], ...] = field(default=(), metadata={"help": ""})


FORMER = {f.metadata["former"]: f.name for f in fields(Settings) if f.metadata.get("former")}
"""The names of settings in earlier releases, each with the present one."""
GROUPS: dict[str, type[Any]] = {
    "the table and the registry": PlaceSettings,
    "the run": RunSettings,
    "the topics": KafkaSettings,
    "the stream": BatchSettings,
    "the rows": SettleSettings,
    "the page and the metrics": WatchSettings,
}
"""The groups of settings, by their titles in the help."""


def setting_flags() -> list[tuple[str, str]]:
    """The (name, help) of each setting that has a flag, in the order of the groups."""
    return [flag for group in GROUPS.values() for flag in flags_of(group)]


def flags_of(group: type[Any]) -> list[tuple[str, str]]:
    """The (name, help) of each setting of a group."""
    return [(f.name, _help(f)) for f in fields(group)]


def mistyped_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that no setting reads, and whose names are near to one: each with the variable of that setting."""
    known = {ENV + name.upper() for name, _ in setting_flags()} | {ENV + "SETTINGS"}
    own = [name for name in environment if name.startswith(ENV) and name not in known]
    return {name: near for name in sorted(own) if (near := nearest(name, known, 0.9))}


def read_settings(
    given: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    file: str | None = None,
    otherwise: Mapping[str, Any] | None = None,
) -> Settings:
    """Reads the settings from flags (`given`, None for an absent flag), environment and file. `otherwise`: defaults in place of
    the usual ones.

    Raises SettingError, which names the wrong setting.
    """
    env = _with_present_names(os.environ if environment is None else environment, lambda name: ENV + name.upper())
    path = file or env.get(ENV + "SETTINGS")
    stored = _with_present_names(_read_file(Path(path)) if path else {}, str)
    known = {f.name: f for f in fields(Settings)}
    for name in stored:
        if name not in known:
            raise SettingError(f"{path}: there is no setting `{name}`; {_cure(name, known)}")
    values: dict[str, Any] = dict(otherwise or {})
    for name, f in known.items():
        if name in _TABLES:
            values[name] = _TABLES[name](stored.get(name, {}), path)
        elif given.get(name) is not None:
            values[name] = _without_secret(f, given[name], f"--{name.replace('_', '-')}")
        elif ENV + name.upper() in env:
            values[name] = _value(f, env[ENV + name.upper()], ENV + name.upper())
        elif name in stored:
            values[name] = _without_secret(f, stored[name], f"{path}: {name}")
    if "bootstrap_servers" not in values and "KAFKA_BOOTSTRAP_SERVERS" in env:
        values["bootstrap_servers"] = env["KAFKA_BOOTSTRAP_SERVERS"]
    settings = Settings(**values)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", settings.registry_schema):
        raise SettingError(
            f"registry_schema: {settings.registry_schema!r} is not a plain Postgres name; use a-z, 0-9 and _"
        )
    kind_of(settings.store).check(settings)
    if not re.fullmatch(r"(?!AWS/)[\w./#:-]{0,255}", settings.cloudwatch_namespace, re.ASCII):
        raise SettingError(
            f"cloudwatch_namespace: CloudWatch refuses {settings.cloudwatch_namespace!r}; use at most 255 of A-Z, a-z, 0-9 and "
            "._-/#: and do not begin with AWS/"
        )
    return settings


def _with_present_names(values: Mapping[str, Any], written: Callable[[str], str]) -> dict[str, Any]:
    """The values, with the present name of a setting in place of a former one. `written`: a name as the values write it. Raises
    SettingError where both names have a value."""
    renamed = dict(values)
    for old, new in FORMER.items():
        if written(old) in renamed:
            if written(new) in renamed:
                raise SettingError(f"{written(old)} is the former name of {written(new)}: leave {written(old)} out")
            renamed[written(new)] = renamed.pop(written(old))
    return renamed


def _cure(name: str, known: Iterable[str]) -> str:
    near = nearest(name.replace("-", "_"), known)
    return f"did you mean `{near}`?" if near else f"the settings are {', '.join(sorted(known))}"


def _help(f: Any) -> str:
    default = "" if f.default == "" else f" (default {f.default})"
    return str(f.metadata["help"]).replace("%", "%%") + default


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except OSError as error:
        raise SettingError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"the settings file {path} is not TOML: {error}") from None


def read_toml(path: Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table of a TOML file. Raises OSError; ValueError, with a reason in one line, for a file that is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=parse_float)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    except RecursionError:
        raise ValueError("it nests too many levels") from None
    except ArithmeticError:
        raise ValueError("a number with too large an exponent") from None


def _is_text(value: Any) -> bool:
    """Whether a value of the settings file is text, or a number in the place of text."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _without_secret(f: Any, value: Any, where: str) -> Any:
    """The value of a setting in a file or on the command line, which other users may read. Raises SettingError for a secret."""
    made = _value(f, value, where)
    if f.name in PASSWORDS and not is_reference(made) and PASSWORD.search(made):
        raise SettingError(
            f"{where}: the address holds a password; leave it out, and for {PASSWORDS[f.name]} {EXAMPLES}"
        )
    if f.name in PASSWORDS.values() and made and not is_reference(made):
        raise SettingError(f"{where} holds the password itself: {EXAMPLES}")
    return made


def _value(f: Any, value: Any, where: str) -> Any:
    kind = type(f.default)
    if kind is str:
        if not _is_text(value) or _CONTROL.search(str(value)):
            shown = "the value" if f.name in CONFIDENTIAL else repr(value)
            raise SettingError(f"{where}: {shown} is not text in one line")
        return Secret(value) if f.name in CONFIDENTIAL and not is_reference(str(value)) else str(value)
    if kind is bool:
        if str(value).lower() not in ("true", "false"):
            raise SettingError(f"{where}: {value!r} is not true or false")
        return str(value).lower() == "true"
    try:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise ValueError
        converted = kind(value)
        if not math.isfinite(converted):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{where}: {value!r} is not a {'number' if kind is float else 'whole number'}") from None
    low, high = f.metadata["low"], f.metadata["high"]
    if not low <= converted <= high:
        bounds = f"at least {low}" if high == LARGEST and converted < low else f"from {low} to {high}"
        raise SettingError(f"{where}: {converted} is out of range; it must be {bounds}")
    return converted

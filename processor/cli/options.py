"""The flags of the settings, and what verbs make of their flags: the settings, the embedded parts, definitions, a reason."""

import argparse
import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from processor.environment.programs.program import LOCAL_DIR
from processor.environment.settings.resolve import database_address, open_registry, resolve_registry, secret_readers
from processor.environment.settings.settings import FORMER, GROUPS, Settings, flags_of, read_settings, setting_flags
from processor.environment.stores.kinds import KINDS, embedded_kind, kind_of
from processor.errors import AddressMissing, PartError, SettingError
from registry.errors import RegistryMissing, RegistryUnreachable

REGISTRY = ("registry", "registry_schema")
TABLE = ("store", "table", *(name for kind in KINDS.values() for name in kind.needed))
KAFKA = ("bootstrap_servers",)
JOB = (*REGISTRY, *TABLE, *KAFKA, "job")
"""The settings that a verb needs to reach the registry, the table and Kafka, and all that a job reaches."""

if TYPE_CHECKING:
    from processor.engine.plan.plan import Plan
    from processor.environment.embedded import Addresses
    from processor.language.product.product import Definitions


def add_settings(parser: argparse.ArgumentParser, *needed: str) -> dict[argparse.Action, str]:
    """Adds a flag for each setting, `--settings FILE`, and the flags of the embedded parts. `--help` names the settings that are
    `needed`. Returns the flags that it leaves out, with their texts."""
    names = ", ".join(map(_flag, needed))
    text = f"{names}; each also as the variable STATESTORE_<NAME>, or in the file of --settings (TOML)"
    group = parser.add_argument_group("settings", text)
    group.add_argument("--settings", metavar="FILE", help="settings file")
    hidden: dict[argparse.Action, str] = {}
    for title, settings in GROUPS.items():
        of_title = parser.add_argument_group(f"settings of {title}")
        for name, text in flags_of(settings):
            action = of_title.add_argument(_flag(name), dest=name, metavar="X", help=argparse.SUPPRESS)
            hidden[action] = text
    for former, name in FORMER.items():
        group.add_argument(_flag(former), dest=name, help=argparse.SUPPRESS)
    group.add_argument("--embedded", action="store_true", help="take the parts of `local up`, else start new ones")
    local = group.add_argument("--local-dir", metavar="DIR", type=Path, default=LOCAL_DIR, help=argparse.SUPPRESS)
    return hidden | {local: f"where `local up` keeps its parts ({LOCAL_DIR})"}


def _flag(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def load_settings(options: argparse.Namespace, **otherwise: Any) -> Settings:
    """The settings of the flags, the environment and the settings file. `otherwise`: defaults in place of the usual ones."""
    given = {name: getattr(options, name, None) for name, _ in setting_flags()}
    settings = read_settings(given, file=getattr(options, "settings", None), otherwise=otherwise)
    if settings.secrets:
        from processor.language.product.expressions.functions import offer_secrets  # few verbs make documents

        offer_secrets(secret_readers(settings))
    return settings


def reason(options: argparse.Namespace) -> str:
    """The reason of `--why`. Raises SettingError without one."""
    why = str(options.why)
    if not why.strip():
        raise SettingError("--why is missing: give the reason, which `statestore history` shows later")
    return why


def user_name() -> str:
    """The user's name for the registry's history, or the number of a user without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def source_address(options: argparse.Namespace) -> str:
    """The address of `source_flags` with its password. Raises SettingError for a password in the command itself."""
    return database_address(options.source, options.password, ("--source", "--password"))


def require_packages(extra: str, *modules: str) -> None:
    """Raises SettingError where a package of the extra is not installed."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"this verb needs more packages: pip install 'statestore[{extra}]'")


def load_definitions(options: argparse.Namespace) -> "Definitions":
    """The definitions of the directory that `--definitions` names."""
    from processor.language.definitions.load import load_directory

    return load_directory(options.definitions)


def name_secrets(plan: "Plan") -> None:
    """Lets the secrets of a trial in memory that the settings lack have their names as values, and says so."""
    from processor.engine.plan.plan import secrets_of
    from processor.language.product.expressions.functions import take_names

    for name in take_names(secrets_of(plan)):
        print_progress(f"the settings have no `:{name}`: its value is its name here")


@contextmanager
def reachable_settings(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings of the flags, as `_reachable` has them. Raises OwnedByAnother in place of RegistryMissing where the table
    belongs to a registry: then `apply` is no cure."""
    with _reachable(options) as settings:
        try:
            yield settings
        except RegistryMissing:
            from processor.job.run.binding import refuse_lost_registry  # of no use to a verb that works

            with open_registry(settings) as registry:
                refuse_lost_registry(settings, registry)
            raise


@contextmanager
def _reachable(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings of the flags. With `--embedded` their addresses are those of the parts of `local up` if these run, else of new
    parts, which end with the block. The table is in the store of those parts, unless a setting names another. References to
    secrets of the registry are resolved. Raises SettingError for one that leads to nothing, PartError if a part of `local up`
    does not run."""
    if not options.embedded:
        settings = load_settings(options)
        try:
            yield resolve_registry(settings)
        except (AddressMissing, RegistryUnreachable) as error:
            if isinstance(error, AddressMissing) or settings.registry == Settings().registry:
                raise SettingError(f"{error}; {_embedded_cure(options.local_dir)}") from error
            raise
        return
    from processor.environment import embedded as parts

    set_embedded_credentials()
    running = parts.status(options.local_dir)
    if running is not None:
        if running.dead:
            raise PartError(
                ", ".join(running.dead), "died since `local up`", "start it again with `statestore local up`"
            )
        settings = load_settings(options, store=running.addresses.store)
        part = kind_of(settings.store).embedded
        if part.start is not None and part.part not in running.addresses.endpoints:
            cure = f"start it with `statestore local up --store {settings.store}`, or leave out --store"
            raise PartError(part.title, f"it does not run among the parts in {options.local_dir}", cure)
        yield with_addresses(settings, running.addresses)
    else:
        settings = load_settings(options, store=embedded_kind().name)
        with parts.embedded_parts(progress=print_progress, store=settings.store) as addresses:
            yield with_addresses(settings, addresses)


def require_settings(settings: Settings, *names: str) -> None:
    """Raises AddressMissing where some of these settings are empty."""
    missing = [name for name in names if not getattr(settings, name)]
    if missing:
        flags = " and ".join(map(_flag, missing))
        variables = " and ".join(f"STATESTORE_{name.upper()}" for name in missing)
        verb, it = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise AddressMissing(f"{flags} {verb} missing: give {it}, or set {variables}")


def settings_of_shared_parts(options: argparse.Namespace) -> Settings | None:
    """The settings with the addresses of the parts of `local up`, also of dead ones; None where there are none."""
    from processor.environment import embedded as parts

    running = parts.status(options.local_dir)
    if running is None:
        return None
    return with_addresses(load_settings(options, store=running.addresses.store), running.addresses)


def _embedded_cure(local_dir: Path) -> str:
    """The cure for missing addresses: the embedded parts."""
    from processor.environment import embedded as parts

    with suppress(PartError):
        if (running := parts.status(local_dir)) and running.all_alive:
            return f"or add --embedded, which takes the parts of `local up`: they run ({local_dir})"
    return "or add --embedded, which starts Kafka and Postgres on this machine"


def with_addresses(settings: Settings, addresses: "Addresses") -> Settings:
    """The settings with the addresses of the embedded parts."""
    found = replace(
        settings, bootstrap_servers=addresses.bootstrap_servers, registry=addresses.registry_url, registry_password=""
    )
    for kind in KINDS.values():
        endpoint = addresses.endpoints.get(kind.embedded.part, "")
        found = replace(found, **kind.embedded.settings(settings, addresses.registry_url, endpoint))
    return found


def set_embedded_credentials() -> None:
    """Sets the credentials that a store's client requires, if there are none: the embedded part accepts any."""
    for kind in KINDS.values():
        for name, value in kind.embedded.environment.items():
            os.environ.setdefault(name, value)


def print_progress(text: str) -> None:
    """Prints a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)

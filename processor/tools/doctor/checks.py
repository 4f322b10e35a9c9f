"""All checks of a set-up in their order, where a check comes after those that it needs; and what runs them.

Each subject declares its checks above their functions. A check that cannot run names the earlier failure that is the cause.
Promises: each check ends within its time limit, and every error becomes a finding. No finding shows a secret of the settings.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from processor.environment.settings.kafka import Secret
from processor.environment.settings.resolve import resolve_tables
from processor.environment.settings.settings import PASSWORDS, Settings
from processor.environment.stores.kind import StoreKind
from processor.errors import PartError, StatestoreError
from processor.finding import DoctorCheck, Finding, NothingToCheck, failure, skipped
from processor.tools.doctor import context, kafka, machine, records, table
from processor.tools.doctor.context import CheckContext
from processor.tools.doctor.table import table_checks
from registry.errors import RegistryError
from statestore.store import StoreError

OF_REGISTRY = "postgres"
"""The check that comes before all others of the registry."""
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD")
"""Variables whose values no finding shows. The embedded parts have no secret in them."""
SHORTEST_SECRET = 8
"""Shorter values are also parts of ordinary words."""


def all_checks(kind: StoreKind[Any]) -> tuple[DoctorCheck, ...]:
    """The checks for a table of this kind of store."""
    return (
        *machine.MACHINE,
        *kind.checks.way,
        *context.WAYS,
        *table.CHECKS,
        *table_checks(kind),
        *kafka.READ,
        *records.CHECKS,
        *kafka.WRITTEN,
        *kafka.FORMATS,
        *machine.CHECKPOINT,
    )


def checks_of(kind: StoreKind[Any], dead: StatestoreError | None) -> tuple[DoctorCheck, ...]:
    """The checks for a table of this kind of store. `dead`: what a command with these settings ends with, before it asks
    anybody: the first finding. Where a secret is not in its place, the parts that need it cannot be asked."""
    checks = all_checks(kind)
    if dead is None:
        return checks
    what, _, cure = str(dead).removesuffix(".").rpartition(". ")
    found = failure(what or cure, cure if what else "correct the setting")
    name = "parts" if isinstance(dead, PartError) else "secrets"
    first = DoctorCheck(name=name, looks_at="the settings", look=lambda _: [found], cure=found.cure)
    asks = () if isinstance(dead, PartError) else (OF_REGISTRY, *(("table",) if kind.passwords else ()))
    return (first, *(replace(one, needs=(name, *one.needs)) if one.name in asks else one for one in checks))


class CheckedFinding(NamedTuple):
    """A check, and one of its findings."""

    check: DoctorCheck
    finding: Finding


def examine(checks: Sequence[DoctorCheck], around: CheckContext) -> Iterator[CheckedFinding]:
    """The findings of all checks, in their order."""
    secrets = [*_secrets(around.settings), *(() if around.embedded else map(os.environ.get, SECRETS))]
    blocked: dict[str, str] = {}
    for check in checks:
        why = next((blocked[name] for name in check.needs if name in blocked), None)
        findings = [skipped(why)] if why else _look(check, around)
        if why or any(finding.state == "failure" for finding in findings):
            blocked[check.name] = why or f"{check.name} failed"
        for finding in findings:
            yield CheckedFinding(check, _without(finding, secrets))


def _look(check: DoctorCheck, around: CheckContext) -> list[Finding]:
    """The findings of a check, from a thread that the check abandons at the time limit."""
    found: Queue[list[Finding]] = Queue()
    Thread(target=lambda: found.put(_findings(check, around)), name=check.name, daemon=True).start()
    try:
        return found.get(timeout=check.seconds)
    except Empty:
        return [failure(f"no answer within {check.seconds:g} s", check.cure)]


def _findings(check: DoctorCheck, around: CheckContext) -> list[Finding]:
    try:
        return list(check.look(around))
    except NothingToCheck as why:
        return [skipped(str(why))]
    except (StatestoreError, RegistryError, StoreError, OSError) as error:
        return [failure(_one_line(error), check.cure)]
    except Exception as error:
        return [failure(f"unexpected {type(error).__name__}: {_one_line(error)}", "please report it")]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or "no message"


def _secrets(settings: Settings) -> Iterator[str]:
    """The values that no finding shows."""
    for url in (getattr(settings, name) for name in PASSWORDS):
        with suppress(ValueError):
            address = urlsplit(url)
            password = address.password or ""
            yield from {password, unquote(password), *parse_qs(address.query).get("password", ())}
    with suppress(StatestoreError):
        resolved = resolve_tables(settings)
        tables = (*resolved.kafka, *resolved.schema_registry, *resolved.secrets)
        yield from (value for _, value in tables if isinstance(value, Secret))


def _without(finding: Finding, secrets: Iterable[str | None]) -> Finding:
    """The finding without the secrets."""
    text, cure = finding.text, finding.cure
    for secret in secrets:
        if secret and len(secret) >= SHORTEST_SECRET:
            text, cure = text.replace(secret, "***"), cure.replace(secret, "***")
    return replace(finding, text=text, cure=cure)

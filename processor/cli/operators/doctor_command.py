"""`statestore doctor`: checks a set-up, and names the cure of each problem."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from processor.cli.arguments import add_source, source_address
from processor.cli.options import JOB, add_settings, load_settings, reachable_settings, settings_of_shared_parts
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import kind_of
from processor.errors import PartError, SettingError, StatestoreError
from processor.text import fitted, table_lines, visible_lines

if TYPE_CHECKING:
    from processor.finding import DoctorCheck
    from processor.tools.doctor.checks import CheckedFinding


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "doctor", help="check the set-up of a job: this machine, the ways, the table, the registry, the topics"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_source(parser, "look at this source database, too: postgresql:// or mysql://")
    add_settings(parser, *JOB, "checkpoint")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.tools.doctor.checks import checks_of, examine
    from processor.tools.doctor.context import CheckContext

    with ExitStack() as stack:
        settings, dead = _settings(options, stack)
        around = CheckContext(settings, embedded=options.embedded)
        stack.callback(around.close)
        checks = [*checks_of(kind_of(settings.store), dead), *_source_checks(options)]
        found = list(examine(checks, around))
    print(json.dumps(findings_json(found), indent=2) if options.json else visible_lines(findings_text(found)))
    return 1 if any(one.finding.state == "failure" for one in found) else 0


def _source_checks(options: argparse.Namespace) -> "Iterator[DoctorCheck]":
    """The check of the source, if the command names one. Raises SettingError for a password in the command itself."""
    from processor.tools.doctor.source import source_check

    if options.source:
        yield source_check(source_address(options))


def _settings(options: argparse.Namespace, stack: ExitStack) -> tuple[Settings, StatestoreError | None]:
    """The settings as far as they can be read, and why not farther: a part of `local up` died, or a secret is missing."""
    try:
        return stack.enter_context(reachable_settings(options)), None
    except PartError as dead:
        if (settings := settings_of_shared_parts(options)) is None:
            raise
        return settings, dead
    except SettingError as unreadable:
        return load_settings(options), unreadable  # raises another error of the settings again


def findings_json(found: Sequence["CheckedFinding"]) -> dict[str, Any]:
    """The findings as JSON values, and how many have each state."""
    return {
        "counts": _counts(found),
        "findings": [
            {
                "check": check.name,
                "looks_at": check.looks_at,
                "state": finding.state,
                "text": finding.text,
                "cure": finding.cure,
            }
            for check, finding in found
        ],
    }


def findings_text(found: Sequence["CheckedFinding"]) -> Iterator[str]:
    """The findings as aligned lines, a cure below its finding, and the counts."""
    cells = [
        [finding.state, check.name, finding.text + (f"\ncure: {finding.cure}" if finding.cure else "")]
        for check, finding in found
    ]
    yield from table_lines(fitted(cells))
    yield ", ".join(f"{count} {state}" for state, count in _counts(found).items())


def _counts(found: Sequence["CheckedFinding"]) -> dict[str, int]:
    counts = Counter(one.finding.state for one in found)
    return {state: counts[state] for state in ("ok", "warning", "failure", "skipped")}

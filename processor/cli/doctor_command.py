"""`statestore doctor`: checks a set-up, and names the cure of each problem."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from processor.cli.options import JOB, add_settings, reachable_settings
from processor.cli.visible_text import visible_lines
from processor.text_table import fitted, table_lines

if TYPE_CHECKING:
    from processor.doctor.examine import CheckedFinding


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "doctor", help="check the set-up of a job: this machine, the ways, the table, the registry, the topics"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser, *JOB, "checkpoint")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.doctor.doctor_checks import CHECKS, CHECKS_OF_POSTGRES
    from processor.doctor.examine import examine
    from processor.doctor.surroundings import RealSurroundings

    with reachable_settings(options) as settings:
        around = RealSurroundings(settings, embedded=options.embedded)
        try:
            found = list(examine(CHECKS_OF_POSTGRES if settings.store == "postgres" else CHECKS, around))
        finally:
            around.close()
    print(json.dumps(findings_json(found), indent=2) if options.json else visible_lines(findings_text(found)))
    return 1 if any(one.finding.state == "failure" for one in found) else 0


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

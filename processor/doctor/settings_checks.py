"""Settings that are valid, and all the same a risk."""

from collections.abc import Iterator

from processor.doctor.surroundings import Surroundings
from processor.findings.finding import Finding, ok, warning
from processor.settings.settings import mistyped_variables

SHORTEST_WAIT = 1.0
LONGEST_WAIT = 60.0
FEWEST_MARKER_DAYS = 7
"""A dead letter waits for a person: over a weekend, and until the definitions are correct."""


def check_waits(around: Surroundings) -> Iterator[Finding]:
    """The time that the job gives to the indexes of the table."""
    wait = around.settings.wait_seconds
    if wait < SHORTEST_WAIT and not around.embedded:
        text = f"W is {wait:g} s: an index may be later, and then a document stays old until its rows change again"
        yield warning(text, f"--wait-seconds {5}, or at least {SHORTEST_WAIT:g}")
    elif wait > LONGEST_WAIT:
        text = f"W is {wait:g} s: each start after a failure waits so long, and each correction"
        yield warning(text, f"--wait-seconds {5}, or at most {LONGEST_WAIT:g}")
    else:
        yield ok(f"W is {wait:g} s, S is {around.settings.settle_seconds:g} s")


def check_markers(around: Surroundings) -> Iterator[Finding]:
    """The time for which deleted rows are remembered."""
    days = around.settings.marker_days
    if days < FEWEST_MARKER_DAYS:
        text = f"marker_days is {days}: the job refuses to replay a dead letter that is older"
        yield warning(text, f"--marker-days {FEWEST_MARKER_DAYS} or more; 30 is the default")
    else:
        yield ok(f"deleted rows are remembered for {days} days")


def check_variables(around: Surroundings) -> Iterator[Finding]:
    """The variables that look like settings, and are none."""
    mistyped = mistyped_variables(around.variables())
    for name, meant in mistyped.items():
        yield warning(
            f"no setting reads the variable {name}", f"did you mean {meant}? Rename the variable, or unset it"
        )
    if not mistyped:
        yield ok("no variable STATESTORE_... has a mistyped name")

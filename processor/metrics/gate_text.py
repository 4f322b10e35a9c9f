"""The documents that wait at gates, in words, from the report of a job (`processor.job.monitor`). Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from processor.gates.wait import AwaitedTransaction
from processor.wording.durations import duration_text


def gate_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """A line for each product of which documents wait, and one where documents went out too early. A report of an older release
    has no gates."""
    for product, gate in sorted(report.get("gates", {}).items()):
        if gate["waiting"]:
            found = gate["transaction"]
            waits_for = f"; it waits for {AwaitedTransaction(**found).text}" if found else ""
            age = duration_text(max(0.0, report["at"] - gate["since"]))
            yield f"gate of {product}: {gate['waiting']:,} documents wait, the oldest for {age}{waits_for}"
    if count := report.get("counts", {}).get("released incomplete"):
        yield f"gates: {count:,} documents went out at `at_most`, perhaps with a part of a transaction (docs/gates.md)"

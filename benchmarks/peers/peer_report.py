"""Format the results of the peers as the Markdown table of docs/benchmarks.md."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median

from benchmarks.peers.measure import PeerResult
from benchmarks.tables import format_table, machine_name

HEAD = (
    *("system", "version", "events", "events/s a core", "messages per event", "messages per document"),
    *("documents", "wrong", "CPU seconds of the start", "survives a crash"),
)


def format_peers(results: Sequence[PeerResult], missing: Mapping[str, str]) -> str:
    """The table, with the machine above it, and below it each system without a result."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    title = f"{datetime.now(UTC):%Y-%m-%d}, {machine_name()}; load average at the end {load}."
    without = [f"**{name}** is not in the table: {reason}" for name, reason in missing.items()]
    return "\n\n".join([title, format_table(HEAD, map(_row, results)), *without])


def _row(result: PeerResult) -> tuple[str, ...]:
    compared = result.compared
    wrong = f"{compared.wrong:,}" + ("" if result.ordered else ", in any order of the lists")
    return (
        result.title,
        result.version,
        f"{result.events:,}",
        _spread([result.events / cpu for cpu in result.cpu], ",.0f"),
        f"{compared.messages / result.events:.2f}",
        f"{compared.messages / compared.documents:.1f}",
        f"{compared.documents:,}",
        wrong,
        _spread(result.starts, ".1f") or "left out",
        result.durable,
    )


def _spread(values: Sequence[float], form: str) -> str:
    """Min / median / max, or the only value."""
    shown = (min(values), median(values), max(values)) if len(values) > 1 else values
    return " / ".join(format(value, form) for value in shown)

"""Run a peer over a history, and compare its last documents with the answer of SQL.

Promises: the figures of a peer are the CPU seconds of all its processes on one core, without those of a run over one event.
Does not: take the CPU of the job's stores and of its start-up into account (`benchmarks.job`).
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.documents import Comparison, Documents, compare, read_statestore, sql_documents
from benchmarks.peers.environment import installed_version, peer_python
from benchmarks.peers.peer import Files, Peer
from benchmarks.peers.process_tree import cpu_of
from benchmarks.run import run_alone
from benchmarks.steps import BATCH
from benchmarks.tables import format_table, machine_name
from processor.cli.options import print_progress
from processor.tools.demo.github import RecordedLine
from processor.values.recorded_topics import read_records

JOB_TITLE = "statestore's job"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """The runs of one peer. `starts`: CPU seconds of the runs over one event, empty if the clock began later; `cpu`: CPU seconds
    of the other runs, without the median of the starts; `compared`: the messages of the last run."""

    title: str
    version: str
    events: int
    cpu: Sequence[float]
    starts: Sequence[float]
    compared: Comparison
    ordered: bool
    durable: str


def write_files(directory: Path, lines: Sequence[RecordedLine]) -> Files:
    """The files of a history, in a new directory."""
    directory.mkdir()
    files = Files(directory=directory)
    files.history.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files.changes.write_text("".join(json.dumps(change) + "\n" for change in envelopes(lines)), encoding="utf-8")
    return files


def envelopes(lines: Sequence[RecordedLine]) -> Iterator[dict[str, Any]]:
    """The events as Debezium envelopes. A row also has its `table`, and `k`: its key, which no row of another table has."""
    rows: dict[str, dict[str, Any]] = {}
    for line in lines:
        k = "#".join([line["topic"], *map(str, line["key"].values())])
        before, after = rows.pop(k, None), line["value"] and {"k": k, "table": line["topic"], **line["value"]}
        if after:
            rows[k] = after
        yield {"before": before, "after": after, "op": "d" if after is None else "u" if before else "c"}


def measure_peer(peer: Peer, whole: Files, one: Files, answer: Documents, repetitions: int) -> PeerResult:
    """Runs the peer this many times over one event, and over the whole history. Raises StatestoreError if pip cannot install the
    peer, or its program fails."""
    python = peer_python(peer.group, peer.requirement) if peer.requirement else Path(sys.executable)
    starts = [_run(peer, python, one) for _ in range(repetitions)]
    cpu = [_run(peer, python, whole) - median(starts) for _ in range(repetitions)]
    return PeerResult(
        title=peer.title,
        version=installed_version(python, peer.package),
        events=sum(1 for _ in read_records(str(whole.history))),
        cpu=cpu,
        starts=starts,
        compared=compare(peer.read(whole.documents), answer, ordered=peer.ordered),
        ordered=peer.ordered,
        durable=peer.durable,
    )


def _run(peer: Peer, python: Path, files: Files) -> float:
    output = files.documents if peer.prints else files.directory / "output"
    cpu = cpu_of([str(python), *peer.arguments(files)], output, files.directory / "errors")
    print_progress(f"{peer.title}: {cpu:.1f} CPU seconds ({files.directory.name})")
    return cpu


def measure_job_peer(files: Files, events: int, users: int) -> PeerResult:
    """Runs statestore's job once on DynamoDB Local, over a history of its own."""
    print_progress(f"{JOB_TITLE} on DynamoDB Local: {events:,} events (minutes)")
    sizes = {"--store": "local", "--events": events, "--users": users, "--batch": BATCH, "--documents": files.documents}
    found = run_alone("benchmarks.job", *(str(x) for pair in sizes.items() for x in pair))
    return PeerResult(
        title=JOB_TITLE,
        version=f"PySpark {installed_version(Path(sys.executable), 'pyspark')}",
        events=events,
        cpu=[found["cpu"]],
        starts=(),
        compared=compare(
            read_statestore(files.documents), sql_documents(read_records(str(files.history))), ordered=True
        ),
        ordered=True,
        durable="state, progress and documents",
    )


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

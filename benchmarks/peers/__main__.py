"""`make bench-peers`: the same history through statestore and through other systems, and the table of benchmarks/results.md.

    python -m benchmarks.peers [try] [pathway] [flink] [job] [--repetitions 3] [--write]

Each run is a process of its own on one core. Progress goes to standard error. Without names, all of them run.
`--write` writes the table into benchmarks/results.md, between its markers.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.inputs.history import generate_history
from benchmarks.peers.documents import sql_documents
from benchmarks.peers.measure import PeerResult, format_peers, measure_job_peer, measure_peer, write_files
from benchmarks.peers.peer import GROUPS, JOB, PEERS
from benchmarks.run import DOCUMENT, insert_tables
from processor.cli.options import print_progress
from processor.errors import StatestoreError
from processor.values.recorded_topics import read_records

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"


def main() -> None:
    """Measures and prints the table; with --write, writes it into the document."""
    options = argparse.ArgumentParser(description="Runs one history through statestore and through other systems.")
    options.add_argument("groups", nargs="*", metavar="SYSTEM", help=f"{', '.join(GROUPS)} (default: all)")
    options.add_argument("--events", type=int, default=40_000)
    options.add_argument("--users", type=int, default=3_000)
    options.add_argument("--job-events", type=int, default=20_000, help="events of the job, whose stores are slow here")
    options.add_argument("--repetitions", type=int, default=3, help="runs of each system; the job has one")
    options.add_argument("--write", action="store_true", help=f"write the table into {DOCUMENT.name}")
    given = options.parse_args()
    if unknown := set(given.groups) - set(GROUPS):
        options.error(f"no system is called {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    results, missing = _measure(given)
    text = format_peers(results, missing)
    print(text)
    if given.write:
        document = insert_tables(DOCUMENT.read_text(encoding="utf-8"), text, BEGIN, END)
        DOCUMENT.write_text(document, encoding="utf-8")


def _measure(given: argparse.Namespace) -> tuple[list[PeerResult], dict[str, str]]:
    """The results, and the reason of each system that has none."""
    results: list[PeerResult] = []
    missing: dict[str, str] = {}
    groups = given.groups or GROUPS
    with tempfile.TemporaryDirectory(prefix="statestore-peers-") as directory:
        lines = list(generate_history(1, given.events, given.users))
        whole, one = (
            write_files(Path(directory) / "whole", lines),
            write_files(Path(directory) / "one event", lines[:1]),
        )
        answer = sql_documents(read_records(str(whole.history)))
        for peer in PEERS:
            if peer.group in groups:
                try:
                    results.append(measure_peer(peer, whole, one, answer, given.repetitions))
                except StatestoreError as error:
                    missing[peer.title] = str(error)
                    print_progress(f"{peer.title}: not measured: {error}")
        if JOB in groups:
            users = given.job_events * given.users // given.events
            files = write_files(Path(directory) / "job", list(generate_history(1, given.job_events, users)))
            results.append(measure_job_peer(files, given.job_events, users))
    return results, missing


if __name__ == "__main__":
    main()

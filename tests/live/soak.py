"""Searches for wrong documents under real change streams: an application writes by chance, and Debezium, the broker and the job
are killed with -9 in turn. At the end every document equals the SELECT over the application's own database.

    .venv/bin/python -m tests.live.soak --minutes 10 --seed 1

Promises: after a restart, the next kill waits for a new document. The seed decides the writes, the order of the kills and the
pauses; their moments differ from run to run.
"""

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass
from random import Random
from time import sleep

from processor.environment.stores.kinds import KINDS, embedded_kind
from processor.tools.demo.live import DEBEZIUM, JOB, JOB_FLAGS, LOOK_SECONDS, LiveDocuments, finish, live_parts
from tests.live.kills import kill_in_turn

LONGEST_PAUSE = 15.0
"""Seconds between a document after a restart and the next kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    """`steps`: transactions of the application; `killed` and `ended`: how often each part was killed, and ended by itself."""

    steps: int
    killed: Counter[str]
    ended: Counter[str]
    documents: int
    wrong: list[str]
    dead_letters: int


def soak(seconds: float, seed: int, pause: float, store: str) -> SoakResult:
    """Writes for `seconds`, and longer until each part was killed once. `pause`: seconds between two transactions; `store`: has
    the job's table."""
    with live_parts(store, JOB_FLAGS) as parts:
        parts.create_source(seed)
        parts.start_writing("--seed", str(seed), "--pause", str(pause))
        parts.start(DEBEZIUM)
        parts.start(JOB)
        documents = LiveDocuments(parts)
        killed = kill_in_turn(parts, documents, seconds, Random(seed), LONGEST_PAUSE)
        parts.stop_writing()
        while parts.writes():
            sleep(LOOK_SECONDS)
        finish(parts)
        count, wrong = documents.compare()
        return SoakResult(
            steps=int(parts.application_lines()[-1].split()[2]),
            killed=killed,
            ended=Counter(parts.ended),
            documents=count,
            wrong=wrong,
            dead_letters=documents.dead_letters(),
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.live.soak")
    parser.add_argument("--minutes", type=float, default=10, help="how long the application writes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=1, help="seconds between two transactions")
    parser.add_argument(
        "--store", choices=tuple(KINDS), default=embedded_kind().name, help="the place of the job's table"
    )
    given = parser.parse_args()
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "embedded")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "embedded")
    result = soak(given.minutes * 60, given.seed, given.pause, given.store)
    print(result)
    sys.exit(bool(result.wrong or result.dead_letters))


if __name__ == "__main__":
    main()

"""A sample of seeds, on two processes; `python -m tests.simulator.soak` runs as many as one likes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator.run import simulate
from tests.simulator.seeds import explained, run_many

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("STATESTORE_SEEDS", "10000"))
DIGEST = (
    "from tests.simulator.run import simulate\nfor seed in range(40): print(simulate(seed, trace=True).world.trace)"
)


def test_every_seed_ends_right() -> None:
    total = run_many(0, SEEDS, processes=2, told=lambda _: None)
    if total.wrong:
        seed, verdict = min(total.wrong.items())
        pytest.fail(f"{len(total.wrong)} of {total.seeds} seeds are wrong\n{explained(seed, verdict)}")
    assert total.faults.keys() >= {"crash before", "task lost", "zombie job", "zombie task", "checkpoint lost"}


def test_one_seed_is_one_run_whatever_the_hash_seed() -> None:
    def traces(hash_seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", DIGEST], env=env, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    assert traces("1") == traces("2")


def test_a_suspended_actor_is_played_back_to_where_it_was() -> None:
    runs = [simulate(seed, boost={"zombie": 1.0, "acts": 0.6, "faults": 3}) for seed in range(60)]
    assert sum(run.world.faults["zombie job"] + run.world.faults["zombie task"] for run in runs) > 30
    assert [run.seed for run in runs if run.verdict] == []

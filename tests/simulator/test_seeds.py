"""A sample of seeds, on two processes. `python -m tests.simulator.soak` runs any number of seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator.seeds import SEEDS, explain, run_many
from tests.simulator.simulate import simulate

ROOT = Path(__file__).parents[2]
DIGEST = "from tests.simulator.simulate import simulate\nfor seed in range(40): print(simulate(seed, trace=True).world.trace)"


def test_every_seed_ends_right() -> None:
    total = run_many(0, SEEDS, processes=2, report=lambda _: None)
    if total.wrong:
        seed, problem = min(total.wrong.items())
        pytest.fail(f"{len(total.wrong)} of {total.seeds} seeds are wrong\n{explain(seed, problem)}")
    assert total.faults.keys() >= {"crash before", "task lost", "zombie job", "zombie task", "checkpoint lost"}


@pytest.mark.rest
def test_a_seed_gives_the_same_run_for_any_hash_seed() -> None:
    def traces(hash_seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", DIGEST], env=env, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    assert traces("1") == traces("2")


def test_a_suspended_actor_continues_where_it_was() -> None:
    runs = [
        simulate(seed, overrides={"zombie_chance": 1.0, "zombie_turn_chance": 0.6, "max_faults": 3})
        for seed in range(60)
    ]
    assert sum(run.world.faults["zombie job"] + run.world.faults["zombie task"] for run in runs) > 30
    assert [run.seed for run in runs if run.problem] == []

"""Small worlds in which rare things are frequent: topics that change, lags of single rows, crashes between two durable requests,
and operators who erase, replay and edit at once. Every history ends right, and is right whenever the job rests."""

from dataclasses import replace

import pytest

from processor.engine.protocol.epochs import Epochs
from tests.simulator.run import Simulation
from tests.simulator.seeds import Kind, at_least, overrides_of, share, simulation_of
from tests.simulator.simulate import simulate
from tests.simulator.spark_checkpoint import Checkpoint
from tests.simulator.without import committed
from tests.simulator.worlds import QUIET, scripted

SEEDS: dict[Kind, int] = {
    "topics": share(5),
    "shared topics": share(20),
    "mixed": share(10),
    "mixed edits": share(20),
    "drawn edits": share(100),
    "computed edits": share(40),
}
FACTS: dict[Kind, tuple[str, ...]] = {
    "topics": ("grow", "create again", "cut", "retain"),
    "shared topics": ("grow", "create again"),
    "mixed": ("grow", "erased", "replays"),
    "mixed edits": ("grow", "erased", "replays", "edits"),
    "drawn edits": ("grow", "edits"),
    "computed edits": ("grow", "edits"),
}
"""What the histories of a kind have."""


def runs_of(kind: Kind) -> list[Simulation]:
    return [
        simulate(seed, overrides=overrides_of(seed, kind), simulation_class=simulation_of(kind))
        for seed in range(SEEDS[kind])
    ]


@pytest.mark.parametrize("kind", SEEDS)
def test_every_history_of_a_wide_world_ends_right(kind: Kind) -> None:
    runs = runs_of(kind)
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    for fact in FACTS[kind]:
        assert sum(run.facts[fact] for run in runs) >= at_least(SEEDS[kind] / 10), fact
    assert sum(run.world.faults["crash before"] for run in runs) >= at_least(SEEDS[kind] / 4)


def test_a_crash_aims_at_the_numbered_instant_before_a_kind_of_durable_request() -> None:
    conditions = {**QUIET, "aims": (("commit", 2), ("commit", 3)), "events": 12}
    runs = [simulate(seed, overrides=conditions, trace=True) for seed in range(5)]
    for run in runs:
        commits = [line for line in run.world.trace or () if " commit " in line]
        assert ["FAULT" in line for line in commits[:4]] == [False, True, True, False]


class CreatedAgain(Simulation):
    """The job dies between the rows of its last batch and the commit. Then the topic of the stars is created again, an operator
    records its epoch and begins a new checkpoint, and the source sends a snapshot, which changes no row."""

    def end_job(self) -> None:
        super().end_job()
        if self.checkpoint.batch and not self.facts["created again"]:
            self.facts["created again"] = 1
            self.logs["star", 0] = [replace(self.logs["star", 0][-1], offset=0)]
            self.available["star", 0] = 1
            self.epochs = Epochs(steps={("user", 0): ((0, 1),), ("star", 0): ((0, 2),)})
            self.checkpoint = Checkpoint(offsets={("user", 0): 1, ("star", 0): 0}, batch=5)


def test_a_row_that_no_batch_committed_leaves_its_document_after_its_topic_was_created_again() -> None:
    overrides = scripted("a star moves to another user", consistent=True, tick_chance=0, aims=(("commit", 4),))
    assert simulate(1, overrides=overrides, simulation_class=CreatedAgain).problem is None
    run = simulate(1, overrides=overrides, simulation_class=CreatedAgain, switch=committed.older_than_the_batch)
    assert """wrong at the end: ('profile', '{"email":"x"}')""" in (run.problem or "")

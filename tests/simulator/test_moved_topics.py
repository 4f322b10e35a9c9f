"""An operator moves an entity to another topic, and back, makes epochs begin again, and erases rows, at any moment: every history
ends as if the source had written all records to one topic, without those of the erased rows."""

from typing import Any

import pytest

import processor.progress.topic_moves as topic_moves
import tests.simulator.moved_topics as simulation
from processor.driver.eraser import Eraser
from processor.progress.epochs import Epochs
from processor.progress.erasures import Erasure
from tests.simulator.moved_topics import MOVES, MovingSimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without.switch import Switch, always, replacing

SEEDS = share(30)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, overrides: dict[str, Any], **more: Any) -> Simulation:
    return simulate(seed, simulation_class=MovingSimulation, overrides={**MOVES, **overrides}, **more)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_with_moves_rebuilds_and_erasures_ends_right(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    for fact in ("moves", "rebuilds", "erasures ended"):
        assert sum(run.facts[fact] for run in runs) >= at_least(SEEDS / 12)


NO_OFFSETS = replacing((Erasure, "covers", lambda covers: lambda self, version, _="": covers(self, version)))
NOT_TO_THE_END = replacing((topic_moves, "is_read", always(True)))
AT_ONCE = replacing((topic_moves, "has_begun", always(True)))
SAME_EPOCH = replacing((simulation, "read_epochs", always(Epochs(steps={}))))
FROM_THE_FIRST = replacing(
    (
        topic_moves,
        "first_offsets",
        lambda _: lambda entity, topic, topic_id, partitions, _: dict.fromkeys(partitions, 0),
    )
)


@pytest.mark.parametrize(
    ("seed", "overrides", "switch"),
    [
        (7, {}, NO_OFFSETS),
        (3, {}, NOT_TO_THE_END),
        (3, {}, AT_ONCE),
        (2, {}, SAME_EPOCH),
        (1, {}, FROM_THE_FIRST),
        (1870, HARD, replacing((Eraser, "is_back", always(False)))),
    ],
    ids=[
        "an erasure covers offsets of the incarnations that it knows",
        "the job reads the former topic to its end",
        "the job waits for the first record of the next topic",
        "the epochs rise with a move",
        "a topic that comes back goes on where the entity left it",
        "an erasure looks at the row at its end",
    ],
)
def test_a_history_of_moves_ends_wrong_without_the_protection(
    seed: int, overrides: dict[str, Any], switch: Switch
) -> None:
    assert run(seed, overrides).problem is None
    assert run(seed, overrides, switch=switch).problem is not None

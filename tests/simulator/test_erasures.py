"""An operator erases rows at any moment: every history ends as if the source had never sent their records."""

from typing import Any

import pytest

import processor.driver.eraser as eraser
import processor.rounds.write_stage as write_stage
import processor.steps.erase as step
import processor.steps.publish as publish
from statestore.items import read_row
from statestore.row_writes import merge_image
from tests.simulator.erased_rows import OVERRIDES, ErasedLettersSimulation, ErasingSimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without.switch import Switch, always, replacing

SEEDS = share(30)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, overrides: dict[str, Any], *, of: type[Simulation] = ErasingSimulation, **more: Any) -> Simulation:
    return simulate(seed, simulation_class=of, overrides={**OVERRIDES, **overrides}, **more)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_ends_as_if_the_source_had_not_sent_the_erased_records(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["erasures ended"] for run in runs) >= at_least(SEEDS / 6)
    assert sum(run.world.faults["crash after"] for run in runs) >= at_least(SEEDS / 40)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_no_replay_of_a_dead_letter_brings_an_erased_row_back_or_keeps_its_keys(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides, of=ErasedLettersSimulation) for seed in range(max(1, SEEDS // 6))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["erasures ended"] for run in runs) >= at_least(SEEDS / 12)
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 12)


def test_an_erased_row_leaves_its_keys_in_the_note_of_a_replay_without_the_protection() -> None:
    no_notes = replacing((eraser, "notes_of_row", always([])))
    assert run(4, {}, of=ErasedLettersSimulation).problem is None
    problem = run(4, {}, of=ErasedLettersSimulation, switch=no_notes).problem
    assert problem is not None
    assert "keeps join keys of" in problem


NO_LIST = replacing((write_stage, "split_erased", lambda _: lambda changes, *_: (list(changes), [])))
NO_FORMER_KEYS = replacing((step, "open_change", lambda make: lambda entity, row, _: make(entity, row, frozenset())))
PENDING_KEYS = replacing(
    (step, "write_bare_marker", lambda _: lambda marker, item: merge_image(marker, read_row(item), keep_from=""))
)
NO_SEQUENCES = replacing((publish, "may_be_erased", always(False)))


@pytest.mark.parametrize(
    ("seed", "overrides", "switch"),
    [
        (24, {}, NO_LIST),
        (28, {}, NO_FORMER_KEYS),
        (1, HARD, PENDING_KEYS),
        (27, {"shape": "pair"}, NO_SEQUENCES),
    ],
    ids=[
        "a record from before the erasure does not count",
        "the open change keeps the former keys",
        "the marker keeps no former keys",
        "the erasure keeps the sequences of tombstones",
    ],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, overrides: dict[str, Any], switch: Switch) -> None:
    assert run(seed, overrides).problem is None
    assert run(seed, overrides, switch=switch).problem is not None

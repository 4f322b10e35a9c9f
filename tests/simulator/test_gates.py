"""Documents that wait at gates: every history ends as without a gate, and shows no part of a transaction meanwhile."""

from typing import Any

import pytest

from tests.simulator.gated_products import GatedSetSimulation, GatedSimulation
from tests.simulator.repeated_transactions import RepeatedSimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.source_transactions import TransactionSimulation
from tests.simulator.worlds import CONSISTENT, CRASHES

SEEDS = share(12)
HARD = {**CRASHES, "zombie_chance": 1.0, "checkpoint_loss_chance": 1.0}
WORLDS = pytest.mark.parametrize("overrides", [{}, HARD, CONSISTENT], ids=["plain", "hard", "consistent"])


@WORLDS
def test_every_history_ends_right_and_messages_keep_their_distance(overrides: dict[str, Any]) -> None:
    runs = [simulate(seed, simulation_class=GatedSimulation, overrides=overrides) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.total_tally()["held"] for run in runs) >= at_least(SEEDS)


def test_gates_change_while_the_job_runs_and_every_history_ends_right() -> None:
    runs = [
        simulate(seed, simulation_class=GatedSetSimulation, overrides={"shape": "edits"}) for seed in range(share(200))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}


@WORLDS
def test_no_document_shows_a_part_of_a_transaction_and_none_waits_without_need(overrides: dict[str, Any]) -> None:
    runs = [
        simulate(seed, simulation_class=TransactionSimulation, overrides=overrides)
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["looked at"] for run in runs) >= at_least(SEEDS / 24)


@WORLDS
def test_no_document_shows_a_part_of_what_a_connector_sends_again(overrides: dict[str, Any]) -> None:
    calm = {**overrides, "late_events": False, "truncate_chance": 0}
    runs = [simulate(seed, simulation_class=RepeatedSimulation, overrides=calm) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["looked at"] for run in runs) >= at_least(SEEDS / 24)

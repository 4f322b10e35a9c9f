"""Operators edit the registry while the job runs: every history ends with the documents of the products as they are then."""

from typing import Any

import pytest

from processor.job.run import topics
from tests.simulator.column_edits import ColumnSimulation
from tests.simulator.mixed import MixedEditSimulation
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.scripted_edits import ScriptedEditSimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.topic_edits import TopicSimulation
from tests.simulator.without.switch import replacing
from tests.simulator.worlds import scripted

SEEDS = share(15)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 5, "checkpoint_loss_chance": 1.0, "lag": "long"}


@pytest.mark.parametrize("overrides", [{}, {"max_faults": 0}, HARD], ids=["plain", "no faults", "hard"])
def test_every_history_ends_with_the_documents_of_the_last_registry(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=EditSimulation, overrides={"shape": "edits", **overrides})
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["edits"] for run in runs) >= at_least(SEEDS)
    assert sum(run.total_tally()["filled"] > 0 for run in runs) >= at_least(SEEDS / 20)


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_columns_that_operators_drop_and_declare_again_show_no_old_value(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=ColumnSimulation, overrides={"shape": "edits", **overrides})
        for seed in range(max(1, SEEDS // 6))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["drops"] for run in runs) >= at_least(SEEDS / 6)


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_a_topic_that_a_product_gets_again_shows_its_last_documents(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=TopicSimulation, overrides={"shape": "edits", **overrides})
        for seed in range(max(1, SEEDS // 6))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["other topics"] for run in runs) >= at_least(SEEDS / 6)


class TakenTopicSimulation(ScriptedEditSimulation):
    """A run whose products go on above the sequences of the messages that their topics had."""

    prepare: Any = MixedEditSimulation.prepare
    _messages: Any = MixedEditSimulation._messages

    def run(self) -> None:
        with replacing((topics, "read_topic", lambda _: self._messages))():
            super().run()


def test_a_product_that_gets_the_topic_of_one_that_went_continues_its_sequences() -> None:
    overrides = scripted("a product gets the topic of one that went", shape="edits")
    run = simulate(1, simulation_class=TakenTopicSimulation, overrides=overrides)
    assert run.problem is None
    shown = [
        dict(message.headers)["statestore.sequence"]
        for _, message in run.world.broker.log
        if message.topic == "profile"
    ]
    assert shown == [b"1", b"2", b"3", b"4", b"5", b"6"]
    problem = simulate(1, simulation_class=ScriptedEditSimulation, overrides=overrides).problem
    assert problem == """the sequence falls: ('profile', '{"email":"x"}') 2 after 4"""

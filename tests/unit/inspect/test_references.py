"""The rows of other entities that hold a join key of a row."""

from typing import Any

from processor.inspect.rows import Reference, references
from processor.records.record import Record
from processor.rounds.step_runner import StepRunner
from processor.settings.settings import Settings
from processor.trial.trial import Trial
from tests.unit.steps.example import PLAN


def test_both_sides_of_every_join_are_asked_and_the_answers_are_checked() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    lines: list[tuple[str, dict[str, Any]]] = [
        ("user", {"id": 1, "name": "ada", "bio": ""}),
        ("star", {"id": 5, "who": "ada", "repo": 3}),
        ("star", {"id": 6, "who": "bob", "repo": 3}),
        ("repo", {"id": 3, "title": "t", "forks": 0}),
        ("team", {"id": 8, "members": [1, 2]}),
    ]
    trial.batch(
        Record(topic=topic, partition=0, offset=n, key=None, value=repr(row).replace("'", '"').encode())
        for n, (topic, row) in enumerate(lines)
    )

    def found(entity: str, row: dict[str, Any]) -> dict[tuple[str, ...], tuple[Any, ...]]:
        (answer,) = StepRunner(store=trial.store).run([references(PLAN, entity, row)])
        assert all(isinstance(one, Reference) for one in answer)
        return {(one.entity, *one.columns): one.keys for one in answer if one.keys}

    assert found("user", lines[0][1]) == {("star", "who"): ({"id": 5},), ("team", "members[]"): ({"id": 8},)}
    assert found("repo", lines[3][1]) == {("star", "repo"): ({"id": 5}, {"id": 6})}
    assert found("star", lines[2][1]) == {("repo", "id"): ({"id": 3},)}

"""A row that the table takes has room for its updates: the limit counts the keys and edges that an update copies."""

import json

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import rejected_record
from processor.values.record import Record

DEFINITIONS = {
    "entities.yaml": json.dumps(
        {
            "team": {"key": ["id"], "columns": {"id": "int", "ids": "int[]", "motto": "string"}},
            "user": {"key": ["id"], "columns": {"id": "int"}},
        }
    ),
    "teams.yaml": json.dumps(
        {
            "product": "teams",
            "root": "team",
            "fields": ["id", "motto"],
            "embed": {"n": {"many": "user", "on": {"id": "ids[]"}, "value": "count(*)"}},
        }
    ),
}


def team(offset: int, elements: int, motto: str) -> Record:
    row = {"id": 1, "ids": list(range(elements)), "motto": motto}
    return Record(topic="team", partition=0, offset=offset, key=b'{"id":1}', value=json.dumps(row).encode())


@pytest.mark.parametrize("elements", [2_000, 10_000, 12_000, 15_000, 20_000])
def test_every_update_of_an_accepted_row_is_accepted_too(elements: int) -> None:
    trial = Trial(plan=plan_alone(load(DEFINITIONS), 20), settings=Settings())
    accepted = trial.batch([team(0, elements, "first")])["applied"]
    for offset, motto in enumerate(("second", "third"), start=1):
        assert trial.batch([team(offset, elements, motto)])["applied"] == accepted
    assert {rejected_record(m).reason for m in trial.rejects.messages} == (
        set()
        if accepted
        else {
            "the row does not fit into an item of the table: its columns, and twice its join keys and edges, have room in 400 KB"
        }
    )


def test_the_limit_lies_between_few_and_very_many_elements() -> None:
    trial = Trial(plan=plan_alone(load(DEFINITIONS), 20), settings=Settings())
    assert trial.batch([team(0, 2_000, "few")])["applied"] == 1
    assert trial.batch([team(1, 20_000, "very many")])["dead letters"] == 1

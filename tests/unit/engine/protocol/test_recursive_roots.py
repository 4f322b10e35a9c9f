"""A change in a tree reads each row above it once, whatever the number of levels that a product may have."""

import json
from collections import Counter

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record

ENTITIES = "category: {key: [id], columns: {id: int, parent_id: int, name: string}}"
PRODUCT = """
product: tree
root: category
fields: [id]
embed: {below: {many: category, on: {parent_id: id}, recursive: LEVELS, fields: [id, name]}}
"""


def spent(levels: int, depth: int) -> tuple[Counter[str], dict[int, object]]:
    """The requests of a change of the lowest row of a chain of `depth` rows, and the documents."""
    plan = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT.replace("LEVELS", str(levels))}), 5)
    trial = Trial(plan=plan, settings=Settings())
    for n in range(depth):
        trial.batch([_row(n, {"id": n, "parent_id": n - 1 if n else None, "name": "old"})])
    before = Counter(trial.tally)
    trial.batch([_row(depth, {"id": depth - 1, "parent_id": depth - 2, "name": "new"})])
    documents = {json.loads(one.key or b"")["id"]: json.loads(one.value or b"") for one in trial.published.messages}
    return trial.tally - before, documents


def _row(offset: int, row: dict[str, object]) -> Record:
    return Record(topic="category", partition=0, offset=offset, key=None, value=json.dumps(row).encode())


@pytest.mark.parametrize("depth", [2, 5])
def test_more_possible_levels_cost_a_change_no_request_more(depth: int) -> None:
    few, many = spent(depth, depth), spent(32, depth)
    assert many[1] == few[1]
    assert many[0]["request BatchGetItem"] == few[0]["request BatchGetItem"]
    assert many[0]["request Query"] == few[0]["request Query"]


def test_a_change_of_the_lowest_row_changes_the_documents_of_all_rows_above() -> None:
    _, documents = spent(32, 3)
    assert documents[0] == {
        "id": 0,
        "below": [{"id": 1, "name": "old", "below": [{"id": 2, "name": "new", "below": []}]}],
    }

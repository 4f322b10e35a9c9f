"""Lists of rows and of keys: each row once over all pages and shards, and no page reads more than its limit. Then the rows of
other entities that hold a join key of a row.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.ledger import group_partition
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.rows import Reference, document_keys, page_of, recorded_rows, references
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import to_line
from statestore.store import Item
from tests.unit.engine.protocol.example import PLAN as EXAMPLE_PLAN

ENTITIES = "person:\n  key: [id]\n  shards: 4\n  columns: {id: int, name: string}\n"
PRODUCT = "product: adults\nroot: person\nwhere: name <> 'child'\n"
PLAN = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT}), slots=20)
PERSON = PLAN.entities["person"]


@pytest.fixture
def trial() -> Trial:
    made = Trial(plan=PLAN, settings=Settings())
    made.batch(record(n, n, {"id": n, "name": "child" if n == 3 else f"n{n}", "note": n}) for n in range(10))
    made.batch([record(10, 7, None)])
    return made


def record(offset: int, number: int, value: dict[str, object] | None) -> Record:
    body = None if value is None else canonical_json.encode(value)
    key = canonical_json.encode({"id": number})
    return Record(topic="person", partition=0, offset=offset, epoch=1, key=key, value=body)


def pages(trial: Trial, partitions: list[str], limit: int) -> Iterator[list[Item]]:
    after = None
    while True:
        page = page_of(trial.store, partitions, after, limit)
        assert len(page.items) <= limit
        yield page.items
        after = page.after
        if after is None:
            return


@pytest.mark.parametrize("limit", [1, 3, 10, 100])
def test_the_pages_have_each_row_of_all_shards_once(trial: Trial, limit: int) -> None:
    found = [row for items in pages(trial, PERSON.partitions(), limit) for row in recorded_rows(items, PERSON, {})]
    assert sorted(row.key or b"" for row in found) == [b'{"id":%d}' % n for n in range(10) if n != 7]


def test_a_listed_row_gives_the_same_row_again(trial: Trial) -> None:
    (items,) = pages(trial, PERSON.partitions(), 100)
    row = next(one for one in recorded_rows(items, PERSON, {}) if one.key == b'{"id":4}')
    assert to_line(row) == (
        '{"topic":"person","partition":0,"offset":4,"timestamp":-1,"key":{"id":4},"value":{"id":4,"name":"n4","note":4}}'
    )


@pytest.mark.parametrize("limit", [2, 100])
def test_the_keys_are_those_of_documents(trial: Trial, limit: int) -> None:
    product = PLAN.products["adults"]
    ledger = pages(trial, [group_partition(product.ledger)], limit)
    found = [key for items in ledger for key in document_keys(items, product.number)]
    assert found == [f'{{"id":{n}}}' for n in range(10) if n not in (3, 7)]


def test_both_sides_of_every_join_are_asked_and_the_answers_are_checked() -> None:
    trial = Trial(plan=EXAMPLE_PLAN, settings=Settings())
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
        (answer,) = StepRunner(store=trial.store).run([references(EXAMPLE_PLAN, entity, row)])
        assert all(isinstance(one, Reference) for one in answer)
        return {(one.entity, *one.columns): one.keys for one in answer if one.keys}

    assert found("user", lines[0][1]) == {("star", "who"): ({"id": 5},), ("team", "members[]"): ({"id": 8},)}
    assert found("repo", lines[3][1]) == {("star", "repo"): ({"id": 5}, {"id": 6})}
    assert found("star", lines[2][1]) == {("repo", "id"): ({"id": 3},)}

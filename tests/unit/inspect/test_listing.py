"""Lists of rows and of keys: each row once over all pages and shards, and no page reads more than its limit."""

from collections.abc import Iterator

import pytest

from processor.definitions.load import load
from processor.inspect.rows import document_keys, page_of, recorded_rows
from processor.plan.planning import plan_alone
from processor.progress.ledger import group_partition
from processor.records import canonical_json
from processor.records.record import Record
from processor.records.recorded_line import to_line
from processor.settings.settings import Settings
from processor.trial.trial import Trial
from statestore.store import Item

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

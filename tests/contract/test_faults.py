"""The faults of the proxy themselves, each met by the store, with both of its clients, or by a plain client: what the other
tests rely on."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import boto3
import pytest

from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Absent, Delete, Query, Refused, Transient, Write
from tests.faulty.faults import AFTER, ALL, BEFORE, LATE, UNNOTICED, UNPROCESSED, Faults, Weights
from tests.faulty.indexes import LateIndexes, Pages
from tests.faulty.proxy import Layer, proxy

USERS = [Key("TABLE#user", str(n)) for n in range(12)]
QUERY = Query(slot="GSI_1", value="a")
REGION = "eu-west-1"
Behind = Callable[..., AbstractContextManager[DynamoStore]]


@pytest.fixture(params=["lean", pytest.param("boto3", marks=pytest.mark.rest)])
def behind(request: pytest.FixtureRequest, moto: str) -> Behind:
    """Makes a store behind layers, over a table that is empty of `USERS`."""
    client = request.param

    @contextmanager
    def made(*layers: Layer, attempts: int = 6, read_s: float = 20.0) -> Iterator[DynamoStore]:
        with proxy(moto, *layers) as endpoint:
            patience = Patience(attempts=attempts, read_s=read_s, throttled_s=0.05)
            store = DynamoStore(table="faults", endpoint_url=endpoint, region=REGION, client=client, patience=patience)
            try:
                store.create(2)
                yield store
            finally:
                store.close()
        for key in USERS:
            _client(moto).delete_item(TableName="faults", Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}})

    return made


def _client(endpoint: str) -> Any:
    return boto3.client("dynamodb", endpoint_url=endpoint, region_name=REGION)


def test_every_fault_is_given_and_outlasted(behind: Behind) -> None:
    faults, pages = Faults(3, ALL, rate=0.5, late=0.8), Pages(3)
    with behind(faults, pages, read_s=0.5) as store:
        for key in USERS:
            store.write(Write(key=key, set={"GSI_1": "a"}))
        for _ in range(8):
            assert store.get(USERS).keys() == set(USERS)
            assert [row["SK"] for row in store.query(QUERY)] == sorted(key.sk for key in USERS)
    assert faults.counts.keys() == {*BEFORE, *AFTER, *LATE, *UNPROCESSED}
    assert {"one row", "empty"} <= pages.counts.keys()


@pytest.mark.parametrize("kind", [*AFTER, "late after"])
def test_a_write_whose_answer_is_lost_is_refused_by_what_it_wrote(behind: Behind, kind: str) -> None:
    with behind(Faults(1, _only(kind), rate=1.0, late=0.8), read_s=0.5) as store:
        written = {"PK": USERS[0].pk, "SK": USERS[0].sk, "n": 1}
        assert store.write(Write(key=USERS[0], set={"n": 1}, when=Absent())) == Refused(written)
        assert store.get([USERS[0]]) == {USERS[0]: written}


@pytest.mark.parametrize("kind", [*BEFORE, *LATE, *AFTER])
def test_a_fault_that_outlasts_all_attempts_is_transient(behind: Behind, kind: str) -> None:
    with behind(Faults(1, _only(kind), rate=1.0, late=0.8), attempts=2, read_s=0.5) as store, pytest.raises(Transient):
        store.write(Write(key=USERS[0], set={"n": 1}))


def test_a_batch_write_may_be_done_in_part(moto: str, behind: Behind) -> None:
    with behind(), proxy(moto, Faults(1, UNNOTICED, rate=1.0)) as endpoint:
        puts = [{"PutRequest": {"Item": {"PK": {"S": key.pk}, "SK": {"S": key.sk}}}} for key in USERS]
        left = _client(endpoint).batch_write_item(RequestItems={"faults": puts})["UnprocessedItems"]["faults"]
        stored = _client(moto).scan(TableName="faults")["Items"]
    assert 0 < len(left) <= len(puts)
    assert len(stored) == len(puts) - len(left)


def test_an_index_shows_each_row_late_and_then_as_it_is(behind: Behind) -> None:
    now = [0.0]
    lags = iter((5.0, 1.0, 2.0))
    late = LateIndexes(1, lambda _: [next(lags)], clock=lambda: now[0])
    with behind(late, Pages(1)) as store:
        store.write(Write(key=USERS[0], set={"GSI_1": "a", "n": 1}))
        store.write(Write(key=USERS[0], set={"GSI_1": "b", "n": 2}))
        store.write(Write(key=USERS[1], set={"GSI_1": "a"}))
        shown = []
        for now[0] in (0.0, 2.0, 4.9, 5.0):
            shown += [[[row["SK"] for row in store.query(Query(slot="GSI_1", value=value))] for value in "ab"]]
        assert store.get([USERS[0]])[USERS[0]]["n"] == 2
        store.delete(Delete(key=USERS[1]))
    assert shown == [[[], []], [["1"], []], [["1"], []], [["1"], ["0"]]]
    assert late.hidden == 4


@pytest.mark.rest
def test_one_seed_gives_one_run_of_faults(behind: Behind) -> None:
    given = []
    for seed in (1, 1, 2):
        faults = Faults(seed, ALL, rate=0.5)
        with behind(faults) as store:
            outcomes = [type(store.write(Write(key=key, set={"n": 1}, when=Absent()))).__name__ for key in USERS[:6]]
        given.append((outcomes, faults.counts))
    assert given[0] == given[1]
    assert given[0] != given[2]


def _only(kind: str) -> Weights:
    return {"UpdateItem": {kind: 1}}

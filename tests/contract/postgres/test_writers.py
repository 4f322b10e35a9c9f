"""Several writers on one table in Postgres: conditions, fences, expiry, and killed connections."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest

from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.store import Absent, Delete, Done, Equals, FencedWrite, FencingToken, Query, Refused, Transient, Write
from tests.contract.postgres.conftest import MakeStore
from tests.contract.postgres_servers import execute

STARS = [Key("TABLE#star", f"{n:03d}") for n in range(40)]
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'statestore' AND query <> ''"


def seq(store: PostgresStore, key: Key) -> object:
    return store.get([key])[key]["seq"]


def test_of_two_writers_with_one_condition_exactly_one_wins(make: MakeStore) -> None:
    stores, meeting = [make(), make(), make()], Barrier(3, timeout=300)

    def climb(number: int) -> Counter[tuple[Key, int]]:
        """Raises the number of each row step by step, against the others, in an order of its own."""
        won: Counter[tuple[Key, int]] = Counter()
        for n in range(8):
            meeting.wait()
            when = Equals("seq", n - 1) if n else Absent()
            keys = Random(number * 100 + n).sample(STARS, len(STARS))
            outcomes = stores[number].write_all([Write(key, {"seq": n, "by": number}, when=when) for key in keys])
            won.update((key, n) for key, one in zip(keys, outcomes, strict=True) if isinstance(one, Done))
        return won

    with ThreadPoolExecutor(3) as pool:
        won = sum(pool.map(climb, range(3)), Counter[tuple[Key, int]]())
    assert won == Counter({(key, n): 1 for key in STARS for n in range(8)})
    assert [seq(stores[0], key) for key in STARS] == [7] * len(STARS)


def test_writers_that_insert_and_delete_the_same_rows_go_on(make: MakeStore) -> None:
    stores = [make(), make()]

    def churn(number: int) -> int:
        random, done = Random(number), 0
        for n in range(60):
            keys = random.sample(STARS, 12)
            half = [Delete(key=key) for key in keys[:6]]
            outcomes = stores[number].write_all([*half, *(Write(key, {"n": n, "GSI_1": "ice"}) for key in keys[6:])])
            done += sum(isinstance(one, Done) for one in outcomes)
        return done

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(churn, range(2))) == [720, 720]
    stored = stores[0].get(STARS)
    assert [item["SK"] for item in stores[0].query(Query("GSI_1", "ice"))] == sorted(key.sk for key in stored)


def test_a_store_outlasts_connections_that_the_server_ends(make: MakeStore, url: str) -> None:
    store = make()
    for n in range(6):
        assert store.write_all([Write(key, {"seq": n}) for key in STARS])
        execute(url, END)
        assert set(store.get(STARS)) == set(STARS)
        execute(url, END)
        assert len(store.partition("TABLE#star")) == len(STARS)
        execute(url, END)
    assert store.spent["retries UpdateItem"] == 5
    assert store.requests["UpdateItem"] == 11


def test_connections_that_end_in_the_middle_of_writes_lose_none_and_repeat_none(make: MakeStore, url: str) -> None:
    store = make(attempts=50)
    ending, ended, n = True, 0, -1

    def end_often() -> None:
        nonlocal ended
        while ending:
            ended += len(execute(url, END))

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(end_often)
        try:
            while ended < 10:
                n += 1
                when = Equals("seq", n - 1) if n else Absent()
                for outcome in store.write_all([Write(key, {"seq": n}, when=when) for key in STARS]):
                    if isinstance(outcome, Refused):  # the commit was done, and its answer was lost
                        assert outcome.current is not None
                        assert outcome.current["seq"] == n
        finally:
            ending = False
    work.result()
    assert {seq(store, key) for key in STARS} == {n}


def test_a_writer_that_waits_for_a_lock_too_long_is_transient(make: MakeStore, url: str) -> None:
    store, other = make(attempts=1), make()
    other.write(Write(STARS[0], {"seq": 1}))
    store.get(STARS)
    store._session._connection.execute("SET lock_timeout = '50ms'")  # type: ignore[union-attr]

    def write(connection: object) -> None:
        with pytest.raises(
            Transient, match="table own: writing TABLE#star / 000: canceling statement due to lock time"
        ):
            store.write(Write(STARS[0], {"seq": 2}))

    def lock(connection: object) -> None:
        with connection.transaction():  # type: ignore[attr-defined]
            connection.execute("SELECT 1 FROM state_own.items FOR UPDATE")  # type: ignore[attr-defined]
            write(connection)

    other._session.send({}, "locking", lock)


# Fences


def test_a_run_that_another_run_took_over_from_writes_nothing(make: MakeStore) -> None:
    zombie, driver = make(fence=FencingToken("registry", 1)), make()
    driver.take_over(FencingToken("registry", 1))
    assert zombie.write(Write(STARS[0], {"seq": 1})) == Done(None)

    newer = make()
    newer.take_over(FencingToken("registry", 2))
    for store in (zombie, driver):
        with pytest.raises(FencedWrite, match="table own: a newer run than 1 took over: this run must stop"):
            store.write_all([Write(STARS[0], {"seq": 2}), Delete(key=STARS[1])])
        with pytest.raises(FencedWrite):
            store.take_over(FencingToken("registry", 1))
    assert seq(zombie, STARS[0]) == 1
    newer.take_over(FencingToken("registry", 2))
    assert newer.write(Write(STARS[0], {"seq": 2}, when=Equals("seq", 1))) is not None
    assert seq(newer, STARS[0]) == 2


def test_a_fence_of_another_name_counts_from_the_beginning(make: MakeStore) -> None:
    old, new = make(), make()
    old.take_over(FencingToken("registry", 57))
    new.take_over(FencingToken("another registry", 1))
    assert new.write(Write(STARS[0], {"seq": 1})) == Done(None)
    with pytest.raises(FencedWrite):
        old.write(Write(STARS[0], {"seq": 2}))


def test_a_run_that_takes_over_waits_for_writes_on_their_way_and_sees_them(make: MakeStore) -> None:
    old, new, begun = make(), make(), Barrier(2, timeout=300)
    old.take_over(FencingToken("registry", 1))
    change = old._change

    def slow(*args: object) -> None:
        begun.wait()
        change(*args)  # type: ignore[arg-type]

    old._change = slow  # type: ignore[method-assign, assignment]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(old.write_all, [Write(key, {"seq": 1}) for key in STARS])
        begun.wait()
        new.take_over(FencingToken("registry", 2))
        assert set(new.get(STARS)) == set(STARS)
        assert writing.result() == [Done(None)] * len(STARS)


# Rows that expire


def test_writes_delete_rows_whose_time_is_over(make: MakeStore) -> None:
    now = [1_000.0]
    store = make(clock=lambda: now[0])
    for key, ttl in zip(STARS, (1_050, 1_051, "1050", None), strict=False):
        store.write(Write(key, {"ttl": ttl, "GSI_1": "ice"}))
    now[0] = 1_050.0  # the store looks every 60 s
    store.write(Write(STARS[9], {"seq": 1}))
    assert set(store.get(STARS)) == {*STARS[:4], STARS[9]}

    now[0] = 1_060.0
    store.write(Write(STARS[0], {"ttl": 2_000}))
    store.write(Write(STARS[9], {"seq": 2}))
    assert set(store.get(STARS)) == {STARS[0], *STARS[2:4], STARS[9]}
    assert [item["SK"] for item in store.query(Query("GSI_1", "ice"))] == ["000", "002", "003"]
    assert store.write(Write(STARS[1], {"seq": 3}, when=Absent())) == Done(None)


def test_many_expired_rows_go_a_thousand_at_a_time(make: MakeStore) -> None:
    now = [1_000.0]
    store = make(clock=lambda: now[0])
    keys = [Key("TABLE#star", f"old{n:04d}") for n in range(1_500)]
    store.write_all([Write(key, {"ttl": 1_001}) for key in keys])
    now[0] = 2_000.0
    store.write(Write(STARS[0], {"seq": 1}))
    assert len(store.get(keys)) == 500
    store.write(Write(STARS[0], {"seq": 2}))
    assert store.get(keys) == {}

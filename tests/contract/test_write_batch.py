"""What a batch of plain writes does in every store: each write succeeds or fails alone."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from statestore.errors import Terminal, Transient
from statestore.keys import Key
from statestore.store import Absent, AbsentOrBelow, Condition, Done, Equals, Refused, Store, Write
from tests.contract.behind import Behind
from tests.contract.stored_items import KEY, item, put, read
from tests.faulty.proxy import Answer, Layer, Relay, Request


def entry(n: int, when: Condition | None, seq: int = 1) -> Write:
    return Write(Key("TABLE#user", f"user{n:03d}"), {"seq": seq, "hash": "", "na'me": 'a "b"'}, when=when)


def seqs(store: Store, writes: list[Write]) -> list[object]:
    found = store.get([write.key for write in writes])
    return [found[write.key]["seq"] for write in writes]


@pytest.mark.moto_lies("its PartiQL fails with HTTP 500 for an INSERT with parameters")
def test_each_write_of_a_batch_is_done(store: Store) -> None:
    first = [entry(n, Absent()) for n in range(60)]
    then = [entry(n, Equals("seq", 1), seq=2) for n in range(60)]

    assert store.write_batch(first) == [Done(None)] * 60
    assert store.get([first[7].key])[first[7].key] == {"PK": "TABLE#user", "SK": "user007", **first[7].set}
    assert store.write_batch(then) == [Done(None)] * 60
    assert seqs(store, then) == [2] * 60


@pytest.mark.moto_lies("its PartiQL fails with HTTP 500 for an INSERT with parameters")
def test_a_refused_write_does_not_touch_the_others(store: Store) -> None:
    store.write(entry(1, None))
    store.write(entry(2, None))
    writes = [
        entry(0, Absent(), 9),
        entry(1, Absent(), 9),
        entry(2, Equals("seq", 1), 9),
        entry(3, Equals("seq", 1), 9),
        entry(4, Absent(), 9),
    ]

    assert store.write_batch(writes) == [Done(None), Refused(None), Done(None), Refused(None), Done(None)]
    assert seqs(store, [writes[n] for n in (0, 1, 2, 4)]) == [9, 1, 9, 9]
    assert store.get([writes[3].key]) == {}


def test_a_write_of_a_batch_keeps_the_attributes_that_it_does_not_name(store: Store) -> None:
    put(store, name="Mona", seq=1)

    assert store.write_batch([Write(KEY, {"seq": 2}, when=Equals("seq", 1))]) == [Done(None)]
    assert read(store) == item(name="Mona", seq=2)


@pytest.mark.moto_lies("its PartiQL fails with HTTP 500 for an INSERT with parameters")
@pytest.mark.counted
@pytest.mark.bundled
def test_a_batch_takes_a_request_for_25_writes(store: Store) -> None:
    before = store.requests.copy()
    store.write_batch([entry(n, Absent()) for n in range(26)])

    assert store.requests - before == {"BatchExecuteStatement": 2}


@pytest.mark.parametrize(
    "write",
    [
        entry(1, None),
        entry(1, AbsentOrBelow("seq", 3)),
        entry(1, Absent())._replace(remove=("name",)),
        Write(KEY, {"seq": 1}, copy={"prev_1": "GSI_1"}, when=Absent()),
    ],
    ids=["without a condition", "below", "remove", "copy"],
)
def test_a_batch_takes_plain_writes_only(store: Store, write: Write) -> None:
    with pytest.raises(Terminal, match="a batch takes plain writes only: send this one alone"):
        store.write_batch([entry(0, Absent()), write])


def test_a_batch_writes_no_key_twice(store: Store) -> None:
    with pytest.raises(Terminal, match="a batch writes a key twice"):
        store.write_batch([entry(0, Absent()), entry(0, Equals("seq", 1))])


# Failures of single statements, which DynamoDB reports in an answer without an error


def answering(*answers: Mapping[str, Any]) -> tuple[Layer, list[int]]:
    """Gives each statement of a request the next answer. Also: the statements of each request."""
    left, sizes = iter(answers), list[int]()

    def answer(request: Request, relay: Relay) -> Answer:
        sizes.append(len(request.body["Statements"]))
        return Answer(body={"Responses": [next(left) for _ in request.body["Statements"]]})

    return answer, sizes


def failing(codes: str) -> Iterator[Mapping[str, Any]]:
    return ({"Error": {"Code": code, "Message": "why"}} for code in codes.split())


def test_a_write_that_may_pass_later_goes_out_again_alone(behind: Behind) -> None:
    codes = "ThrottlingError ProvisionedThroughputExceeded RequestLimitExceeded InternalServerError TransactionConflict"
    answer, sizes = answering({}, *failing(codes), {}, *failing("ConditionalCheckFailed"), {}, {}, {})
    with behind(answer, attempts=2) as store:
        outcomes = store.write_batch([entry(n, Absent()) for n in range(6)])

    assert outcomes == [Done(None), Done(None), Refused(None), Done(None), Done(None), Done(None)]
    assert sizes == [6, 5]


def test_a_write_that_stays_throttled_is_transient(behind: Behind) -> None:
    answer, sizes = answering({}, *failing("ThrottlingError ThrottlingError"))
    with (
        behind(answer, attempts=2) as store,
        pytest.raises(Transient, match=r"writing TABLE#user / user001: throttled \(why\): wait, or write less"),
    ):
        store.write_batch([entry(n, Absent()) for n in range(2)])
    assert sizes == [2, 1]


def test_a_write_that_nothing_helps_is_terminal(behind: Behind) -> None:
    answer, _ = answering({}, *failing("AccessDenied"))
    with (
        behind(answer) as store,
        pytest.raises(Terminal, match="writing TABLE#user / user001: AccessDeniedException: why: allow this request"),
    ):
        store.write_batch([entry(n, Absent()) for n in range(2)])

"""Random turns on Postgres and on the memory store: both give the same answers, to the letter."""

from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, AbsentOrBelow, AbsentOrWithin, Delete, Equals, Query, Read, Store, Write
from tests.contract.postgres_servers import execute

SLOTS = 3
TEXT = st.text(alphabet="a\x00\x01\x02#$%é\U0001f419\U0010ffff", min_size=1, max_size=3)
KEYS = st.tuples(st.sampled_from(["TABLE#a", "TABLE#a#01", "TABLE#a$", "EDGE#b#\x00=1"]), TEXT).map(lambda of: Key(*of))
NUMBERS = st.integers(-(10**25), 10**25) | st.decimals(-9, 9, places=3) | st.integers(0, 3)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT | st.binary(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("NSM"), inner, max_size=2)
)
SEQ = st.sampled_from(["1", "2", "3"])
CONDITIONS = st.one_of(
    st.none(),
    st.builds(Absent),
    st.builds(AbsentOrBelow, st.just("seq"), SEQ),
    st.builds(AbsentOrWithin, st.just("seq"), SEQ, SEQ, st.sampled_from(["", "other"])),
    st.builds(Equals, st.sampled_from(["seq", "value"]), SCALARS),
)
SETS = st.fixed_dictionaries(
    {}, optional={"seq": SEQ, "value": VALUES, "GSI_1": TEXT, "GSI_3": TEXT, "other": SCALARS, "ttl": NUMBERS}
)
WRITES = st.tuples(KEYS, SETS, st.sampled_from([{}, {"prev_1": "GSI_1"}]), st.just(("gone",)), CONDITIONS).map(
    lambda of: Write(*of)
)
TURNS = st.lists(WRITES | st.builds(Delete, key=KEYS, when=CONDITIONS), max_size=6)
SLOT = st.sampled_from(["GSI_1", "GSI_2", "GSI_3"])
QUERIES = st.one_of(
    st.tuples(SLOT, TEXT, st.none() | st.sampled_from(["a", "a$"])).map(lambda of: Query(*of)),
    st.tuples(SLOT, TEXT, KEYS).map(lambda of: Query(of[0], of[1], row=of[2])),
)
SOURCES = QUERIES | st.sampled_from(["TABLE#a", "TABLE#a$", "TABLE#none"])
READS = st.lists(
    st.tuples(SOURCES, st.none() | KEYS, st.integers(1, 3)).map(lambda of: Read(*of)) | SOURCES.map(Read), max_size=6
)


@given(st.lists(st.tuples(TURNS, READS), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_postgres_answers_as_the_memory_store_does(on_postgres: Any, turns: Any) -> None:
    url, store = on_postgres
    execute(url, "TRUNCATE state_contract.items")
    memory: Store = MemoryStore(SLOTS)
    keys: set[Key] = set()
    for requests, reads in turns:
        assert exact(store.write_all(requests)) == exact(memory.write_all(requests))
        keys |= {request.key for request in requests}
        assert exact(store.get(keys)) == exact(memory.get(keys))
        assert exact(store.read(reads)) == exact(memory.read(reads))


def exact(answer: Any) -> Any:
    """An answer in which 1, True and Decimal(1) differ."""
    match answer:
        case dict():
            return {name: exact(value) for name, value in answer.items()}
        case list() | tuple():
            return [type(answer).__name__, *map(exact, answer)]
        case bool() | int() | Decimal():
            return type(answer).__name__, answer
    return answer

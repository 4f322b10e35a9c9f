"""The read before a write is weak: its answer may be an earlier state of the row, and the row is right nevertheless."""

from collections import Counter
from collections.abc import Collection

import pytest

from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values.entity import PLACEHOLDER
from statestore.items import read_row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item
from tests.unit.engine.protocol.test_write_state import PLAN, stored, user

LONG = "x" * 300_000


class ForgetfulStore(MemoryStore):
    """Answers weak reads with the items of an earlier moment: the last `remember`."""

    def __init__(self) -> None:
        super().__init__(3)
        self.past: dict[Key, Item] = {}

    def remember(self) -> None:
        self.past = dict(self._items)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        super().get_weak(keys)
        return {key: self.past[key] for key in keys if key in self.past}


@pytest.fixture
def store() -> ForgetfulStore:
    return ForgetfulStore()


@pytest.fixture
def trial(store: ForgetfulStore) -> Trial:
    return Trial(plan=PLAN, settings=Settings(), other_store=store)


def test_the_store_refuses_a_write_over_an_earlier_state_and_the_step_merges_over_the_row_now(
    trial: Trial, store: ForgetfulStore
) -> None:
    trial.batch([user(0, name="ada", bio="old", seen=0)])
    store.remember()
    trial.batch([user(1, name="ada", bio="new", seen=1)])
    tally = trial.batch([user(2, name="ada", bio=PLACEHOLDER, seen=2)])
    assert requests(tally) == Counter(UpdateItem=2, BatchGetItem=1)
    columns = read_row(stored(trial)).columns
    assert columns == {"id": 1, "name": "ada", "bio": "new", "seen": 2}


def test_the_step_reads_a_row_again_before_it_leaves_a_change_out(trial: Trial, store: ForgetfulStore) -> None:
    trial.batch([user(1, name="ada", bio="old", seen=0)])
    store.remember()
    tally = trial.batch([user(0, name="eve", bio=PLACEHOLDER, seen=9)])
    assert tally["superseded"] == 1
    assert requests(tally) == Counter(BatchGetItem=5)  # the row twice, the ledger twice, and the root
    assert stored(trial)["name"] == "ada"


def test_an_earlier_state_that_has_no_room_makes_no_dead_letter(trial: Trial, store: ForgetfulStore) -> None:
    trial.batch([user(0, name="ada", bio=LONG, seen=0)])
    store.remember()
    trial.batch([user(1, name="ada", bio="short", seen=1)])
    tally = trial.batch([user(2, name=LONG, bio=PLACEHOLDER, seen=2)])
    assert (tally["applied"], tally["dead letters"]) == (1, 0)
    assert stored(trial)["name"] == LONG


def requests(tally: Counter[str]) -> Counter[str]:
    return Counter({name: tally[f"request {name}"] for name in ("UpdateItem", "BatchGetItem")})

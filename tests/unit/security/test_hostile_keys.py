"""No key of a row reaches the item of another row, of another entity, or of the job's progress."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record
from statestore import keys

HOSTILE = [
    "a#b", "#", "%", "%23", "%25", "!", "!TABLE#t!a", "a\x00b", "\x1b[2J", "\u202e", "\U0010ffff", "é" * 3_000, "x" * 400_000,
    " ", "LEDGER#user#0", "TABLE#t", "RUNS", "../..", "'; drop table t; --", '"}]}', "=", "EDGE#t#id=a", "~", "%~" + "0" * 64,
]  # fmt: skip


@pytest.mark.parametrize("sort", HOSTILE)
def test_a_hostile_key_is_one_key_of_its_own_entity_and_within_the_limit(sort: str) -> None:
    encoded = keys.encode((sort,))
    assert encoded is not None
    assert 0 < len(encoded.encode()) <= keys.LIMIT
    assert not keys.is_no_key(encoded)
    assert keys.entity_of(keys.row_key("t", 8, encoded).pk) == "t"


@given(
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3),
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3),
)
def test_two_different_hostile_keys_stay_different(one: list[str], other: list[str]) -> None:
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


def test_rows_with_hostile_keys_have_documents_of_their_own() -> None:
    definitions = load({
        "entities.yaml": "{t: {key: [a, b], columns: {a: string, b: string}}}",
        "p.yaml": "{product: p, root: t, embed: {same: {many: t, on: {a: a}, fields: [b]}}}",
    })  # fmt: skip
    trial = Trial(plan=plan_alone(definitions, 5), settings=Settings())
    rows = [{"a": one, "b": other} for one in HOSTILE[:12] for other in HOSTILE[:12]]
    values = [json.dumps(row).encode() for row in rows]
    trial.batch([Record(topic="t", partition=0, offset=n, key=None, value=value) for n, value in enumerate(values)])
    trial.finish()
    found = {m.key: json.loads(m.value or b"") for m in trial.published.messages}
    assert len(found) == len(rows)
    for document in found.values():
        assert len(document["same"]) == 12

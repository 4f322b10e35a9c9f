"""A row that wants to stop the job, or to take its memory, stops nothing: a bounded time, a dead letter, or one product."""

import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol import segments
from processor.engine.protocol.segments import pack, unpack
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.language.definitions.load import load
from processor.language.product.expressions import functions
from processor.language.product.expressions.functions import like, replace
from processor.values import canonical_json
from processor.values.record import Record

ENTITIES = "{t: {key: [id], columns: {id: string, n: int, d: 'decimal(12,2)', f: float, j: json, s: string}}}"
PATTERN = st.text("ab%_", max_size=8)


def simple_like(text: str, pattern: str) -> bool:
    """LIKE as a plain regular expression, which may take for ever."""
    return re.fullmatch(pattern.replace("%", ".*").replace("_", "."), text, re.DOTALL) is not None


@given(st.text("ab", max_size=10), PATTERN)
def test_like_means_what_a_plain_regular_expression_means(text: str, pattern: str) -> None:
    assert like(text, pattern, "\\") == simple_like(text, pattern)


def test_like_ends_for_a_text_that_a_plain_regular_expression_reads_for_years() -> None:
    assert not like("a" * 100_000, "%a%a%a%a%a%b", "\\")
    assert not like("a" * 100_000, "%a%a%_b%", "\\")
    assert like("a" * 100_000 + "b", "%a%a%a%a%a%b", "\\")


def test_replace_refuses_to_make_gigabytes_of_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="replace would make a text of more than 67,108,864 characters"):
        replace("a" * 200_000, "a", "b" * 200_000)
    monkeypatch.setattr(functions, "LONGEST", 10)
    assert replace("aaaaa", "a", "bb") == "b" * 10
    with pytest.raises(ValueError, match="more than 10 characters"):
        replace("aaaaaa", "a", "bb")


def test_an_item_of_the_job_that_unpacks_to_more_than_the_job_writes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "MOST_BYTES", 100_000)
    with pytest.raises(StatestoreError, match="unpacks to more than 100,000 bytes, so another program wrote it"):
        unpack(zlib.compress(b"[" + b" " * 100_000))
    assert unpack(pack("[é]".encode())) == "[é]".encode()


NUMBERS = ["1e999999999", "-1e999999999", "1e-999999999", "9" * 4_000, "0." + "0" * 1_000_000 + "1", "1" * 1_000_000]
VALUES = [
    *NUMBERS, '"\\ud800"', '"\\u0000\\u001b[2J"', "[" * 199 + "]" * 199, "[" * 100_000 + "]" * 100_000, '{"": {"": null}}',
    json.dumps("x" * 300_000), '{"__proto__": 1, "PK": "x", "SK": "y", "GSI_1": 3, "v": "z"}',
]  # fmt: skip


@pytest.mark.parametrize("column", ["n", "d", "f", "j", "s", "undeclared", "PK", "GSI_1"])
def test_no_value_of_a_column_stops_the_job(column: str) -> None:
    """Each record becomes a row or a dead letter, and the row after them gets its document."""
    values = [f'{{"id": "{n}", "{column}": {value}}}' for n, value in enumerate(VALUES)]
    values += ['{"id": "last", "n": 7}']
    trial = Trial(
        plan=plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": "{product: p, root: t}"}), 5), settings=Settings()
    )
    trial.batch(
        [Record(topic="t", partition=0, offset=n, key=None, value=value.encode()) for n, value in enumerate(values)]
    )
    trial.finish()
    assert trial.tally["read"] == len(values) == trial.tally["applied"] + trial.tally["dead letters"]
    assert trial.stopped == {}
    last = [message for message in trial.published.messages if message.topic == "p"][-1]
    documents = {m.key: m.value for m in trial.published.messages if m.topic == "p"}
    assert canonical_json.loads(documents[b'{"id":"last"}'] or b"")["n"] == 7
    assert last.value is not None

"""The line about dead letters shows no value of a row, unless the setting asks; the dead letter itself keeps the full reason."""

import json

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record

ENTITIES = "{t: {key: [id], columns: {id: int, n: int, b: bool, d: decimal, at: timestamp, l: 'int[]'}}}"
MARK = "1234567890123"
PLAN = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": "{product: p, root: t}"}), 5)


@pytest.mark.parametrize(
    ("key", "value", "full", "plain"),
    [
        (None, {"id": 1, "n": f"{MARK}k"}, f"column 'n': expected int, found text '{MARK}k'",
         "column 'n': expected int, found text"),
        (None, {"id": 1, "b": int(MARK)}, f"column 'b': expected bool, found number {MARK}",
         "column 'b': expected bool, found a number"),
        (None, {"id": 1, "n": True}, "column 'n': expected int, found true", "column 'n': expected int, found true or false"),
        (None, {"id": 1, "l": [1, MARK]}, f"column 'l': element 2: expected int[], found text '{MARK}'",
         "column 'l': element 2: expected int[], found text"),
        ({"id": int(MARK)}, {"id": 2}, f"key part 'id' is number {MARK} in the Kafka key and number 2 in the row",
         "key part 'id' differs between the Kafka key and the row"),
        (MARK, {"n": 1}, f"key part 'id': expected int, found text '{MARK}'", "key part 'id': expected int, found text"),
        (None, MARK, f"expected a row as an object, found text '{MARK}'", "expected a row as an object, found text"),
        (None, {"before": None, "after": MARK, "op": "c"}, f"expected a row as an object in 'after', found text '{MARK}'",
         "expected a row as an object in 'after', found text"),
        (None, {"n": 1}, "key part 'id' is missing", "key part 'id' is missing"),
    ],
)  # fmt: skip
def test_the_line_of_a_dead_letter(key: object, value: object, full: str, plain: str) -> None:
    for log_values, reason in ((False, plain), (True, full)):
        trial = Trial(plan=PLAN, settings=Settings(log_values=log_values))
        data = None if key is None else json.dumps(key).encode()
        trial.batch([Record(topic="t", partition=0, offset=3, key=data, value=json.dumps(value).encode())])
        assert trial.driver.last_letter == f"t/0 offset 3: {reason}"
        (letter,) = trial.rejects.messages
        assert dict(letter.headers)["statestore.reject.reason"] == full.encode()

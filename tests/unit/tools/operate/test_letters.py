"""What a replay of a group of dead letters would do, by the present definitions."""

from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load
from processor.tools.operate.letters import CUT, OF_DOCUMENT, preview
from processor.values.dead_letters import DeadLetter
from processor.values.reasons import ReasonCode
from processor.values.record import CutRecord, Record, Rejected

PLAN = plan_alone(
    load(
        {
            "entities.yaml": "user: {key: [id], columns: {id: int, age: int}}",
            "users.yaml": "{product: users, root: user, fields: [id, age]}",
        }
    ),
    5,
)


def letter(value: bytes, topic: str = "user", code: ReasonCode = "column-type", cut: bool = False) -> DeadLetter:
    record = Record(topic=topic, partition=0, offset=1, epoch=1, key=b'{"id": 1}', value=value)
    parts = CutRecord(parts="value", size=9, sha256="") if cut else None
    rejected = Rejected(record=record, reason="column 'age': expected int", code=code, entity=topic, cut=parts)
    return DeadLetter(rejected=rejected, kept_since=100.0)


def test_a_preview_says_how_many_are_readable_now_and_why_others_are_refused_again() -> None:
    letters = [
        letter(b'{"id": 1, "age": 7}'),
        letter(b'{"id": 1, "age": "old"}'),
        letter(b'{"id": 1, "age": "older"}'),
        letter(b"{}", topic="gone"),
        letter(b"{", cut=True),
        letter(b"", code="document-too-large"),
    ]
    shown = preview(letters, PLAN)
    assert (shown.letters, shown.tried, shown.readable) == (6, 6, 1)
    assert shown.unknown == {CUT: 1, OF_DOCUMENT: 1}
    lines = list(shown.lines())
    assert lines[0] == "6 dead letters: the present definitions read 1"
    assert lines[1] == "2 would be refused again: column-type: column 'age': expected int, found text"
    assert lines[2] == "1 would be refused again: other: no entity has the topic gone any more"


def test_a_preview_has_no_value_of_a_record() -> None:
    assert "secret" not in " ".join(preview([letter(b'{"id": 1, "age": "secret"}')], PLAN).lines())


def test_a_letter_that_is_older_than_the_marker_of_a_deleted_row_would_be_refused() -> None:
    shown = preview([letter(b'{"id": 1, "age": 7}')], PLAN, oldest=101.0)
    assert (shown.readable, sum(shown.refused.values())) == (0, 1)

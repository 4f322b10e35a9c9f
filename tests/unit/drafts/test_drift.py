"""The comparison of entities.yaml with what the source shows now."""

import pytest

from processor.definitions.load import load
from processor.drafts.draft import DraftColumn, DraftEntity
from processor.drafts.drift import drift_lines

DECLARED = load(
    {
        "entities.yaml": "user: {topic: app.user, key: [id], columns: {id: int, name: string, weight: decimal, extra: json}}\n"
        "other: {topic: b.other, key: [id], columns: {id: int}}\n"
    }
).entities
COLUMNS = {"id": "int", "name": "string", "weight": "int", "extra": "string"}


def user(key: str = "id", **columns: str) -> DraftEntity:
    drafts = {name: DraftColumn(text) for name, text in (COLUMNS | columns).items() if text != "gone"}
    return DraftEntity(name="user", topic="app.user", key=(key,), columns=drafts)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (user(), []),
        (user(phone="string"), ["  user:", "+     phone: string"]),
        (user(name="gone"), ["  user:", "-     name: string"]),
        (user(name="int"), ["  user:", "!     name: string here, int in the source"]),
        (user(weight="decimal(12,2)"), []),
        (user(weight="int[]"), ["  user:", "!     weight: decimal here, int[] in the source"]),
        (user(extra="int[]"), []),
        (user(key="name"), ["  user:", "!   key: [id] here, [name] in the source"]),
    ],
)
def test_each_difference_is_a_line(found: DraftEntity, lines: list[str]) -> None:
    assert drift_lines(DECLARED, [found], whole=["app."]) == lines


def test_a_new_table_is_a_block_to_paste_and_a_lost_one_is_named() -> None:
    new = DraftEntity(name="order", topic="app.order", key=("id",), columns={"id": DraftColumn("int")})
    assert drift_lines(DECLARED, [new], whole=["app."]) == [
        "+ order:", "+   topic: app.order", "+   key: [id]", "+   columns:", "+     id: int",
        "- user: the source has no table for topic app.user",
    ]  # fmt: skip


def test_a_sample_of_records_proves_nothing_gone() -> None:
    assert drift_lines(DECLARED, [user(name="gone")], whole=[]) == []
    assert drift_lines(DECLARED, [], whole=[]) == []


def test_a_guess_is_no_difference() -> None:
    guessed = DraftEntity(name="user", topic="app.user", key=("id",), columns={"name": DraftColumn("int", "by values")})
    assert drift_lines(DECLARED, [guessed], whole=[]) == []

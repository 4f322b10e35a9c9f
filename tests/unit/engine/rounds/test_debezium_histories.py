"""One history of a live PostgreSQL in all of Debezium's forms: each gives the documents of the rows that the source had at the
end. It has snapshot rows, updates, deletes, unread TOAST values, new keys of roots and of joined rows, and tombstones."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.rounds.captured_topics import ENTITIES, captured_rows, expected_documents, try_capture

ENVELOPES = ["", "-schema", "-full", "-bare-key", "-bare-key-schema", "-text-key"]
FLATTENED = ["-tombstone", "-rewrite", "-rewrite-with-tombstone", "-delete-to-tombstone", "-fields", "-fields-schema"]
PINNED = {name: entity | {"format": "flattened"} for name, entity in ENTITIES.items()}
ROWS = captured_rows("postgres-history")


@pytest.mark.parametrize(
    ("form", "words"),
    [*((form, "--batch 1") for form in (*ENVELOPES, *FLATTENED)), ("", "--batch 100"), ("", "--batch 3 --lag 2")],
)
def test_every_form_of_a_history_ends_in_the_rows_of_the_source(
    form: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entities = PINNED if form in FLATTENED else ENTITIES
    outcome = try_capture(f"postgres-history{form}", tmp_path, capsys, *words.split(), entities=entities)
    assert outcome.dead_letters == []
    assert outcome.documents == expected_documents(ROWS)


@pytest.mark.parametrize("form", ["-rewrite", "-rewrite-with-tombstone", "-fields", "-fields-schema"])
def test_flattened_records_with_members_of_debezium_need_no_pinned_format(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert try_capture(f"postgres-history{form}", tmp_path, capsys).documents == expected_documents(ROWS)


def test_bytes_of_decimals_whose_form_the_entity_does_not_say_name_the_cure_in_their_dead_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = {name: value for name, value in ENTITIES["users"].items() if name != "decimals"}
    outcome = try_capture("postgres-history-tombstone", tmp_path, capsys, entities=ENTITIES | {"users": users})
    reasons = {letter["reason"] for letter in outcome.dead_letters}
    cure = "(for Debezium's bytes: declare `decimals: bytes` and decimal(precision,scale), or send schemas)"
    assert f"column 'balance': expected decimal(12,2), found text 'BNI=' {cure}" in reasons
    assert all(reason.endswith(cure) for reason in reasons)


def test_a_connector_that_drops_deletes_leaves_the_deleted_rows_in_the_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = try_capture("postgres-history-drop", tmp_path, capsys, entities=PINNED).documents
    expected = expected_documents(ROWS)
    assert set(documents["people"]) - set(expected["people"]) == {3, 4, 5}  # two old keys, and a deleted row
    assert set(documents["tags"]) - set(expected["tags"]) == {"a b", "42"}


def test_a_new_key_of_a_root_moves_the_document_and_a_new_key_of_a_joined_row_moves_the_element(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people: dict[Any, Any] = try_capture("postgres-history", tmp_path, capsys).documents["people"]
    assert 4 not in people  # update users set id = 6 where id = 4
    assert (people[6]["name"], people[6]["orders"]) == ("Dea F", [])
    # update orders set id = 20, user_id = 2 where id = 11
    assert [order["id"] for order in people[1]["orders"]] == [10]
    assert [order["id"] for order in people[2]["orders"]] == [20]

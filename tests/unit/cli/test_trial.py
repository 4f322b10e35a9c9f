"""`statestore try`: what it says about dead letters and unknown topics, and its JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.cli.printing.output import COUNTS, summary

GOOD = {"topic": "user", "value": {"id": 1, "name": "ann"}}
BROKEN = {"topic": "user", "value": {"id": "one"}}
FOREIGN = {"topic": "users", "value": {"id": 2}}


def words(tmp_path: Path, *lines: dict[str, Any]) -> list[str]:
    (tmp_path / "entities.yaml").write_text("user: {key: [id], columns: {id: int, name: string}}")
    (tmp_path / "p.yaml").write_text("{product: people, root: user}")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "t.jsonl")]


def test_the_first_reasons_and_the_topics_that_no_entity_names_are_errors_only_where_asked(
    tmp_path: Path, capsys: Any
) -> None:
    command = words(tmp_path, GOOD, *[BROKEN] * 7, FOREIGN, FOREIGN)
    assert main(command) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("dead letter: user/0 offset 1: column 'id': expected int")
    assert said[5:7] == [
        "and 2 more dead letters; --dead-letters FILE keeps them all",
        "topic users: no entity names it, so its 2 records are ignored",
    ]
    assert main([*command, "--strict"]) == 1
    assert main([*words(tmp_path, GOOD, FOREIGN), "--strict"]) == 1
    assert main([*words(tmp_path, GOOD), "--strict"]) == 0


def test_an_unknown_topic_is_named_with_the_nearest_topic_of_an_entity_without_records(
    tmp_path: Path, capsys: Any
) -> None:
    assert main(words(tmp_path, FOREIGN | {"topic": "dev.public.user"})) == 0
    assert (
        "topic dev.public.user: no entity names it, so its 1 records are ignored; did you mean topic user of entity user?\n"
        in capsys.readouterr().err
    )


def test_a_value_beyond_its_avro_type_is_a_dead_letter_that_names_the_root(tmp_path: Path, capsys: Any) -> None:
    command = words(tmp_path, GOOD, {"topic": "user", "value": {"id": 2**63, "name": "bob"}})
    (tmp_path / "p.yaml").write_text("{product: people, root: user, format: avro}")
    assert main(command) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["value"] for line in shown.out.splitlines()] == [{"id": 1, "name": "ann"}]
    assert shown.err.startswith(
        'dead letter: people {"id":9223372036854775808}: the document of product people does not fit its Avro schema: id: '
        "expected int, found a number (Avro has 64 bits: declare decimal(38,0))\n"
    )
    assert "1 unfit (a dead letter takes the place of the document)" in shown.err
    assert main([*command, "--strict"]) == 1


def test_json_is_one_object_with_messages_dead_letters_and_counts(tmp_path: Path, capsys: Any) -> None:
    command = [*words(tmp_path, GOOD, BROKEN, FOREIGN), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [message["value"] for message in found["published"]] == [{"id": 1, "name": "ann"}]
    assert [letter["offset"] for letter in found["dead_letters"]] == [1]
    assert found["unknown_topics"] == {"users": 1}
    assert (found["stopped"], found["counts"]["read"], found["counts"]["published"]) == ({}, 3, 1)
    assert main([*command, "--to", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads(capsys.readouterr().out)["published"] == []
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


def test_the_help_explains_every_count_of_the_summary() -> None:
    account, others = summary({}).partition("; requests")[0].splitlines()
    names = [
        part.strip().split(" ", 1)[1]
        for line in (account.split("= ")[1], others)
        for part in line.replace("+", ",").split(",")
    ]
    assert len(names) == 8
    assert [name for name in names if f"{name}: " not in COUNTS] == []


@pytest.mark.parametrize(("no_colour", "expected"), [("", "\033[32mpassed\033[0m"), ("1", "passed")])
def test_colours_are_for_terminals_that_want_them(
    no_colour: str, expected: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Path(__file__).parents[3] / "examples" / "github"
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["test", str(example)]) == 0
    assert capsys.readouterr().out.startswith(f"{expected} ")


def gated(tmp_path: Path, gate: str, *lines: dict[str, Any]) -> list[str]:
    command = words(tmp_path, *lines)
    text = "transactions: app.transaction\nuser: {key: [id], columns: {id: int, name: string}, format: debezium}"
    (tmp_path / "entities.yaml").write_text(text)
    (tmp_path / "p.yaml").write_text(f"{{product: people, root: user, publish: {gate}}}")
    return command


def changed(name: str, order: int, offset: int) -> dict[str, Any]:
    source = {"connector": "postgresql", "schema": "public", "table": "user"}
    block = {"id": "7:1", "total_order": order, "data_collection_order": order}
    value = {"op": "c", "before": None, "after": {"id": 1, "name": name}, "source": source, "transaction": block}
    return {"topic": "user", "offset": offset, "value": value}


ENDED = {"status": "END", "id": "7:2", "data_collections": [{"data_collection": "public.user", "event_count": 2}]}
END = {"topic": "app.transaction", "value": ENDED}


def test_documents_wait_at_their_gate_as_in_a_job(tmp_path: Path, capsys: Any) -> None:
    lines = (changed("ann", 1, 0), changed("bea", 2, 1), END)
    assert main([*gated(tmp_path, "{transactions: whole}", *lines), "--batch", "1", "--strict"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["value"] for line in shown.out.splitlines()] == [{"id": 1, "name": "bea"}]
    assert "1 published, 0 unchanged, 0 cut, 0 ambiguous, 2 held" in shown.err
    command = [*gated(tmp_path, "{quiet: 1 ms}", *lines), "--batch", "1"]
    assert main(command) == 0
    values = [json.loads(line)["value"]["name"] for line in capsys.readouterr().out.splitlines()]
    assert values == ["ann", "bea"]


def test_values_that_a_type_cannot_hold_are_named_to_the_author(tmp_path: Path, capsys: Any) -> None:
    value = {"op": "c", "before": None, "after": {"id": 1, "at": "infinity"}}
    command = words(tmp_path, {"topic": "user", "value": value})
    text = "user: {key: [id], columns: {id: int, at: timestamp}, unrepresentable: null}"
    (tmp_path / "entities.yaml").write_text(text)
    (tmp_path / "p.yaml").write_text("{product: people, root: user}")
    assert main([*command, "--strict"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["value"] for line in shown.out.splitlines()] == [{"id": 1, "at": None}]
    assert shown.err.splitlines()[0] == "column at of entity user: 1 values that its type cannot hold are null"


def test_an_author_is_warned_of_documents_that_may_show_a_part_of_a_transaction(tmp_path: Path, capsys: Any) -> None:
    assert main(gated(tmp_path, "{transactions: whole}", changed("ann", 1, 0))) == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "topic app.transaction: no record of it, so no transaction is complete; add the topic to the records",
        "1 documents went out at `at_most`, and may show a part of a transaction",
    ]

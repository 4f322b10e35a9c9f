"""The verbs beside `run`: `apply`, `slots`, `get`, and what a wrong setting is answered with."""

import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.kafka import Outbox
from processor.model.step import Message

Story = Any  # conftest's
Printed = pytest.CaptureFixture[str]
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # the command leaves connections to its process's end


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What is left to the process's end goes while its warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def worked(module_story: Story, tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Path]:
    """A story that `run` has worked off, and what it published."""
    to = tmp_path_factory.mktemp("worked") / "published.jsonl"
    words = [*module_story.run, *module_story.define, "--from", module_story.file, "--once", "--to", str(to)]
    assert main(words) == 0
    return module_story, to


def test_a_second_apply_changes_nothing(story: Story, capsys: Printed) -> None:
    words = ["apply", *story.flags, *story.define]
    assert main(words) == 0
    first = capsys.readouterr()
    assert first.out
    assert first.err == "registry version 1\n"
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.out == ""
    assert again.err == "registry version 1: nothing changed\n"


def test_plan_compares_with_the_registry(worked: tuple[Story, Path], capsys: Printed, tmp_path: Path) -> None:
    story, _ = worked
    assert main(["plan", *story.flags, *story.define]) == 0
    assert capsys.readouterr().out.startswith("nothing would change\nslots:\n")
    _other_join(story, tmp_path)
    assert main(["plan", *story.flags, "--definitions", str(tmp_path)]) == 1
    assert "entity pull_request: GSI_2 holds title would be new, but a job has run" in capsys.readouterr().err
    fresh = [word.replace(story.name, f"{story.name}_fresh") for word in story.flags]
    assert main(["plan", "--json", *fresh, *story.define]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["version"] == 0
    assert printed.err == "there is no registry yet: `apply` makes it\n"


def test_plan_estimates_by_the_statistics_that_were_taken(
    worked: tuple[Story, Path], capsys: Printed, tmp_path: Path
) -> None:
    story, _ = worked
    assert main(["statistics", "--json", "--seed", "1", *story.flags]) == 0
    taken = json.loads(capsys.readouterr().out)
    for one in taken["entities"]:
        assert one["rows"] == len(story.tables[one["entity"]]), one
    assert main(["statistics", *story.flags]) == 0
    assert re.search(
        r"^  star\(username\) = user\(username\) +down +[\d.]+ +\d+  \S", capsys.readouterr().out, re.MULTILINE
    )
    assert main(["plan", *story.flags, *story.define]) == 0
    assert "\nestimate, by statistics of 20" in capsys.readouterr().out
    assert main(["plan", "--json", *story.flags, *story.define]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1  # statistics are no edit
    assert found["taken_at"].endswith("+00:00")
    star = next(e for e in found["estimates"] if (e["entity"], e["event"]) == ("star", "update of created_at"))
    assert star["dollars_per_million"] > 0

    _other_join(story, tmp_path)
    assert main(["plan", "--json", *story.flags, "--definitions", str(tmp_path)]) == 1
    (needed,) = json.loads(capsys.readouterr().out)["backfills"]
    rows = len(story.tables["pull_request"])
    assert needed == {"entity": "pull_request", "holds": "GSI_2 holds title", "rows": rows, "seconds": 1}


def _other_join(story: Story, directory: Path) -> None:
    """The story's definitions with a join that needs another slot."""
    for file in (story.directory / "definitions").iterdir():
        (directory / file.name).write_text(
            file.read_text().replace('"on": {"author": "username"}', '"on": {"title": "username"}')
        )


def test_slots_shows_which_join_each_slot_serves(worked: tuple[Story, Path], capsys: Printed) -> None:
    story, _ = worked
    assert main(["slots", *story.flags]) == 0
    board = capsys.readouterr().out
    for word in ("user", "star", "pull_request", "payment_info", "username", "author", "user_id", "GSI_1"):
        assert word in board
    assert main(["slots", "--json", *story.flags]) == 0
    assert "pull_request" in json.dumps(json.loads(capsys.readouterr().out))


def test_get_shows_the_document_that_was_published(worked: tuple[Story, Path], capsys: Printed) -> None:
    story, to = worked
    last = {json.dumps(line["key"]): line["value"] for line in map(json.loads, to.read_text().splitlines())}
    key, document = max(last.items(), key=lambda item: len(json.dumps(item[1])))
    for spelling in (key, json.loads(key)["email"]):
        assert main(["get", "user_profile", spelling, *story.flags]) == 0
        assert json.loads(capsys.readouterr().out) == document


def test_get_says_when_there_is_no_document_and_when_there_is_no_product(
    worked: tuple[Story, Path], capsys: Printed
) -> None:
    story, _ = worked
    assert main(["get", "user_profile", "nobody@example.org", *story.flags]) == 1
    assert capsys.readouterr().err == "user_profile has no document for nobody@example.org\n"
    assert main(["get", "profile", "nobody@example.org", *story.flags]) == 1
    assert "there is no product `profile`; did you mean 'user_profile'?" in capsys.readouterr().err


def test_verify_finds_nothing_wrong_and_then_what_somebody_wrote(worked: tuple[Story, Path], capsys: Printed) -> None:
    story, to = worked
    roots = len({json.dumps(json.loads(line)["key"]) for line in to.read_text().splitlines()})
    assert main(["verify", *story.flags]) == 0
    assert f"user_profile: {roots} documents compared, 0 differ" in capsys.readouterr().err
    assert main(["verify", "--sql", *story.flags]) == 0
    assert f"user_profile: {roots} documents compared, 0 differ" in capsys.readouterr().err
    assert main(["verify", "user_profile", "--sample", "3", "--seed", "1", "--json", *story.flags]) == 0
    assert json.loads(capsys.readouterr().out)["products"]["user_profile"] == {"compared": 3, "differences": []}
    outbox = Outbox(story.bootstrap_servers, {})
    outbox.send(Message(topic=story.topic, key=b'{"email":"nobody@example.org"}', value=b'{"email":1}'))
    outbox.flush()
    assert main(["verify", *story.flags]) == 1
    assert capsys.readouterr().out == (
        'user_profile {"email":"nobody@example.org"}\n  published {"email":1}\n  state     no document\n'
    )
    assert main(["verify", "--sql", *story.flags]) == 1
    assert capsys.readouterr().out.endswith(
        '  published {"email":1}\n  state     no document\n  sql       no document\n'
    )
    assert main(["verify", "--sql", "--json", *story.flags]) == 1
    (told,) = json.loads(capsys.readouterr().out)["products"]["user_profile"]["differences"]
    assert told == {"key": '{"email":"nobody@example.org"}', "published": {"email": 1}, "state": None, "sql": None}
    assert main(["verify", "--sql", "--repair", *story.flags]) == 0
    assert "1 documents published anew" in capsys.readouterr().err
    assert main(["verify", *story.flags]) == 0


def test_explain_shows_the_rows_behind_a_document(worked: tuple[Story, Path], capsys: Printed) -> None:
    story, to = worked
    documents = [line for line in map(json.loads, to.read_text().splitlines()) if line["value"]]
    key = json.dumps(documents[-1]["key"])
    assert main(["explain", "user_profile", key, "--json", *story.flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["document"]["email"] == documents[-1]["key"]["email"]
    assert shown["rows"][0]["entity"] == "user"
    assert main(["explain", "user_profile", key, "--sql", *story.flags]) == 1
    assert "leave --definitions and --sql out" in capsys.readouterr().err


def test_records_are_not_produced_twice_into_the_same_topics(worked: tuple[Story, Path], capsys: Printed) -> None:
    story, _ = worked
    assert main([*story.run, "--once", "--from", story.file]) == 1
    assert "holds records already, and --from needs fresh topics" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--lease-seconds", "1"], "--lease-seconds: 1 is out of range; it must be at least 5"),
        (["--batch-size", "many"], "--batch-size: 'many' is no whole number"),
        (["--registry-schema", "No Schema"], "registry_schema: 'No Schema'"),
        (["--checkpoint", "c"], "--bootstrap-servers is missing (or STATESTORE_BOOTSTRAP_SERVERS)"),
        (["--bootstrap-servers", "b:1"], "--checkpoint is missing (or STATESTORE_CHECKPOINT)"),
        (["--to", "file"], "--to writes what was published once the job has ended: add --once"),
        (["--settings", "no such file"], "the settings file no such file cannot be read"),
    ],
)
def test_a_wrong_setting_is_answered_by_its_name(words: list[str], named: str, capsys: Printed) -> None:
    assert main(["run", *words]) == 1
    assert named in capsys.readouterr().err


def test_a_wrong_variable_or_line_of_the_settings_file_is_answered_by_its_name(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_SLOTS", "21")
    assert main(["run"]) == 1
    assert "STATESTORE_SLOTS: 21 is out of range; it must be from 1 to 20" in capsys.readouterr().err
    monkeypatch.delenv("STATESTORE_SLOTS")
    file = tmp_path / "settings.toml"
    file.write_text("tabel = 'x'\n")
    assert main(["run", "--settings", str(file)]) == 1
    assert "there is no setting `tabel`" in capsys.readouterr().err

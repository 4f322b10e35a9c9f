"""The verbs that work on the registry and the state of a job."""

import gc
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.job.kafka.outbox import KafkaOutbox
from processor.values.record import Message

Story = Any  # the class in conftest.py
Printed = pytest.CaptureFixture[str]
# the command closes some connections only when its process ends
pytestmark = [pytest.mark.rest, pytest.mark.filterwarnings("ignore::ResourceWarning")]
BOARD = """\
entity        key                            GSI_1                       GSI_2
------------  -----------------------------  --------------------------  --------------------
payment_info  id                             user_id
                                             down from user
pull_request  repo#repo_owner#index          author
                                             down from user
repo          owner#name
              down from star
star          username#repo_name#repo_owner  username                    repo_owner#repo_name
                                             down from user              up from repo
user          email                          username                    id
                                             up from pull_request, star  up from payment_info
"""


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collects the open connections while warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def finished(module_story: Story, tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Path]:
    """A story that `run` has processed to its end, and the file of its published messages."""
    to = tmp_path_factory.mktemp("finished") / "published.jsonl"
    words = [*module_story.run, *module_story.define, "--from", module_story.file, "--once", "--to", str(to)]
    assert main(words) == 0
    return module_story, to


def test_a_second_apply_changes_nothing(story: Story, capsys: Printed) -> None:
    assert main(["plan", "--offline", "--no-price", "--json", "--slots", "5", *story.define]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    words = ["apply", *story.flags, *story.define]
    assert main(["plan", "--no-price", "--json", *story.flags, *story.define]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert main([*words, "--plan", "0" * 12]) == 1
    assert "no longer fits, since the definitions or the registry changed after it" in capsys.readouterr().err
    assert main([*words, "--plan", plan]) == 0
    first = capsys.readouterr()
    assert first.out.splitlines() == [
        "product user_profile: added, version 1",
        "added for them: 5 entities, 6 slots, 4 joins (`statestore slots` shows them)",
    ]
    assert (len(changes), changes[-1]) == (16, "product user_profile: added, version 1")
    assert first.err == "registry version 1\n"
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.out == ""
    assert again.err == "registry version 1: nothing changed\n"


def test_plan_compares_definitions_with_the_registry(
    finished: tuple[Story, Path], capsys: Printed, tmp_path: Path
) -> None:
    story, _ = finished
    assert main(["plan", *story.flags, *story.define]) == 0
    assert capsys.readouterr().out.startswith("nothing would change; user_profile: $")
    _other_join(story, tmp_path)
    assert main(["plan", "--verbose", *story.flags, "--definitions", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 product to change, 1 slot to fill")
    changed = lines.index("  ~ product user_profile, version 2, once its slots are full")
    assert lines[changed + 1 :][:3] == [
        "      embed.pull_requests.on.author: removed, was username",
        "      embed.pull_requests.on.title: added, username",
        "  + GSI_2 of pull_request holds title: down from user",
    ]
    fresh = [word.replace(story.name, f"{story.name}_fresh") for word in story.flags]
    assert main(["plan", "--json", *fresh, *story.define]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["version"] == 0
    assert printed.err == "there is no registry yet: `apply` creates it\n"


def test_plan_estimates_by_the_statistics_that_were_taken(
    finished: tuple[Story, Path], capsys: Printed, tmp_path: Path
) -> None:
    story, _ = finished
    assert main(["statistics", "--json", "--seed", "1", *story.flags]) == 0
    taken = json.loads(capsys.readouterr().out)
    assert {entity["entity"]: entity["rows"] for entity in taken["entities"]} == {
        name: len(rows) for name, rows in story.tables.items()
    }
    assert main(["statistics", "--seed", "1", *story.flags]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    down = next(j for j in taken["joins"] if (j["join"]["child"], j["direction"]) == ("star", "down"))
    numbers = [f"{down['mean']:,.2f}", f"{down['most']:,}", down["value"]]
    assert table.count(["star(username)", "=", "user(username)", "down", *numbers]) == 1
    assert main(["plan", "--verbose", *story.flags, *story.define]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main(["plan", "--json", *story.flags, *story.define]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1  # statistics do not change the version
    assert found["taken_at"].endswith("+00:00")
    assert (
        text.count(
            f" estimate in a batch of 1,000, by statistics of {datetime.fromisoformat(found['taken_at']):%Y-%m-%d %H:%M} UTC ("
        )
        == 1
    )
    star = next(e for e in found["estimates"] if (e["entity"], e["event"]) == ("star", "update of created_at"))
    assert star["dollars_per_million"] > 0

    _other_join(story, tmp_path)
    assert main(["plan", "--json", *story.flags, "--definitions", str(tmp_path)]) == 0
    (needed,) = json.loads(capsys.readouterr().out)["backfills"]
    rows = len(story.tables["pull_request"])
    assert needed == {
        "entity": "pull_request",
        "holds": "GSI_2 holds title",
        "edges": [],
        "rows": rows,
        "write_units": 3 * rows,
        "seconds": 1,
    }


def _other_join(story: Story, directory: Path) -> None:
    """The story's definitions with a join that needs another slot."""
    for file in (story.directory / "definitions").iterdir():
        (directory / file.name).write_text(
            file.read_text().replace('"on": {"author": "username"}', '"on": {"title": "username"}')
        )


def test_slots_shows_the_columns_and_joins_of_each_slot(finished: tuple[Story, Path], capsys: Printed) -> None:
    story, _ = finished
    assert main(["slots", *story.flags]) == 0
    assert capsys.readouterr().out == f"{BOARD}\njob {story.name}: does not run, last version 1\n"
    assert main(["slots", "--json", *story.flags]) == 0
    board = json.loads(capsys.readouterr().out)
    assert (board["version"], board["slots"]) == (1, 5)
    assert {
        (e["entity"], a["slot"], *a["columns"]): (a["state"], a["serves"])
        for e in board["entities"]
        for a in e["assignments"]
    } == {
        ("payment_info", 1, "user_id"): ("serving", ["down from user"]),
        ("pull_request", 1, "author"): ("serving", ["down from user"]),
        ("star", 1, "username"): ("serving", ["down from user"]),
        ("star", 2, "repo_owner", "repo_name"): ("serving", ["up from repo"]),
        ("user", 1, "username"): ("serving", ["up from pull_request, star"]),
        ("user", 2, "id"): ("serving", ["up from payment_info"]),
    }


def test_get_shows_the_document_that_was_published(finished: tuple[Story, Path], capsys: Printed) -> None:
    story, to = finished
    key, document = largest_document(to)
    for spelling in (key, json.loads(key)["email"]):
        assert main(["get", "user_profile", spelling, *story.flags]) == 0
        assert json.loads(capsys.readouterr().out) == document


def test_get_and_apply_print_one_json_object(finished: tuple[Story, Path], capsys: Printed) -> None:
    story, to = finished
    key, document = largest_document(to)
    assert main(["get", "user_profile", key, "--json", *story.flags]) == 0
    known = {"product": "user_profile", "waits": False}
    assert json.loads(capsys.readouterr().out) == known | {"key": json.loads(key), "document": document}
    assert main(["get", "user_profile", "nobody", "--json", *story.flags]) == 1
    assert json.loads(capsys.readouterr().out) == known | {"key": "nobody", "document": None}
    assert main(["apply", *story.define, "--json", *story.flags]) == 0
    applied = json.loads(capsys.readouterr().out)
    assert (applied["changes"], applied["next"], [job["alive"] for job in applied["jobs"]]) == ([], [], [False])


def test_get_names_a_root_without_a_document_and_an_unknown_product(
    finished: tuple[Story, Path], capsys: Printed
) -> None:
    story, _ = finished
    assert main(["get", "user_profile", "nobody@example.org", *story.flags]) == 1
    why = "`statestore explain user_profile KEY` says why"
    assert capsys.readouterr().err == f"user_profile has no document for nobody@example.org; {why}\n"
    assert main(["get", "profile", "nobody@example.org", *story.flags]) == 1
    assert capsys.readouterr().err == "statestore get: there is no product `profile`; did you mean 'user_profile'?\n"


def test_verify_finds_no_difference_and_then_a_message_of_another_program(
    finished: tuple[Story, Path], capsys: Printed
) -> None:
    story, to = finished
    roots = len({json.dumps(json.loads(line)["key"]) for line in to.read_text().splitlines()})
    assert main(["verify", *story.flags]) == 0
    assert capsys.readouterr().err == f"user_profile: {roots} documents compared, 0 differ\n"
    assert main(["verify", "--sql", *story.flags]) == 0
    assert capsys.readouterr().err.splitlines() == [
        *(f"reading the rows of {name} into Postgres" for name in sorted(story.tables)),
        f"user_profile: {roots} documents compared, 0 differ",
    ]
    assert main(["verify", "user_profile", "--sample", "3", "--seed", "1", "--json", *story.flags]) == 0
    found = json.loads(capsys.readouterr().out)["products"]["user_profile"]
    assert found == {"compared": 3, "waiting": 0, "unpublished": 0, "older_version": 0, "differences": []}
    outbox = KafkaOutbox(story.bootstrap_servers, {})
    outbox.send(Message(topic=story.topic, key=b'{"email":"nobody@example.org"}', value=b'{"email":1}'))
    outbox.flush()
    assert main(["verify", *story.flags]) == 1
    assert capsys.readouterr().out == (
        "user_profile: published, but the state has no document: 1 document\n"
        '  {"email":"nobody@example.org"}\n    published {"email":1}\n    state     no document\n'
    )
    assert main(["verify", "--sql", *story.flags]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "user_profile: published, but the state has no document: 1 document",
        '  {"email":"nobody@example.org"}',
        '    published {"email":1}',
        "    state     no document",
        "    sql       no document",
    ]
    assert main(["verify", "--sql", "--json", *story.flags]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["products"]["user_profile"]["differences"]
    assert difference == {
        "key": '{"email":"nobody@example.org"}',
        "published": {"email": 1},
        "state": None,
        "sql": None,
    }
    assert main(["verify", "--sql", "--repair", *story.flags]) == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"user_profile: {roots + 1} documents compared, 1 differ",
        "1 documents published again",
    ]
    assert main(["verify", *story.flags]) == 0


def test_explain_shows_the_rows_of_a_document(finished: tuple[Story, Path], capsys: Printed) -> None:
    story, to = finished
    key, document = largest_document(to)
    assert main(["explain", "user_profile", key, "--json", *story.flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["document"] == document
    root = shown["root"]
    assert (root["entity"], root["key"], root["left_out"]) == ("user", json.loads(key)["email"], "")
    rows = {join["name"]: len(join["rows"]) for join in root["joins"]}
    assert rows["starred_repos"] == len(document["starred_repos"])
    assert rows["pull_requests"] == len(document["pull_requests"])
    assert main(["explain", "user_profile", key, "--sql", *story.flags]) == 1
    message = (
        "statestore explain: KEY names a document of the state: leave --definitions, --sql, --mermaid and --tree out\n"
    )
    assert capsys.readouterr().err == message
    assert main(["explain", "user_profile", "nobody", *story.flags]) == 1
    assert "has no document for nobody: the table has no row user nobody: no record" in capsys.readouterr().out


def test_keys_and_rows_list_the_state(finished: tuple[Story, Path], capsys: Printed) -> None:
    story, to = finished
    last = {json.dumps(line["key"]): line["value"] for line in map(json.loads, to.read_text().splitlines())}
    assert main(["keys", "user_profile", "--limit", "1000", *story.flags]) == 0
    listed = [json.dumps(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert sorted(listed) == sorted(key for key, value in last.items() if value is not None)
    assert main(["rows", "star", "--limit", "1000", *story.flags]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(story.tables["star"])


def largest_document(published: Path) -> tuple[str, Any]:
    """The key and the last document of the root with the largest one."""
    last = {json.dumps(line["key"]): line["value"] for line in map(json.loads, published.read_text().splitlines())}
    return max(last.items(), key=lambda item: len(json.dumps(item[1])))


def test_run_refuses_to_produce_records_into_topics_that_hold_some(
    finished: tuple[Story, Path], capsys: Printed
) -> None:
    story, _ = finished
    assert main([*story.run, "--once", "--from", story.file]) == 1
    topic = min(json.loads(line)["topic"] for line in Path(story.file).read_text().splitlines())
    refusal = f"statestore run: topic {topic} holds records already, and --from needs fresh topics: "
    assert capsys.readouterr().err.startswith(refusal)


def test_a_refused_start_produces_nothing_so_that_the_command_can_be_corrected(
    finished: tuple[Story, Path], story: Story, capsys: Printed
) -> None:
    assert main(["apply", *story.flags, *story.define, "--why", "a new registry"]) == 0
    words = [*story.run, "--from", story.file, "--once"]
    assert main([*words, "--table", finished[0].name]) == 1
    assert "is foreign: it belongs to another registry" in capsys.readouterr().err
    assert main(words) == 0

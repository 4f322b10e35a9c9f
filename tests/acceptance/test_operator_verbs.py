"""The verbs that edit the registry of a job with stored rows: the edits by the command, the results by `get`, `verify` and the
published messages. The page docs/changes.md runs the same verbs, so these are slow tests."""

import gc
import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.job.kafka.reader import read_topic

Story = Any  # the class in conftest.py
Printed = pytest.CaptureFixture[str]
# the command closes some connections only when its process ends
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.slow]
WHY = ["--why", "a test"]
NO_JOB = "no job runs: `statestore run` does the work, or `statestore backfill`, which reads no topics"


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collects the open connections while warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def stored(module_story: Story) -> Story:
    """A story that `run` has processed to its end. The tests of this file edit its registry one after the other."""
    assert main([*module_story.run, *module_story.define, "--from", module_story.file, "--once"]) == 0
    return module_story


def test_edits_that_name_nothing_are_refused_with_the_nearest_names(stored: Story, capsys: Printed) -> None:
    for words, message in (
        (["remove", "user_profil"], "the registry has no product user_profil; did you mean 'user_profile'?"),
        (["pause", "x"], "the registry has no product x; write one of: user_profile"),
        (["retire", "stars", "GSI_1"], "there is no entity `stars`; did you mean 'star'?"),
        (["move", "star", "GSI_4", "GSI_5"], "star has GSI_1 username, GSI_2 repo_owner#repo_name"),
        (["retire", "repo", "GSI_1"], "repo has no slots"),
    ):
        assert main([*words, *WHY, *stored.flags]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"statestore {words[0]}: ")
        assert line.endswith(message)
    assert main(["retire", "star", "GSI_1", *WHY, *stored.flags]) == 1
    assert "joins of product user_profile use it; change or remove these first" in capsys.readouterr().err


def test_a_slot_moves_and_the_documents_stay(stored: Story, capsys: Printed) -> None:
    assert main(["move", "star", "GSI_1", "GSI_4", *WHY, *stored.flags]) == 0
    printed = capsys.readouterr()
    assert printed.out == "entity star: GSI_4 will hold username (planned)\n"
    assert printed.err.splitlines() == [
        "next: entity star: GSI_4 username is planned: the job fills it in stored rows, then it serves",
        NO_JOB,
        "registry version 2",
    ]
    before = published(stored)
    assert main(["backfill", *stored.flags]) == 0
    rows = len(stored.tables["star"])
    assert capsys.readouterr().out.endswith(f" rows read, {rows} filled, 0 documents published\n")
    assert main(["slots", "--json", *stored.flags]) == 0
    board = json.loads(capsys.readouterr().out)
    held = {a["slot"]: a["columns"] for e in board["entities"] if e["entity"] == "star" for a in e["assignments"]}
    assert held == {2: ["repo_owner", "repo_name"], 4: ["username"]}
    assert [(job["alive"], job["applied_version"]) for job in board["jobs"]] == [(False, board["version"])]
    assert published(stored, since=before) == []
    assert main(["verify", *stored.flags]) == 0


def test_a_changed_product_waits_and_a_backfill_publishes_it(stored: Story, tmp_path: Path, capsys: Printed) -> None:
    before = published(stored)
    with_titles(stored, tmp_path)
    assert main(["apply", "--definitions", str(tmp_path), *WHY, *stored.flags]) == 0
    waits = "product user_profile: version 2 waits for GSI_4 of pull_request (planned)"
    assert capsys.readouterr().err.splitlines()[:2] == [
        f"next: {waits}",
        "next: entity pull_request: GSI_4 title is planned: the job fills it in stored rows, then it serves",
    ]
    assert main(["slots", *stored.flags]) == 0
    assert capsys.readouterr().out.splitlines()[-3:-1] == [
        waits,
        "entity pull_request: GSI_4 title is planned: the job fills it in stored rows, then it serves",
    ]
    assert main(["backfill", *stored.flags]) == 0
    versions = {headers(record)["statestore.product_version"] for record in published(stored, since=before)}
    assert versions == {b"2"}
    assert main(["verify", "--sql", *stored.flags]) == 0
    assert main(["retire", "pull_request", "GSI_1", *WHY, *stored.flags]) == 0
    assert "GSI_1 author is retiring: the job frees it once no product uses it" in capsys.readouterr().err
    assert main(["backfill", *stored.flags]) == 0
    capsys.readouterr()
    assert main(["slots", *stored.flags]) == 0
    assert "author" not in capsys.readouterr().out


def test_the_history_shows_each_edit_with_its_author_and_reason(stored: Story, capsys: Printed) -> None:
    assert main(["history", "--limit", "400", *stored.flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  assignments star GSI_4 username: insert" in lines
    assert "  assignments star GSI_4 username: state backfilling -> serving" in lines
    versions = [int(line.split(",")[0].split()[1]) for line in lines if not line.startswith(" ")]
    assert versions == sorted(versions, reverse=True)
    assert {line.split(": ", 1)[1] for line in lines if not line.startswith(" ")} == {
        "run",
        "a test",
        "the job's next step",
    }
    assert main(["history", "--limit", "2", "--json", *stored.flags]) == 0
    last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["version"] for one in last] == versions[:2]


def test_an_undo_puts_the_former_definition_back(stored: Story, capsys: Printed) -> None:
    assert main(["history", "--limit", "400", "--json", *stored.flags]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    added = next(one for one in entries if (one["entry"], one["operation"]) == ("waiting_products", "insert"))
    for version, reason in (
        (2, "it only changed slots"),
        (added["version"] + 1, "it only changed slots"),
        (10**6, "no edit"),
    ):
        assert main(["undo", str(version), *WHY, *stored.flags]) == 1
        assert reason in capsys.readouterr().err
    assert main(["undo", str(added["version"]), *WHY, *stored.flags]) == 0
    assert "product user_profile: changed, version 3 waits until its slots are full" in capsys.readouterr().out
    assert main(["backfill", *stored.flags]) == 0
    capsys.readouterr()
    assert main(["apply", *stored.define, *stored.flags]) == 0
    assert capsys.readouterr().out == ""
    assert main(["verify", "--sql", *stored.flags]) == 0
    assert main(["history", "--limit", "400", *stored.flags]) == 0
    assert f": undo of version {added['version']}: a test\n" in capsys.readouterr().out


def test_a_paused_product_publishes_nothing_until_it_is_resumed(stored: Story, capsys: Printed) -> None:
    assert main(["pause", "user_profile", *WHY, *stored.flags]) == 0
    assert main(["republish", "user_profile", *WHY, *stored.flags]) == 0
    before = published(stored)
    assert main(["backfill", *stored.flags]) == 0
    assert published(stored, since=before) == []
    capsys.readouterr()
    assert main(["slots", *stored.flags]) == 0
    assert (
        "product user_profile: paused, the job publishes nothing of it until `statestore resume`"
        in capsys.readouterr().out
    )
    assert main(["resume", "user_profile", *WHY, *stored.flags]) == 0
    assert NO_JOB in capsys.readouterr().err
    assert main([*stored.run, "--once"]) == 0
    assert {headers(record)["statestore.product_version"] for record in published(stored, since=before)} == {b"4"}


def test_a_killed_backfill_continues_with_the_next(stored: Story, statestore: list[str], capsys: Printed) -> None:
    assert main(["republish", "user_profile", *WHY, *stored.flags]) == 0
    before = published(stored)
    slow = ["--walk-page", "2", "--walk-rate", "8", "--lease-seconds", "5"]
    words = [*statestore, "backfill", *stored.flags, *slow]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if " walk: " in line and not line.endswith(" 0 published\n"):
                break
        assert main(["backfill", "--lease-seconds", "5", *stored.flags]) == 1
        refusal = "The job that runs does this work itself: `statestore slots --watch` shows it"
        assert refusal in capsys.readouterr().err
        process.send_signal(signal.SIGKILL)
    some = len(published(stored, since=before))
    assert main(["backfill", "--lease-seconds", "5", *stored.flags]) == 0
    keys = {record.key for record in published(stored, since=before)}
    assert some < len(keys)
    last = {record.key: record.value for record in published(stored)}
    assert keys == {key for key, value in last.items() if value is not None}


def test_a_product_that_needs_one_slot_more_goes_live_once_a_slot_is_added(
    stored: Story, tmp_path: Path, capsys: Printed
) -> None:
    with_six_joins(stored, tmp_path)
    wanted = ["apply", "--definitions", str(tmp_path), *WHY, *stored.flags]
    assert main(wanted) == 1
    assert "all 5 are taken" in (refusal := capsys.readouterr().err)
    assert refusal.endswith(" or add a slot (`statestore add-slots 6`)\n")
    assert main(["add-slots", "4", *WHY, *stored.flags]) == 1
    assert "the registry has 5 slots, and cannot have 4" in capsys.readouterr().err
    assert main(["add-slots", "6", *WHY, *stored.flags]) == 0
    printed = capsys.readouterr()
    assert printed.out == "slots: GSI_1 to GSI_6, 5 before\n"
    assert [line for line in printed.err.splitlines() if line.startswith("index ")][-1] == "index GSI_6: ACTIVE"
    assert main(["history", "--limit", "1", *stored.flags]) == 0
    version, added = capsys.readouterr().out.splitlines()
    assert added == "  slots GSI_6: insert"
    assert main(["undo", version.split(",")[0].split()[1], *WHY, *stored.flags]) == 1
    assert "it added slots, and the table keeps their indexes" in capsys.readouterr().err
    assert main(wanted) == 0
    assert main(["backfill", *stored.flags]) == 0
    assert main(["slots", "--json", *stored.flags]) == 0
    board = json.loads(capsys.readouterr().out.split("published\n")[1])
    held = {a["slot"]: a["state"] for e in board["entities"] if e["entity"] == "pull_request" for a in e["assignments"]}
    assert held == dict.fromkeys(range(1, 7), "serving")
    assert main(["verify", "--sql", *stored.flags]) == 0
    assert main(["remove", "pulls", *WHY, *stored.flags]) == 0


def test_watch_prints_the_board_until_it_is_interrupted(
    stored: Story, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("processor.cli.status.sleep", pause)
    assert main(["slots", "--watch", *stored.flags]) == 0
    boards = re.findall(r"^\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n(entity .*)\n", capsys.readouterr().out, re.MULTILINE)
    assert len(boards) == len(pauses) == 2


def test_all_work_pauses_and_a_removed_product_ends_in_tombstones(stored: Story, capsys: Printed) -> None:
    assert main(["pause", *WHY, *stored.flags]) == 0
    assert "next: all work: paused, the job reads no batches until `statestore resume`" in capsys.readouterr().err
    assert main(["resume", *WHY, *stored.flags]) == 0
    assert main(["remove", "user_profile", "--tombstones", *WHY, *stored.flags]) == 0
    assert capsys.readouterr().err.splitlines()[-3:-1] == [
        "next: product user_profile: the job replaces its documents by tombstones, then removes it",
        NO_JOB,
    ]
    assert main(["backfill", *stored.flags]) == 0
    last = {record.key: record.value for record in published(stored)}
    assert set(last.values()) == {None}
    assert main(["slots", "--json", *stored.flags]) == 0
    assert json.loads(capsys.readouterr().out.split("published\n")[1])["products"] == []


def published(story: Story, since: Sequence[Any] = ()) -> list[Any]:
    """The messages of the product's topic so far, without those that were there before, partition by partition."""
    known = {(record.partition, record.offset) for record in since}
    found = read_topic(story.bootstrap_servers, {}, story.topic)
    return sorted(
        (record for record in found if (record.partition, record.offset) not in known),
        key=lambda record: (record.partition, record.offset),
    )


def headers(record: Any) -> dict[str, bytes | None]:
    return dict(record.headers)


def with_titles(story: Story, directory: Path) -> None:
    """The story's definitions, whose pull requests join by their title."""
    for file in (story.directory / "definitions").iterdir():
        changed = file.read_text().replace('"on": {"author": "username"}', '"on": {"title": "username"}')
        (directory / file.name).write_text(changed)


def with_six_joins(story: Story, directory: Path) -> None:
    """The story's entities, and a product whose joins need six slots of pull requests."""
    text = (story.directory / "definitions" / "entities.yaml").read_text()
    (directory / "entities.yaml").write_text(text)
    on = [{name: "username"} for name in ("repo", "repo_owner", "author", "title", "status")]
    pairs = [*on, {"title": "username", "status": "email"}]
    embed = {f"by{n}": {"many": "pull_request", "on": pair, "value": "index"} for n, pair in enumerate(pairs)}
    product = {"product": "pulls", "topic": f"{story.name}.pulls", "root": "user", "fields": ["email"], "embed": embed}
    (directory / "pulls.json").write_text(json.dumps(product))

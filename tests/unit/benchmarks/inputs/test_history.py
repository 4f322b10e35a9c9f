"""The benchmark's generated history has the asked number of lines of the five tables, the same ones for the same seed."""

import importlib.util
import json
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "inputs" / "history.py"
COLUMNS = {
    "user": {"id", "email", "username", "registered_at"},
    "repo": {"owner", "name", "description", "star_count", "fork_count", "created_at", "updated_at"},
    "pull_request": {"repo", "repo_owner", "index", "author", "title", "status", "created_at"},
    "star": {"username", "repo_name", "repo_owner", "created_at"},
    "payment_info": {"id", "user_id", "verified"},
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_history", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_history_has_the_asked_number_of_plain_rows_with_their_keys(script: ModuleType) -> None:
    lines = list(script.generate_history(7, events=2_000, users=150))
    assert len(lines) == 2_000
    for line in lines:
        assert list(line) == ["topic", "partition", "key", "value", "timestamp"]
        if line["value"] is not None:
            assert line["value"].keys() == COLUMNS[line["topic"]]
            assert line["key"].items() <= line["value"].items()


def test_the_history_creates_the_asked_number_of_users(script: ModuleType) -> None:
    lines = script.generate_history(7, events=2_000, users=150)
    assert len({line["key"]["email"] for line in lines if line["topic"] == "user"}) == 150


def test_the_same_seed_gives_the_same_history_and_another_seed_another(script: ModuleType) -> None:
    assert list(script.generate_history(7, 500, 50)) == list(script.generate_history(7, 500, 50))
    assert list(script.generate_history(7, 500, 50)) != list(script.generate_history(8, 500, 50))


def test_the_history_is_generated_lazily(script: ModuleType) -> None:
    assert len(list(islice(script.generate_history(7, events=10**12, users=10), 5))) == 5


def test_a_key_stays_in_its_partition(script: ModuleType) -> None:
    partitions = defaultdict(set)
    for line in script.generate_history(7, events=2_000, users=150):
        partitions[line["topic"], json.dumps(line["key"])].add(line["partition"])
    assert {len(used) for used in partitions.values()} == {1}


def test_every_kind_of_change_occurs_and_changes_an_existing_row(script: ModuleType) -> None:
    rows: dict[tuple[str, str], object] = {}
    kinds: Counter[tuple[str, str]] = Counter()
    for line in script.generate_history(7, events=4_000, users=300):
        key, value = (line["topic"], json.dumps(line["key"])), line["value"]
        old = rows.get(key)
        assert value is not None or old is not None
        kinds[line["topic"], "delete" if value is None else "insert" if old is None else "update"] += 1
        rows[key] = value
    expected = {(table, kind) for table in COLUMNS for kind in ("insert", "update", "delete")}
    assert expected - kinds.keys() == {("pull_request", "delete")}


def test_the_command_writes_json_lines(script: ModuleType) -> None:
    command = [sys.executable, str(SCRIPT), "--events", "50", "--users", "5", "--seed", "7"]
    written = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    assert [json.loads(line) for line in written.splitlines()] == list(script.generate_history(7, 50, 5))

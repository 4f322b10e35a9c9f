"""README says nothing that was not tried: its blocks are run in their order, its tables computed, its links followed.

A `sh` block is run by bash as it stands, in a directory that looks like a checkout after `make setup`. Two kinds are not:
`make TARGET` (each of them runs for minutes, and `make test` would run this test again) is checked to be a target; and
`production.toml` gets the addresses of the embedded parts in place of the made-up ones, for the blocks that use it.
A block after the word `prints` is the standard output of the block before it.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from processor.definitions.load import load, read_directory
from processor.model.plan import SlotRead
from processor.planning import plan_alone
from processor.recorded import read_records
from processor.settings import Settings
from processor.trial import Trial
from statestore import keys
from statestore.items import read_row, slot_name
from statestore.keys import Key

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(make [a-z-]+\n)+")
SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language and text, its line in README, and what stands between it and the block before it."""

    language: str
    text: str
    line: int
    between: str


def _blocks() -> Iterator[Block]:
    end = 0
    for found in FENCE.finditer(README):
        line = README.count("\n", 0, found.start()) + 1
        yield Block(language=found[1], text=found[2], line=line, between=README[end : found.start()].strip())
        end = found.end()


BLOCKS = tuple(_blocks())


def _of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in which README's commands work; the parts that they leave running end with it."""
    directory = tmp_path_factory.mktemp("checkout")
    (directory / "examples").symlink_to(ROOT / "examples")
    command = directory / ".venv" / "bin" / "statestore"
    command.parent.mkdir(parents=True)
    command.symlink_to(Path(sys.executable).parent / "statestore")
    yield directory
    _bash(".venv/bin/statestore local down", directory)


def test_every_shell_block_runs_and_prints_what_the_page_says(checkout: Path) -> None:
    for number, block in enumerate(BLOCKS):
        if block.language != "sh" or MAKE.fullmatch(block.text):
            continue
        if "production.toml" in block.text:
            _write_production(checkout)
        done = _bash(block.text, checkout)
        assert done.returncode == 0, f"README.md:{block.line}\n{block.text}\n{done.stdout}\n{done.stderr}"
        after = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else None
        if after is not None and after.between == "prints":
            assert done.stdout == after.text, f"README.md:{after.line}"


def test_a_block_is_in_a_language_that_is_checked_here() -> None:
    assert {block.language for block in BLOCKS} <= {"sh", "json", "yaml", "toml", "text"}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", "".join(b.text for b in _of("sh"))))))
def test_a_make_target_of_the_page_is_one(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", _of("json"), ids=lambda block: f"line {block.line}")
def test_a_json_block_is_json(block: Block) -> None:
    for line in block.text.splitlines():
        json.loads(line)


@pytest.mark.parametrize("block", _of("yaml"), ids=lambda block: f"line {block.line}")
def test_a_yaml_block_is_a_product_over_the_tables_of_the_example(block: Block) -> None:
    example = read_directory(ROOT / "examples" / "github")
    definitions = load({"entities.yaml": example["entities.yaml"], "products/block.yaml": block.text})
    assert len(definitions.products) == 1


def test_the_settings_file_of_the_page_has_settings_that_exist() -> None:
    (block,) = _of("toml")
    assert set(tomllib.loads(block.text)) <= {field.name for field in fields(Settings)}


def test_the_event_followed_through_is_what_the_steps_make_of_it(tmp_path: Path) -> None:
    recorded = next(block.text for block in _of("sh") if "topics.jsonl" in block.text)
    lines = [line + "\n" for line in recorded.splitlines() if line.startswith("{")]
    (tmp_path / "topics.jsonl").write_text("".join(lines))
    plan = plan_alone(load(read_directory(ROOT / "examples" / "github")), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    records = list(read_records(str(tmp_path / "topics.jsonl")))
    trial.batch(records)
    change, document = _of("json")[:2]
    assert change.text == lines[-1]
    assert document.text.encode() == (trial.published.messages[-1].value or b"") + b"\n"
    for record in records:
        assert _row_line(trial, record.topic, record.key) in README
    read = next(node.down for node in plan.products["user_profile"].nodes if node.join.name == "starred_repos")
    assert isinstance(read, SlotRead)
    query = plan.query("star", read, "octocat")
    assert query.pk is None
    assert _of("text")[0].text == f"{query.slot} = '{query.value}'\n"
    assert {item["PK"] for item in trial.store.query(query)} == {"TABLE#user", "TABLE#star", "TABLE#pull_request"}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_a_link_of_the_page_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def _row_line(trial: Trial, entity: str, key: bytes | None) -> str:
    """The line of the table of rows for one row."""
    columns = trial.plan.entities[entity].entity.key
    parts = json.loads(key or b"{}")
    at = Key(f"TABLE#{entity}", keys.spell([parts[c] for c in columns]) or "")
    row = read_row(trial.store.get([at])[at])
    slots = {slot_name(slot): f"`{held}` " for slot, held in row.slots.items()}
    return f"| `{at.pk}` | `{at.sk}` | {slots.get('GSI_1', '')}| {slots.get('GSI_2', '')}|"


def _write_production(checkout: Path) -> None:
    """`production.toml` of the page, its addresses and what belongs to them replaced by the embedded parts'."""
    status = _bash(".venv/bin/statestore local status --json", checkout)
    parts: dict[str, Any] = json.loads(status.stdout)
    (block,) = _of("toml")
    own = {
        "registry": parts["registry_url"],
        "bootstrap_servers": parts["bootstrap_servers"],
        "endpoint": parts["dynamodb_endpoint"],
        "checkpoint": str(checkout / "production-checkpoint"),
    }
    kept = {name: value for name, value in tomllib.loads(block.text).items() if name not in (*own, "kafka")}
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in (kept | own).items())
    (checkout / "production.toml").write_text("".join(lines))


def _bash(text: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Runs a block; a setting of whoever runs the tests must not reach it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STATESTORE_")}
    environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

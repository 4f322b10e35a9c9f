"""README says nothing that was not tried: its blocks are run in their order, its tables computed, its links followed.

A `sh` block is run by bash as it stands, in a directory that looks like a checkout after `make setup`. Two kinds are not:
`make TARGET` (each of them runs for minutes, and `make test` would run this test again) is checked to be a target; and
`production.toml` gets the addresses of the embedded parts in place of the made-up ones, for the blocks that use it.
A block after the word `prints` is the standard output of the block before it.
"""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from processor.definitions.load import load, read_directory
from processor.model.access import SlotRead
from processor.planning import plan_alone
from processor.recorded import read_records
from processor.settings import Settings
from processor.trial import Trial
from statestore import keys
from statestore.items import read_row, slot_name
from statestore.keys import Key
from tests.acceptance.pages import MAKE, Block, bash, blocks, make_checkout, run_block

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = tuple(blocks(README))


def _of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in which README's commands work; the parts that they leave running end with it."""
    directory = make_checkout(tmp_path_factory.mktemp("checkout"), ROOT)
    yield directory
    bash(".venv/bin/statestore local down", directory)


def test_every_shell_block_runs_and_prints_what_the_page_says(checkout: Path) -> None:
    for number, block in enumerate(BLOCKS):
        if block.language != "sh" or MAKE.fullmatch(block.text):
            continue
        if "production.toml" in block.text:
            _write_production(checkout)
        after = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else None
        run_block("README.md", block, after, checkout)


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
    status = bash(".venv/bin/statestore local status --json", checkout)
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

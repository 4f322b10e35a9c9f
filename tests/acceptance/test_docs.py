"""Tests all pages of the repository: runs their shell blocks in order, follows their links, and checks their examples."""

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from docs.stage import stage
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import run_case
from processor.environment.settings.kafka import MECHANISMS, NAMES, for_java, for_librdkafka
from processor.environment.settings.settings import Settings, read_settings
from processor.language.definitions.load import load, read_directory
from processor.language.definitions.product_tests import read_cases
from tests.acceptance.pages import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    blocks_of,
    links,
    make_checkout,
    page_name,
    run_page,
    stop_parts,
)
from tests.screenshots.terminal import MOST_BYTES, SESSIONS, Session, draw

DOCS = ROOT / "docs"
SLOW = {DOCS / "troubleshooting.md", DOCS / "changes.md", DOCS / "stores.md"}
"""Pages whose blocks start the job many times. Of them `make test-rest` runs those before the first start of parts."""
OFTEN = {ROOT / "README.md"}
"""The page that newcomers read first: `make test` runs its blocks, with Spark or not."""
LONG = {DOCS / "debezium.md", DOCS / "definitions.md"}
"""Pages with many blocks that start nothing."""
STARTS_PARTS = ("statestore run", "statestore local up", "statestore demo", "production.toml")
GLOSSARY = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Glossary")[2]
TERMS = re.findall(r"^\| ([^|]+?) \| [^|]+ \| `([^`]+)`: `(\w+)` \|$", GLOSSARY, re.MULTILINE)
"""(term, module, name in the module) of each line of the glossary."""
WRITTEN = ("entities.yaml", "production.toml", "settings.toml")
"""Files that a reader writes."""
OVERVIEW = "product: user_overview"
"""The product that the page about definitions has as a query and as a tree."""
WORDS = """
    assignment, attempt, backlog, batch, change, dead letter, delete marker, document, driver, edge, embedded part, entity,
    epoch, evidence, executor, fan-out, fence, former keys, join, join key, lane, lease, ledger, lookup, mark, open change,
    overlay, part, pending keys, plan, position, product, registry version, replay, reservation, root, round, row, run, S,
    settle, shard, slot, step, step runner, touch, verb, version, W
"""
"""Terms that the glossary must have."""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A directory in which the commands of a page work."""
    yield make_checkout(tmp_path)
    stop_parts(tmp_path)


def pages_to_run() -> Iterator[Any]:
    """The pages. `make test` runs the blocks of short pages that start nothing, and of the first one."""
    for page in PAGES:
        starts = any(word in block.text for block in blocks_of(page, "sh") for word in STARTS_PARTS)
        rest = (pytest.mark.rest,) if page in LONG or (starts and page not in OFTEN) else ()
        yield pytest.param(page, marks=(pytest.mark.slow,) if page in SLOW else rest)


@pytest.mark.parametrize("page", list(pages_to_run()), ids=page_name)
def test_every_shell_block_runs_and_prints_the_output_of_the_page(page: Path, checkout: Path) -> None:
    run_page(page, checkout)


@pytest.mark.rest
@pytest.mark.parametrize("page", [DOCS / "changes.md", DOCS / "troubleshooting.md"], ids=page_name)
def test_the_quick_shell_blocks_of_a_slow_page_run(page: Path, checkout: Path) -> None:
    run_page(page, checkout, until="statestore local up")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_in_a_known_language(page: Path) -> None:
    assert {block.language for block in blocks(page.read_text(encoding="utf-8"))} <= {
        "sh",
        "json",
        "yaml",
        "properties",  # of Kafka Connect
        "toml",
        "text",
    }


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for path, anchor in links(page):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_every_relative_link_of_the_site_leads_to_a_file(tmp_path: Path) -> None:
    stage(tmp_path)
    pages = list(tmp_path.rglob("*.md"))
    assert len(pages) == len(PAGES)
    assert [
        (str(page), path) for page in pages for path, _ in links(page) if path and not (page.parent / path).is_file()
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_make_target_of_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in {*re.findall(r"`make ([a-z-]+)", text), *re.findall(r"^make ([a-z-]+)$", text, re.MULTILINE)}:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_line_of_a_json_block_is_json(page: Path) -> None:
    for block in blocks_of(page, "json"):
        for line in block.text.splitlines():
            json.loads(line)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    for name in re.findall(r"`([\w./]+\.(?:py|toml|yaml|gz))(?::\d+)?`", page.read_text(encoding="utf-8")):
        places = (ROOT, ROOT / "processor", *(ROOT / "processor").glob("[a-z]*/"), ROOT / "tests", page.parent)
        assert name in WRITTEN or any((place / name).exists() for place in places), name


def test_the_rooms_of_the_architecture_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["processor"])
    rooms = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## The rooms")[2]
    lines = [re.sub(r"^( processor/| {6}\||   imports| {6}v)?", "", line).strip() for line in rooms.splitlines()[2:]]
    first = [re.split(r"  +", line)[0].removesuffix("/") for line in lines]
    assert [word for word in first if word in layers] == layers


def test_the_tiers_of_contributing_are_those_of_the_make_file() -> None:
    tiers = re.findall(r"^\| `(tests/\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    lines = re.findall(r"^(?:FAST|SLOW) := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(tiers) == sorted(word for line in lines for word in line.split() if word.startswith("tests/"))


def test_the_readme_leads_to_every_page_of_docs() -> None:
    indexed = {path for path, _ in links(ROOT / "README.md")}
    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} <= indexed


def test_the_glossary_has_every_term_once_in_order() -> None:
    terms = [term for term, _, _ in TERMS]
    assert len(terms) == sum(line.startswith("| ") for line in GLOSSARY.splitlines()) - 1
    assert terms == sorted(set(terms), key=str.lower)
    assert {word.strip() for word in WORDS.split(",")} <= set(terms)


@pytest.mark.parametrize(("term", "module", "name"), TERMS, ids=[term for term, _, _ in TERMS])
def test_the_module_that_the_glossary_names_defines_the_term(term: str, module: str, name: str) -> None:
    assert name in set(_defined(ROOT / module))


@pytest.mark.parametrize("page", ["operate.md", "deploy.md"])
def test_the_settings_file_of_the_page_names_settings_only(page: str) -> None:
    named = [name for block in blocks_of(DOCS / page, "toml") for name in tomllib.loads(block.text)]
    assert named
    assert set(named) <= {field.name for field in fields(Settings)}


def test_both_clients_of_kafka_take_each_settings_file_of_the_page(tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(DOCS / "kafka.md", "toml") if "[kafka]" in block.text]
    assert len(blocks) > 5
    for block in blocks:
        file = tmp_path / "settings.toml"
        file.write_text(block.text)
        kafka = dict(read_settings({}, {}, str(file)).kafka)
        protocols = {client["security.protocol"] for client in (for_librdkafka(kafka), for_java(kafka))}
        assert protocols == {kafka["security.protocol"]}


def test_the_page_about_a_secured_kafka_has_every_mechanism_and_every_name() -> None:
    page = (DOCS / "kafka.md").read_text(encoding="utf-8")
    last = [name.removeprefix("sasl.oauthbearer") for name in NAMES]
    assert [name for name in (*MECHANISMS, *last) if name not in page] == []


def test_the_products_of_the_page_about_definitions_are_over_its_entities() -> None:
    texts_of_page = [text for text in _definitions() if not text.startswith("- test") and OVERVIEW not in text]
    products = [text for text in texts_of_page if "product:" in text]
    entities = "\n".join(text for text in texts_of_page if "product:" not in text)
    texts = {f"products/{n}.yaml": product for n, product in enumerate(products)}
    assert len(load({"entities.yaml": entities, **texts}).products) == len(products) > 1


def test_the_query_of_the_page_about_definitions_is_its_tree() -> None:
    entities = read_directory(ROOT / "examples" / "github")["entities.yaml"]
    query, tree = (text for text in _definitions() if OVERVIEW in text)
    assert load({"entities.yaml": entities, "p.yaml": query}) == load({"entities.yaml": entities, "p.yaml": tree})


def test_the_test_of_the_page_about_definitions_passes() -> None:
    definitions = load(read_directory(ROOT / "examples" / "github"))
    (text,) = (text for text in _definitions() if text.startswith("- test"))
    (case,) = read_cases({"tests/page.yaml": text}, definitions)
    assert run_case(case, plan_alone(definitions, slots=20), Settings()) == ()


def _definitions() -> list[str]:
    """The YAML of the page about definitions: entities, products, a product twice (as a query and as a tree), and a test."""
    return [block.text for block in blocks_of(DOCS / "definitions.md", "yaml")]


def _defined(module: Path) -> Iterator[str]:
    """The names that a module defines: its own, and those of its classes."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.rest
@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.file)
def test_a_screen_of_a_page_is_what_its_commands_print(session: Session) -> None:
    kept = (ROOT / session.file).read_text(encoding="utf-8")
    assert screen_text(draw(session)) == screen_text(kept), "`make screens` writes it again"
    assert len(kept) <= MOST_BYTES
    assert "http" not in kept.replace("http://www.w3.org/2000/svg", "")


def screen_text(svg: str) -> list[str]:
    """The texts of a screen, whatever rich writes around them."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", svg)

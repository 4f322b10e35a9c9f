"""The shape of the code, checked: who imports what, what the pure core may not know, and what no file may hold."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from processor.cli.main import VERBS
from tests.architecture.files import repository_files

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ROOTS = ("statestore", "processor", "registry")
CLIENTS = ("pyspark", "boto3", "botocore", "sqlalchemy", "alembic", "psycopg", "confluent_kafka", "sqlglot")


def _pure_rooms() -> list[str]:
    """The folders and files of the contract that the pure rooms know no client."""
    (contract,) = (c for c in CONTRACTS if c["name"] == "the pure rooms know no client")
    return [module.replace(".", "/") for module in contract["source_modules"]]


PURE = tuple(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for name in _pure_rooms()
    for path in sorted((ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / f"{name}.py"])
)
STAR = """\
{"topic": "user", "key": {"email": "octo@example.org"}, "value": {"id": 1, "email": "octo@example.org", "username": "octocat"}}
"""
EXAMPLE = str(ROOT / "examples" / "github")
HERE = "."
"""Becomes a directory of the test."""
AUTHORS_VERBS = [
    ["explain", "user_profile", "--definitions", EXAMPLE],
    ["explain", "user_profile", "--sql", "--definitions", EXAMPLE],
    ["explain", "user_profile", "--mermaid", "--definitions", EXAMPLE],
    ["tour"],
    ["schema", "user_profile", "--definitions", EXAMPLE],
    ["plan", "--offline", "--definitions", EXAMPLE],
    ["test", EXAMPLE],
    ["check", EXAMPLE],
    ["catalogue", EXAMPLE, "--to", HERE],
]
RUN_VERBS = """
import sys
from contextlib import redirect_stdout
from io import StringIO
from processor.cli.main import main
for words in {verbs!r}:
    with redirect_stdout(StringIO()):
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code
    assert status == 0, words
    if known := set(sys.modules) & set({clients!r}):
        sys.exit(f"{{words}} imports {{known}}")
"""
MOST_LINES = 900
"""Of a product file. A subject has 150 to 600."""
MOST_FILES_OF_AN_EVENT = 80
MACHINE = re.compile(r"(?<![\w.])/(?:home|Users)/(?!\.|\$)[a-z][\w-]*/|(?<![\w.$}])/(?:root)/")
CONFLICT = re.compile(r"^(?:<{7}|[|]{7}|>{7}) .*", re.MULTILINE)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*ROOTS, include_external_packages=True, cache_dir=None)


def test_the_import_contracts_are_kept() -> None:
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_module_imports_itself_by_a_detour(graph: grimp.ImportGraph) -> None:
    TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).prepare()


def test_the_path_of_an_event_is_short() -> None:
    """A reader of the two stages opens these files at most: none of settings, stores or programs."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None, exclude_type_checking_imports=True)
    stages = {f"processor.engine.rounds.{name}" for name in ("write_stage", "publish_stage")}
    opened = stages.union(*map(graph.find_upstream_modules, stages))
    assert [module for module in opened if module.startswith("processor.environment")] == []
    assert len(opened) <= MOST_FILES_OF_AN_EVENT


def test_no_verb_imports_a_verb(graph: grimp.ImportGraph) -> None:
    verbs = {f"processor.cli.{module}" for module in VERBS.values()}
    assert verbs <= graph.modules
    imports = {verb: sorted(graph.find_modules_directly_imported_by(verb) & verbs) for verb in verbs}
    assert {verb: found for verb, found in imports.items() if found} == {}


def test_a_file_is_a_subject_and_not_a_heap() -> None:
    lines = {path: len(path.read_text().splitlines()) for root in ROOTS for path in (ROOT / root).rglob("*.py")}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_nobody_spells_the_name_of_a_counter_again() -> None:
    """`processor/counts.py` has the names, so that mypy finds a wrong one. A landing has counters of its own."""
    spelled = re.compile(r"""tally(?:\.get|\.pop)?[\[(]f?["'](?!\{)|tally=Counter\(\w+=""")
    files = [*(ROOT / "processor").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    found = [path for path in files if spelled.search(path.read_text())]
    assert [str(path) for path in found if path.parent.name != "landing"] == []


def test_no_benchmark_imports_a_test() -> None:
    imported = re.compile(r"^\s*(?:from|import) tests\b", re.MULTILINE)
    assert [str(path) for path in (ROOT / "benchmarks").rglob("*.py") if imported.search(path.read_text())] == []


def test_the_pure_core_knows_no_client() -> None:
    """One interpreter imports all pure modules in turn, and names the first one that brings a client."""
    named = f"from importlib import import_module\nimport sys\nfor module in {PURE!r}:\n    import_module(module)\n"
    found = f"    if known := set(sys.modules) & set({CLIENTS!r}): sys.exit(f'{{module}} imports {{known}}')"
    _output_of(named + found)


def test_the_verbs_for_authors_run_without_any_client(tmp_path: Path) -> None:
    """One interpreter runs the verbs in turn, and names the first one that brings a client."""
    topics = tmp_path / "topics.jsonl"
    topics.write_text(STAR)
    reads = ["try", "--definitions", EXAMPLE, "--from", str(topics), "--to", os.devnull]
    others = [[str(tmp_path) if word == HERE else word for word in words] for words in AUTHORS_VERBS]
    _output_of(RUN_VERBS.format(verbs=[["--help"], reads, *others], clients=CLIENTS))


def test_no_file_holds_a_path_of_a_machine_or_half_of_a_merge() -> None:
    found = [f"{path.relative_to(ROOT)}: {where}" for path in repository_files() for where in _leftovers(path)]
    assert found == []


def _output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _leftovers(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    for pattern in (MACHINE, CONFLICT):
        yield from (match.group() for match in pattern.finditer(text))
    if len(ROOT.parts) > 2 and str(ROOT) in text:  # a root of one part (`/src`) may well be a word of some file
        yield str(ROOT)

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

ROOT = Path(__file__).parents[2]
ROOTS = ("statestore", "processor", "registry")
CLIENTS = ("pyspark", "boto3", "botocore", "sqlalchemy", "alembic", "psycopg", "confluent_kafka", "sqlglot")
PURE = (
    "statestore.keys",
    "statestore.items",
    "statestore.requests",
    "statestore.values",
    "statestore.limits",
    "statestore.table",
    "statestore.store",
    "statestore.memory",
    "statestore.metered",
    "registry.lifecycle",
    "registry.slots",
    "registry.model",
    "registry.board",
    "registry.statistics",
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("steps", "model")
        for path in sorted((ROOT / "processor" / package).glob("*.py"))
        if path.stem != "__init__"
    ),
)
DOORWAYS = {
    "boto3": r"statestore\.dynamodb",
    "botocore": r"statestore\.dynamodb",
    "confluent_kafka": r"processor\.kafka",
    "sqlalchemy": r"registry\.(tables|repository\..*|migrations\..*)",
    "alembic": r"registry\.(repository|migrations)\..*",
    "psycopg": r"processor\.oracle|registry\.repository\.connection",  # the latter tells the registry's errors apart
    "pyspark": r"processor\.(job|rounds|source)",
    "sqlglot": r"processor\.definitions\.sql_parser",
}
STAR = """\
{"topic": "user", "key": {"email": "octo@example.org"}, "value": {"id": 1, "email": "octo@example.org", "username": "octocat"}}
"""
EXAMPLE = str(ROOT / "examples" / "github")
AUTHORS_VERBS = [
    ["explain", "user_profile", "--definitions", EXAMPLE],
    ["explain", "user_profile", "--sql", "--definitions", EXAMPLE],
    ["schema", "user_profile", "--definitions", EXAMPLE],
    ["plan", "--offline", "--definitions", EXAMPLE],
    ["test", EXAMPLE],
]
KNOWN = "import sys; print(*sorted(set(sys.modules) & set({clients!r})))"
MACHINE = re.compile(r"(?<![\w.])/(?:home|Users)/(?!\.|\$)[a-z][\w-]*/|(?<![\w.$}])/(?:root)/")
UNTRACKED = {"__pycache__", "build", "dist"}


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


def test_every_step_stands_in_the_contract_that_steps_never_import_each_other() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (c for c in contracts if c["name"] == "steps never import each other")
    steps = {f"processor.steps.{path.stem}" for path in (ROOT / "processor" / "steps").glob("*.py")}
    assert set(contract["modules"]) == steps - {"processor.steps.__init__"}


@pytest.mark.parametrize("client", DOORWAYS)
def test_a_client_is_imported_by_its_doorway_only(graph: grimp.ImportGraph, client: str) -> None:
    importers = graph.find_modules_that_directly_import(client)
    assert importers, f"nothing imports {client}: is the doorway's rule of use?"
    assert [m for m in importers if not re.fullmatch(DOORWAYS[client], m)] == []


@pytest.mark.parametrize("module", PURE)
def test_the_pure_core_knows_no_client(module: str) -> None:
    assert _clients_after(f"import {module}") == []


def test_try_runs_without_any_client(tmp_path: Path) -> None:
    topics = tmp_path / "topics.jsonl"
    topics.write_text(STAR)
    arguments = ["try", "--definitions", str(ROOT / "examples" / "github"), "--from", str(topics), "--to", os.devnull]
    assert _clients_after(f"from processor.cli.main import main; assert main({arguments!r}) == 0") == []


@pytest.mark.parametrize("arguments", AUTHORS_VERBS, ids=lambda words: words[0])
def test_a_verb_for_authors_runs_without_any_client(arguments: list[str]) -> None:
    call = f"with redirect_stdout(StringIO()): assert main({arguments!r}) == 0"
    header = "from contextlib import redirect_stdout\nfrom io import StringIO\nfrom processor.cli.main import main"
    assert _clients_after(f"{header}\n{call}") == []


def test_help_is_printed_without_any_client() -> None:
    assert _clients_after("from processor.cli import main") == []


def test_no_file_holds_a_path_of_a_machine() -> None:
    found = [f"{path.relative_to(ROOT)}: {where}" for path in _files() for where in _machine_paths(path)]
    assert found == []


def _clients_after(code: str) -> list[str]:
    """The clients that an interpreter has imported after it ran the code."""
    known = KNOWN.format(clients=CLIENTS)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{known}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _files() -> Iterator[Path]:
    """The files of the checkout, but what is made in it."""
    for directory, names, files in os.walk(ROOT):
        names[:] = [n for n in names if n not in UNTRACKED and not n.endswith(".egg-info")]
        names[:] = [n for n in names if not n.startswith(".") or n in (".ci", ".github")]
        yield from (Path(directory) / name for name in files)


def _machine_paths(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from (match.group() for match in MACHINE.finditer(text))
    if len(ROOT.parts) > 2 and str(ROOT) in text:  # a root of one part (`/src`) may well be a word of some file
        yield str(ROOT)

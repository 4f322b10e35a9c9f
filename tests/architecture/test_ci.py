"""CI, the workflow and the hooks of contributors give the same commands."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
TARGETS = ("check", "test", "test-rest", "test-spark-start")


def read(path: str) -> Any:
    return YAML(typ="safe").load(ROOT / path)


def test_the_workflow_has_a_shard_for_each_command_of_ci() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^for target in (.+); do$", run, re.MULTILINE) == [" ".join(TARGETS)]
    assert tuple(read(".github/workflows/tests.yml")["jobs"]["shard"]["strategy"]["matrix"]["target"]) == TARGETS


def test_the_hooks_of_contributors_run_targets_of_make() -> None:
    hooks = [hook["entry"] for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert hooks == ["make check", "make test-quick"]


def test_every_test_that_make_test_leaves_out_runs_in_ci_or_in_test_all() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r'^(?:CORE|REST) := "(.+)"$', makefile, re.MULTILINE) == [
        "not slow and not rest",
        "rest and not slow",
    ]


def test_a_test_that_lacks_a_part_of_the_machine_asks_for_it_by_one_module() -> None:
    """tests/support/required.py skips with a reason, and with CI=true a skip is a failure."""
    asks = re.compile(r"shutil\.which\(|\bfind_spec\(")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path.name.startswith(("test_", "conftest")) and asks.search(path.read_text(encoding="utf-8"))
    ]
    assert [path for path in found if path != "tests/architecture/test_ci.py"] == []


def test_ci_installs_the_programs_that_tests_ask_for() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    asked = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'required_program\("([\w-]+)"', path.read_text(encoding="utf-8"))
    }
    excused = {
        "docker",
        "chromium",
        "prometheus",
        "promtool",
        "terraform",
    }  # of slow tests, and of the marker docker_compose
    asked.add("pg_ctlcluster")  # Debian has it with the servers that `required_older_postgres` looks for
    assert asked - excused == set(re.findall(r"^ensure_program ([\w-]+) [\w-]+ \|\|", run, re.MULTILINE))

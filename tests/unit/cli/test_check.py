"""`statestore check`: what an editor and a commit hook see, and what the verb imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from processor.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAVY = (
    "boto3",
    "botocore",
    "pyspark",
    "sqlglot",
    "sqlalchemy",
    "confluent_kafka",
    "email",
    "importlib.metadata",
    "ssl",
)


def test_good_directories_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLES / "orders"), str(EXAMPLES / "shop")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{EXAMPLES / 'orders'}: 4 entities, 2 products, 3 tests, no mistake"
    assert second.startswith(f"{EXAMPLES / 'shop'}: ")


def test_each_mistake_begins_with_the_path_that_the_user_gave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d/tests").mkdir(parents=True)
    assert main(["check", "d"]) == 1
    assert capsys.readouterr().err == (
        "d/entities.yaml: the file is missing; create it: `statestore init DIR` writes it from the source\n"
    )
    Path("d/entities.yaml").write_text("user: {key: [id], columns: {id: int}}\n")
    Path("d/p.yaml").write_text("product: p\nroot: usr\n")
    assert main(["check", "d"]) == 1
    assert capsys.readouterr().err == "d/p.yaml:2: there is no entity `usr`; did you mean 'user'?\n"
    Path("d/p.yaml").write_text("product: p\nroot: user\n")
    Path("d/tests/t.yaml").write_text("- test: one\n  expects: {}\n")
    assert main(["check", "d"]) == 1
    assert "d/tests/t.yaml:2: a test has no key `expects`; did you mean 'expect'?" in capsys.readouterr().err


def test_all_directories_are_checked_also_after_a_wrong_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), str(EXAMPLES / "orders")]) == 1
    assert "no mistake" in capsys.readouterr().out


def test_an_entity_with_more_joins_than_slots_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ", ".join(f"c{n}: int" for n in range(21))
    (tmp_path / "entities.yaml").write_text(
        f"a: {{key: [id], columns: {{id: int}}}}\nb: {{key: [id], columns: {{id: int, {columns}}}}}\n"
    )
    joins = "\n".join(f"  j{n}: {{many: b, on: {{c{n}: id}}, limit: 1}}" for n in range(21))
    (tmp_path / "p.yaml").write_text(f"product: p\nroot: a\nembed:\n{joins}\n")
    assert main(["check", str(tmp_path)]) == 1
    assert "statestore check: entity b: no slot is free for c20" in capsys.readouterr().err


def test_a_check_without_expressions_imports_no_client_and_no_parser_of_sql() -> None:
    """0.3 seconds are mostly imports. A count of seconds would say more about the machine."""
    code = (
        "import sys\nfrom processor.cli.main import main\n"
        f"assert main(['check', {str(EXAMPLES / 'github')!r}]) == 0\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

"""`plan --diff` over recorded topics, as text, as Markdown and as JSON, and the flags that do not go together."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from processor.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
ORDERS = EXAMPLES / "orders"
Changed = Callable[..., tuple[str, ...]]


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """Makes a copy of the definitions of the orders with replacements in order_enriched; returns the words of the verb."""

    def make(*pairs: tuple[str, str], against: bool = True) -> tuple[str, ...]:
        for name in ("entities.yaml", "order_enriched.yaml"):
            text = (ORDERS / name).read_text()
            for old, new in pairs:
                text = text.replace(old, new)
            (tmp_path / name).write_text(text)
        live = ("--against", str(ORDERS)) if against else ()
        files = ("--from", str(ORDERS / "topics.jsonl"), "--definitions", str(tmp_path))
        return ("plan", "--no-price", "--diff", "--offline", *files, *live)

    return make


def test_the_text_says_what_differs_with_an_example_and_the_messages(
    changed: Changed, capsys: pytest.CaptureFixture[str]
) -> None:
    words = changed(
        ("status: status,", ""), ("country: customer.country", "country: customer.id"), ("limit: 500", "limit: 1")
    )
    assert main([*words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 product to change\n")
    assert out[out.index("\norder_enriched: ") + 1 :] == (
        "order_enriched: 1 document of 1 root differs\n"
        "  field removed status: 1\n"
        '      {"id":100}: "shipped"\n'
        "  another type country: 1\n"
        '      {"id":100}: "GB" -> 7\n'
        "  list shorter lines: 1\n"
        '      {"id":100}: 2 -> 1 element\n'
        '  before: 1 of 221 bytes on average; the largest has 221: {"id":100}\n'
        '  after: 1 of 141 bytes on average; the largest has 141: {"id":100}\n'
        "  apply sends 1 message, for under $0.01\n"
    )


def test_an_entity_that_changes_alone_sends_no_message_and_names_the_command(
    changed: Changed, capsys: pytest.CaptureFixture[str]
) -> None:
    words = changed(("price: decimal", "price: json"), ("name: string", "name: json"))
    assert main([*words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "~ entity article columns.name: string -> json" in out
    assert "apply sends no message, because only an entity changes" in out
    assert "`statestore republish order_enriched`" in out


def test_a_definition_that_is_the_same_has_nothing_to_compare(
    changed: Changed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*changed()]) == 0
    assert capsys.readouterr().out.endswith("\n\nno product changes, so no document differs\n")


def test_the_markdown_has_a_table_and_no_text_of_documents_means_anything_in_it(
    changed: Changed, capsys: pytest.CaptureFixture[str]
) -> None:
    words = changed(("status: status,", "status: status || '|<b>|',"))
    assert main([*words, "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## statestore plan\n\n```text\n1 product to change\n")
    (row,) = [line for line in out.splitlines() if "another value" in line]
    assert row == '| 1 | another value status | \\{"id":100\\}: "shipped" -\\> "shipped\\|\\<b\\>\\|" |'


def test_the_json_has_all_facts_and_a_sample_has_its_seed(changed: Changed, capsys: pytest.CaptureFixture[str]) -> None:
    words = changed(
        ("product: order_enriched", "product: other"), ("topic: order_enriched", "topic: other"), against=False
    )
    assert main([*words, "--json", "--sample", "1", "--seed", "7"]) == 0
    diff = json.loads(capsys.readouterr().out)["diff"]
    (product,) = diff["products"]
    assert (product["product"], product["new"], product["roots"], product["messages"]) == ("other", True, 1, 1)
    assert {join["path"]: (join["asked"], join["nothing"]) for join in product["joins"]} == {
        "customer": (1, 0),
        "lines": (1, 0),
        "lines.article": (2, 0),
    }
    assert diff["seed"] is None  # the sample is all roots


@pytest.mark.parametrize("directory", sorted(path.parent.name for path in EXAMPLES.glob("*/topics.jsonl")))
def test_each_line_is_at_most_100_columns_wide(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES / directory
    words = [
        "plan",
        "--verbose",
        "--diff",
        "--offline",
        "--from",
        str(example / "topics.jsonl"),
        "--definitions",
        str(example),
    ]
    assert main(words) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--diff", "--offline"], "--diff --offline has no rows to compare: add --from FILE, or leave --offline out"),
        (
            ["--diff", "--from", "x"],
            "--from belongs to --diff --offline; without --offline the rows are those of the state",
        ),
        (["--against", "x"], "--against belongs to --offline; without it plan compares with the registry"),
        (["--sample", "5"], "--sample and --seed belong to --diff"),
        (["--offline", "--markdown", "--json"], "--markdown and --json are two forms of one output: give one of them"),
        (["--diff", "--offline", "--from", "none.jsonl"], "none.jsonl"),
        (["--offline", "--against", "none"], "none"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--definitions", str(ORDERS), *words]) == 1
    printed = capsys.readouterr()
    assert message in printed.out + printed.err
    assert "Traceback" not in printed.err


@pytest.mark.rest
def test_the_workflow_for_pull_requests_writes_its_summary(tmp_path: Path) -> None:
    """Runs the step of examples/pull_request in a repository with a changed product."""
    steps = (EXAMPLES / "pull_request" / "plan.yml").read_text().partition("        run: |\n")[2]
    script = dedent(steps.partition("      - run: gh")[0])
    repository = tmp_path / "repository"
    shutil.copytree(ORDERS, repository / "definitions", ignore=shutil.ignore_patterns("README.md", "tests"))
    git = ["git", "-c", "user.name=a test", "-c", "user.email=test@example.org", "-C", str(repository)]
    commits = ("init -q -b main", "add -A", "commit -qm base", "update-ref refs/remotes/origin/main HEAD")
    for words in commits:
        subprocess.run([*git, *words.split()], check=True)
    product = repository / "definitions" / "order_enriched.yaml"
    product.write_text(product.read_text().replace("limit: 500", "limit: 1"))
    summary = tmp_path / "summary.md"
    paths = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_BASE_REF": "main"}
    environment = os.environ | paths | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-e", "-c", script], cwd=repository, env=environment, check=True)
    assert '| 1 | list shorter lines | \\{"id":100\\}: 2 -\\> 1 element |' in summary.read_text()

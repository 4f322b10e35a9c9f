"""The verbs of authors over columns that say how their text compares."""

from pathlib import Path

import pytest

from processor.cli.main import main

CASE = Path(__file__).parents[2] / "data" / "reports" / "joins" / "46-source-collation"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("check", str(CASE)), "2 entities, 1 products, 0 tests, no mistake"),
        (("explain", "customer_document", "--definitions", str(CASE)), "code = customer.country (ci, trimmed)"),
        (("explain", "customer_document", "--definitions", str(CASE)), "<customer.country::ci+trimmed>"),
        (
            ("explain", "customer_document", "--definitions", str(CASE), "--sql"),
            """rtrim(lower(t1."code" COLLATE "default"), ' ') = rtrim(lower(t0."country" COLLATE "default"), ' ')""",
        ),
        (
            ("explain", "customer_document", "--definitions", str(CASE), "--json"),
            '"code = customer.country (ci, trimmed)"',
        ),
        (
            ("plan", "--offline", "--verbose", "--definitions", str(CASE)),
            "GSI_1 of country holds code::ci+trimmed: down from customer",
        ),
    ],
)
def test_a_verb_says_how_text_compares(words: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 0
    assert shown in capsys.readouterr().out


def test_the_catalogue_says_how_text_compares(tmp_path: Path) -> None:
    assert main(["catalogue", str(CASE), "--to", str(tmp_path)]) == 0
    assert "code = customer.country (ci, trimmed)" in (tmp_path / "products" / "customer_document.html").read_text()
    assert "string, compares ci, trimmed, key" in (tmp_path / "entities" / "country.html").read_text()


def test_a_changed_word_is_a_line_of_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (CASE / "entities.yaml").read_text().replace("{type: string, compare: [ci, trimmed]}", "string")
    (tmp_path / "entities.yaml").write_text(before)
    (tmp_path / "product.yaml").write_text((CASE / "customer_document.yaml").read_text())
    words = ["plan", "--offline", "--against", str(tmp_path), "--definitions", str(CASE), "--verbose", "--no-price"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert 'columns.code: string -> {"type": "string", "compare": ["ci", "trimmed"]}' in out
    assert "~ product customer_document, version 2, once its slots are full" in out

"""Tests of products: tests that pass, tests that fail with their messages, and wrong test files."""

from pathlib import Path
from textwrap import dedent

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import run_case
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.language.definitions.problems import DefinitionError
from processor.language.definitions.product_tests import read_cases

EXAMPLES = Path(__file__).parents[4] / "examples"
DEFINITIONS = load(
    {
        "entities.yaml": dedent("""
            reading: {key: [station, day], columns: {station: string, day: date, level: decimal, tags: json}}
            pump: {key: [id], columns: {id: int, station: string}, format: debezium}
            """),
        "levels.yaml": dedent("""
            product: levels
            root: reading
            embed: {pumps: {many: pump, on: {station: station}, fields: [id]}}
            """),
    }
)
KEY = '{"station": "a", "day": "2020-01-01"}'


def failures(text: str) -> list[str]:
    """The failures of the one test of a file, with their lines."""
    (case,) = read_cases({"tests/t.yaml": dedent(text)}, DEFINITIONS)
    return [f"{f.line}: {f.what}" for f in run_case(case, plan_alone(DEFINITIONS, slots=20), Settings())]


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_cases({"tests/t.yaml": dedent(text)}, DEFINITIONS)
    return [str(problem) for problem in caught.value.problems]


def test_the_examples_pass_their_tests(capsys: pytest.CaptureFixture[str]) -> None:
    for directory in sorted(path.parent for path in EXAMPLES.glob("*/entities.yaml")):
        assert main(["test", str(directory)]) == 0, capsys.readouterr().out


def test_tests_are_not_product_files() -> None:
    assert all(not name.startswith("tests/") for name in read_directory(EXAMPLES / "github"))


def test_documents_compare_whole_or_by_members_and_numbers_by_value() -> None:
    found = failures(f"""
        - test: all of it
          given:
            reading: [{{station: a, day: 2020-01-01, level: 1.50, tags: {{x: 0.5}}}}]
            pump: [{{id: 2, station: a}}, {{id: 1, station: a}}]
          expect:
            '{KEY}': {{tags: {{x: 0.50}}, station: a, day: 2020-01-01, level: 1.5, pumps: [{{id: 1}}, {{id: 2}}]}}
            '{{"station": "b", "day": "2020-01-01"}}': null
          contains:
            '{KEY}': {{level: 1.5}}
        """)
    assert found == []


def test_changes_come_after_the_given_rows_and_null_deletes() -> None:
    found = failures(f"""
        - test: gone
          given: {{reading: [{{station: a, day: 2020-01-01}}]}}
          changes: [{{topic: reading, key: {KEY}, value: null}}]
          expect: {{'{KEY}': null}}
        """)
    assert found == []


def test_a_failure_has_its_line_and_what_differs() -> None:
    assert failures(f"""
        - test: wrong
          given:
            reading:
              - {{station: a, day: 2020-01-01, level: high}}
              - {{station: b, day: 2020-01-01, level: 1}}
          expect:
            '{KEY}': {{station: a}}
            '{{"station": "b", "day": "2020-01-01"}}': null
          contains:
            '{{"station": "b", "day": "2020-01-01"}}': {{level: true}}
        """) == [
        "5: the record is a dead letter: column 'level': expected decimal, found text 'high'",
        '8: there is no document {"station":"a","day":"2020-01-01"}; the published documents are: '
        '{"station":"b","day":"2020-01-01"}',
        '9: there is a document {"station":"b","day":"2020-01-01"}, but the test expects none',
        '11: the document {"station":"b","day":"2020-01-01"} differs',
    ]


def test_a_document_beyond_its_avro_types_fails_the_tests_of_its_product_only() -> None:
    definitions = load(
        {
            "entities.yaml": "pump: {key: [id], columns: {id: int}}",
            "framed.yaml": "{product: framed, root: pump, format: avro}",
            "plain.yaml": "{product: plain, root: pump}",
        }
    )

    def failures_of(product: str) -> list[str]:
        row = f"{{id: {2**63}}}"
        test = f"- {{test: big, product: {product}, given: {{pump: [{row}]}}, expect: {{'{2**63}': {row}}}}}"
        (case,) = read_cases({"tests/t.yaml": test}, definitions)
        return [f"{f.line}: {f.what}" for f in run_case(case, plan_alone(definitions, slots=20), Settings())]

    assert failures_of("framed") == [
        '1: the document {"id":9223372036854775808} is a dead letter: the document of product framed does not fit its Avro '
        "schema: id: expected int, found a number (Avro has 64 bits: declare decimal(38,0))",
        '1: there is no document {"id":9223372036854775808}; the published documents are: none',
    ]
    assert failures_of("plain") == []


def test_a_wrong_test_file_gets_file_line_cause_and_cure() -> None:
    assert problems(f"""
        - test: one
          product: level
        - {{test: two, given: {{redding: [], reading: [{{station: a}}]}}}}
        - test: three
          expcet: {{}}
          changes: [{{topic: pumps, value: null}}, {{topic: pump}}]
          contains: {{a: 1, '{KEY}': null}}
        """) == [
        "tests/t.yaml:3: there is no product `level`; did you mean 'levels'?",
        "tests/t.yaml:4: a row of `reading` has no `day`, a column of its key; add it",
        "tests/t.yaml:4: the test `two` expects nothing; write documents by their key, null for none, below `expect` or "
        "`contains`",
        "tests/t.yaml:4: there is no entity `redding`; did you mean 'reading'?",
        "tests/t.yaml:6: a test has no key `expcet`; did you mean 'expect'?",
        "tests/t.yaml:7: no entity has the topic `pumps`; did you mean 'pump'?",
        'tests/t.yaml:7: this is not a line of a recorded topic: no value; add "value", null for a tombstone, or '
        '"value_base64"',
        "tests/t.yaml:8: `contains` of `" + KEY + "` is empty, not a mapping; use `expect`",
        "tests/t.yaml:8: this is not a key of a document; the key of reading has 2 parts; give it as JSON: "
        '{"station":"...","day":"..."}',
    ]


def test_the_command_shows_a_diff_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in read_directory(EXAMPLES / "github").items():
        (tmp_path / name).write_text(text)
    assert main(["test", str(tmp_path)]) == 1
    assert "there are no tests in" in capsys.readouterr().err
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "wrong.yaml").write_text(
        "- test: wrong\n  given: {user: [{email: a, username: ada}]}\n  contains: {a: {username: bob}}\n"
    )
    assert main(["test", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"FAILED {tmp_path}/tests/wrong.yaml:1 wrong" in out
    assert '    -  "username": "bob"\n    +  "username": "ada"\n' in out
    assert out.endswith("0 passed, 1 failed\n")

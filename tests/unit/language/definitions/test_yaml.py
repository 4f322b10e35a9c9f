"""`read_yaml` makes the same tree of a line of JSON, whether it reads the line as JSON or as YAML."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml.scanner import Scanner

from processor.language.definitions.problems import DefinitionError, Problems
from processor.language.definitions.yaml import Map, Scalar, Sequence, read_yaml
from processor.values import canonical_json

TEXT = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=12)
SCALAR = TEXT | st.integers() | st.booleans() | st.none()
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.dictionaries(TEXT, VALUE, max_size=4))
def test_a_line_of_json_and_the_same_read_as_yaml_are_equal(value: dict[str, Any]) -> None:
    problems = Problems()
    line = canonical_json.dumps(value)
    assert read_yaml("f", line, problems) == read_yaml("f", line + "\n", problems)
    problems.raise_if_any()


@pytest.mark.parametrize(
    "line", ['{"a": 1, "a": 2}', '{"a": 1.50}', '{"a": NaN}', "{a: b}", '{"a": 1', "{}}", "[1]", "{"]
)
def test_any_other_line_is_read_as_yaml(line: str) -> None:
    found, expected = Problems(), Problems()
    assert read_yaml("f", line, found) == read_yaml("f", line + "\n", expected)
    assert problems_text(found) == problems_text(expected)


def test_text_that_yaml_would_fold_is_kept() -> None:
    node = read_yaml("f", canonical_json.dumps({"a": "x\u2028y"}), Problems())
    assert isinstance(node, Map)
    assert node.get("a") == Scalar(file="f", line=1, value="x\u2028y", text="x\u2028y")


def problems_text(problems: Problems) -> str:
    try:
        problems.raise_if_any()
    except DefinitionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "text", ["[" * 400 + "]" * 400, "a: " + "[" * 400 + "]" * 400, '{"a": ' + "[" * 400 + "]" * 400 + "}"]
)
def test_brackets_beyond_the_depth_of_definitions_are_a_problem(text: str) -> None:
    problems = Problems()
    assert read_yaml("f", text, problems) is None
    assert problems_text(problems) == "f:1: the file nests more than 100 levels; write it with fewer levels"


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, "{" * 20_000, "a: " + "[" * 20_000, "{a: " * 20_000, "[a, " * 20_000, '{"a": ' + "[" * 20_000, "[\n" * 20_000],
)  # fmt: skip
def test_the_reader_stops_at_the_first_bracket_that_is_too_deep(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ruamel's scanner takes 17 s for 20,000 brackets, since each further one looks at all before it."""
    tokens = []
    fetch = Scanner.fetch_more_tokens

    def counted(one: Scanner) -> Any:
        tokens.append(1)
        return fetch(one)

    monkeypatch.setattr(Scanner, "fetch_more_tokens", counted)
    problems = Problems()
    assert read_yaml("f", text, problems) is None
    assert "the file nests more than 100 levels" in problems_text(problems)
    assert len(tokens) < 1_000


@pytest.mark.parametrize("text", ["- " * 20_000, "? " * 20_000, "".join(" " * n + "a:\n" for n in range(1_000))])
def test_blocks_beyond_the_depth_of_definitions_are_a_problem(text: str) -> None:
    problems = Problems()
    assert read_yaml("f", text, problems) is None
    assert "the file nests more than 100 levels" in problems_text(problems)


def test_a_long_text_and_a_long_list_are_read() -> None:
    node = read_yaml("f", f"a: {'x' * 500_000}\nb: [{'c, ' * 5_000}]\n", Problems())
    assert isinstance(node, Map)
    assert isinstance(long := node.get("b"), Sequence)
    assert len(long.items) == 5_000


@pytest.mark.parametrize("lines", [60, 1_000])
def test_aliases_that_double_are_a_problem(lines: int) -> None:
    doubled = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, lines))
    problems = Problems()
    assert read_yaml("f", f"a0: &a0 [x, x]\n{doubled}", problems) is None
    assert "its aliases mean more than 100,000 values" in problems_text(problems) or lines > 100


def test_aliases_share_values() -> None:
    problems = Problems()
    node = read_yaml("f", "a: &a [x, y]\n" + "".join(f"b{n}: *a\n" for n in range(1_000)), problems)
    problems.raise_if_any()
    assert isinstance(node, Map)
    assert node.get("b7") == node.get("a")


@pytest.mark.parametrize("written", ["9" * 5_000, "-" + "9" * 5_000, "0x" + "f" * 9_000, "0o9"])
def test_an_integer_that_python_refuses_stays_text(written: str) -> None:
    node = read_yaml("f", f"a: {written}\n", Problems())
    assert isinstance(node, Map)
    assert node.get("a") == Scalar(file="f", line=1, value=written, text=written)

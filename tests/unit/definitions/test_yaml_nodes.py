"""A line of JSON, read as JSON, is the tree that YAML makes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.definitions.errors import DefinitionError, Problems
from processor.definitions.yaml_nodes import Map, Scalar, read_yaml
from processor.model import canonical_json

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
def test_any_other_line_is_judged_as_yaml(line: str) -> None:
    found, expected = Problems(), Problems()
    assert read_yaml("f", line, found) == read_yaml("f", line + "\n", expected)
    assert told(found) == told(expected)


def test_text_that_yaml_would_fold_is_kept() -> None:
    node = read_yaml("f", canonical_json.dumps({"a": "x\u2028y"}), Problems())
    assert isinstance(node, Map)
    assert node.get("a") == Scalar(file="f", line=1, value="x\u2028y", text="x\u2028y")


def told(problems: Problems) -> str:
    try:
        problems.raise_if_any()
    except DefinitionError as error:
        return str(error)
    return ""

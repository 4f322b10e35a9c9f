"""The screens of documents and rows take a key as the person wrote it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from processor.tools.web.answers import LookUpProblem
from processor.tools.web.console.documents import show_document, show_row
from processor.tools.web.console.screen import ConsoleParts, Person, Visit
from tests.unit.tools.web.serve.scene import ServedState

KEYS = [
    "plain",
    "plain\n",
    " plain",
    "plain ",
    "\tplain",
    "a\nb",
    "a\r\nb",
    "\n",
    " ",
    "a+b",
    "a/b",
    "%0A",
    "..",
    "\u2003",
    '"',
    "[1]",
]


@pytest.fixture(scope="module")
def parts() -> ConsoleParts:
    state = ServedState()
    for name in KEYS:
        state.takes("user", {"name": name, "city": f"of {name!r}"})
    state.takes("order", {"user": " ada\n", "number": 7, "status": "open"})
    return cast(ConsoleParts, SimpleNamespace(open_reader=state.reader, settings=state.trial.settings))


def visit(**query: str) -> Visit:
    return Visit(person=Person(name="ada", may_edit=False), query=query)


@pytest.mark.parametrize("name", KEYS)
def test_each_key_has_its_own_document_and_row(parts: ConsoleParts, name: str) -> None:
    shown: Any = show_document(parts, visit(product="person", key=name))
    assert any(repr(name) in line for line in map(plain, shown["document"]["lines"])), shown
    row: Any = show_row(parts, visit(entity="user", key=name))
    assert any(repr(name) in line for line in map(plain, row["row"]["columns"]))
    assert show_row(parts, visit(entity="user", at=row["row"]["key"]))["row"] == row["row"]


@pytest.mark.parametrize("name", KEYS)
def test_the_key_in_the_form_finds_the_same_document_again(parts: ConsoleParts, name: str) -> None:
    """A browser leaves line breaks out of a field of one line."""
    shown: Any = show_document(parts, visit(product="person", key=name))
    assert {"\r", "\n"}.isdisjoint(shown["key"])
    again: Any = show_document(parts, visit(product="person", key=shown["key"]))
    assert again["document"] == shown["document"]
    row: Any = show_row(parts, visit(entity="user", key=name))
    assert show_row(parts, visit(entity="user", key=row["key"]))["row"] == row["row"]


def test_a_key_of_several_columns_keeps_its_blanks(parts: ConsoleParts) -> None:
    shown: Any = show_document(parts, visit(product="purchase", key='{"user":" ada\\n","number":7}'))
    assert shown["document"]
    assert not cast(Any, show_document(parts, visit(product="purchase", key='{"user":"ada","number":7}')))["document"]


@pytest.mark.parametrize("show", [show_document, show_row])
def test_a_key_that_is_too_long_is_refused_and_not_cut(parts: ConsoleParts, show: Any) -> None:
    with pytest.raises(LookUpProblem, match="the key has more than 2,000 characters"):
        show(parts, visit(product="person", entity="user", key="x" * 2_001))


def plain(line: str) -> str:
    return line.replace('\\\\"', '"').replace("\\\\", "\\").replace('\\"', '"')

"""The people of a console: their tokens, and the groups that a proxy states. A comma in the name of a group makes nobody an
operator where another text separates the groups.
"""

import pytest

from processor.errors import SettingError
from processor.tools.web.console.app import ProxyPeople, read_operators, read_tokens

ADA = "ada=0123456789abcdef="


def test_each_token_has_one_person() -> None:
    tokens = read_tokens(f"{ADA}\n\n bob = fedcba9876543210 \n", "env:T")
    shown = ("0123456789abcdef=", "fedcba9876543210", "0123456789abcdef", "", "\udcff")
    assert [tokens.name_of(token) for token in shown] == ["ada", "bob", "", "", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "--tokens: env:T is empty: write a line NAME=TOKEN"),
        (f"{ADA}\nbob=short", "--tokens: line 2 of env:T is not NAME=TOKEN, with a random token of 16 characters"),
        ("0123456789abcdef0123", "--tokens: line 1 of env:T is not NAME=TOKEN"),
        (f"{ADA}\nbob={ADA[4:]}", "--tokens: line 2 of env:T has the token of another line"),
    ],
)
def test_a_line_that_names_nobody_is_refused_and_shows_no_token(text: str, message: str) -> None:
    with pytest.raises(SettingError) as refused:
        read_tokens(text, "env:T")
    assert str(refused.value).startswith(message)
    assert "0123" not in str(refused.value)


OPS = "cn=ops,ou=people"


@pytest.mark.parametrize(
    ("separator", "operators", "stated", "role"),
    [
        (",", "group:ops", ["staff, ops"], "operator"),
        (",", "group:ops", ["staff", "ops"], "operator"),
        (";", f"ada; group:{OPS}", [f"cn=staff,ou=people; {OPS}"], "operator"),
        (";", f"group:{OPS}", ["cn=ops", "ou=people"], "reader"),
        (";", "group:ops", ["guests,ops"], "reader"),
        ("|", "group:ops", ["guests,ops|staff;ops"], "reader"),
    ],
)
def test_the_role_by_the_groups(separator: str, operators: str, stated: list[str], role: str) -> None:
    people = ProxyPeople(
        address="10.0.0.5",
        header="x-user",
        group_header="x-groups",
        operators=read_operators(operators, separator),
        separator=separator,
    )
    headers = [(b"x-user", b"grace"), *((b"x-groups", one.encode()) for one in stated)]
    assert people.person({"type": "http", "client": ("10.0.0.5", 1), "headers": headers}).role == role

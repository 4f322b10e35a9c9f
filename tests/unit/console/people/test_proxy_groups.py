"""The groups that a proxy states: a comma in the name of a group makes nobody an operator where another text separates them."""

import pytest

from processor.console.people.operator_names import read_operators
from processor.console.people.person_rules import ProxyPeople

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

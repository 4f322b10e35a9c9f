"""Tokens of people."""

import pytest

from processor.console.people.person_tokens import read_tokens
from processor.errors import SettingError

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

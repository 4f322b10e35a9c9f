"""Names and values of rows reach DynamoDB as parameters, never as a part of a statement."""

import re

import pytest

from statestore import requests
from statestore.errors import Terminal
from statestore.keys import Key
from statestore.store import Absent, Equals, Write
from statestore.table import table_name

HOSTILE = [
    'x"=? SET "GSI_1"=\'a\' WHERE "PK"=\'b\' --',
    "x':?,'PK':'y",
    '\'; DELETE FROM "t"',
    '"',
    "''",
    "x\x00",
    "\u202e",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_statement_of_partiql_holds_no_value_and_names_stay_in_their_quotes(text: str) -> None:
    key = Key(f"LEDGER#{text}", text)
    update = Write(key=key, set={"seq": text, text: text}, when=Equals("seq", text))
    insert = Write(key=key, set={"seq": text, text: text}, when=Absent())
    for made in requests.statements("states", [update]) + requests.statements("states", [insert]):
        statement = made["Statement"]
        bare = re.sub(
            r'"(?:[^"]|"")*"' if statement.startswith("UPDATE") else r"'(?:[^']|'')*'|\"states\"", "NAME", statement
        )
        assert re.fullmatch(
            r"UPDATE NAME SET NAME=\? SET NAME=\? WHERE NAME=\? AND NAME=\? AND NAME=\?|"
            r"INSERT INTO NAME VALUE \{NAME:\?,NAME:\?,NAME:\?,NAME:\?\}",
            bare,
        )
        assert made["Parameters"].count({"S": text}) >= 3


@pytest.mark.parametrize("text", HOSTILE)
def test_an_expression_of_an_update_holds_neither_names_nor_values(text: str) -> None:
    write = Write(key=Key("TABLE#t", "1"), set={text: text}, when=Equals("v", text))
    sent = requests.update_item("states", write)
    assert text not in sent["UpdateExpression"] + sent["ConditionExpression"]
    assert text in sent["ExpressionAttributeNames"].values()


@pytest.mark.parametrize("name", ['s" SET', "a/b", "a b", "", "x" * 300])
def test_a_table_name_holds_no_more_than_dynamodb_allows(name: str) -> None:
    with pytest.raises(Terminal):
        table_name(name)

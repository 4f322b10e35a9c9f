"""Names and values of rows reach DynamoDB as parameters, never as a part of a statement."""

import pytest

from statestore.dynamodb import requests
from statestore.keys import Key
from statestore.store import Equals, Terminal, Write
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
def test_an_expression_of_an_update_holds_neither_names_nor_values(text: str) -> None:
    write = Write(key=Key("TABLE#t", "1"), set={text: text}, when=Equals("v", text))
    sent = requests.update_item("states", write)
    assert text not in sent["UpdateExpression"] + sent["ConditionExpression"]
    assert text in sent["ExpressionAttributeNames"].values()


@pytest.mark.parametrize("name", ['s" SET', "a/b", "a b", "", "x" * 300])
def test_a_table_name_holds_no_more_than_dynamodb_allows(name: str) -> None:
    with pytest.raises(Terminal):
        table_name(name)

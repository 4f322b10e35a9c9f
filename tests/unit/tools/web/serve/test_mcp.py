"""What an assistant gets, by the client of the SDK."""

import json
from decimal import Decimal
from typing import Any

import anyio
import pytest
from mcp import Client

from processor.tools.web.serve.mcp import mcp_server
from tests.unit.tools.web.serve.scene import ServedState

NUMBERS = ["1.50", "5.00", "0.1", "12345678901234567890.12", "12345678901234567890.0", "-7", "1E+400"]


def call(tool: str, **arguments: str) -> Any:
    state = ServedState()
    state.takes("user", {"name": "ada", "city": "Oslo", "spent": Decimal("1.50")})
    state.takes("user", {"name": "eve", "city": None, "more": {"numbers": list(map(Decimal, NUMBERS))}})

    async def ask() -> Any:
        async with Client(mcp_server(state.reader())) as client:
            tools = (await client.list_tools()).tools
            assert {one.name for one in tools} == {"list_products", "schema", "get", "explain", "lineage"}
            assert all(one.annotations and one.annotations.read_only_hint for one in tools)
            return await client.call_tool(tool, arguments)

    return anyio.run(ask)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("list_products", {}, "purchase"),
        ("schema", {"product": "person"}, "2020-12"),
        ("get", {"product": "person", "key": "ada"}, "Oslo"),
        ("explain", {"product": "person"}, "GSI_1"),
        ("lineage", {"product": "person", "key": "ada"}, "TABLE#user"),
    ],
)
def test_each_tool_answers(tool: str, arguments: dict[str, str], text: str) -> None:
    answer = call(tool, **arguments)
    assert not answer.is_error
    assert text in json.dumps(answer.structured_content)


def test_a_decimal_is_a_number() -> None:
    answer = call("get", product="spending", key="ada")
    assert answer.structured_content["document"] == {"name": "ada", "spent": 1.5, "more": None}
    assert '"spent":1.5,' in answer.content[0].text


def test_numbers_that_no_double_has_are_the_nearest_ones() -> None:
    answer = call("get", product="spending", key="eve")
    found = answer.structured_content["document"]["more"]["numbers"]
    assert found == [1.5, 5, 0.1, 12345678901234567890.12, 12345678901234567890, -7, "1E+400"]
    assert f"[{','.join(NUMBERS)}]" in answer.content[0].text


@pytest.mark.parametrize("tool", ["explain", "schema", "lineage", "list_products"])
def test_the_text_of_each_tool_says_the_same_as_its_values(tool: str) -> None:
    key = {"key": "ada"} if tool == "lineage" else {}
    product = {} if tool == "list_products" else {"product": "spending"}
    answer = call(tool, **product, **key)
    assert json.loads(answer.content[0].text) == answer.structured_content


def test_an_error_names_the_cure() -> None:
    answer = call("get", product="persn", key="ada")
    assert answer.is_error
    assert "there is no product `persn`; there are person, purchase, spending" in answer.content[0].text

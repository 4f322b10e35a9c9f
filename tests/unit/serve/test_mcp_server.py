"""What an assistant gets, by the client of the SDK."""

import json
from typing import Any

import anyio
import pytest
from mcp import Client

from processor.serve.mcp_server import mcp_server
from tests.unit.serve.scene import ServedState


def call(tool: str, **arguments: str) -> Any:
    state = ServedState()
    state.takes("user", {"name": "ada", "city": "Oslo"})

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


def test_an_error_names_the_cure() -> None:
    answer = call("get", product="persn", key="ada")
    assert answer.is_error
    assert "there is no product `persn`; there are person, purchase" in answer.content[0].text

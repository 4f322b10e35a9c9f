"""The MCP server of `statestore mcp`: the look-ups as tools of an assistant, over standard input and output. Reads only.

An answer has its values twice: as text with each digit, and structured, with the numbers that JSON readers make of it.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isinf
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from processor.environment.settings.settings import statestore_version
from processor.tools.web.answers import problem_of
from processor.tools.web.serve.reader import StateReader, document_object
from processor.values import canonical_json

ToolResult = Annotated[CallToolResult, dict[str, Any]]
"""A result with the schema of an object."""


def mcp_server(reader: StateReader) -> MCPServer[Any]:
    """The server over a reader. An error of a tool has the text that HTTP's problem has."""
    server = MCPServer("statestore", version=statestore_version(), log_level="ERROR")

    def tool(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return server.tool(name=name, description=text, annotations=ToolAnnotations(read_only_hint=True))

    @tool(
        "list_products", "The products of documents, each with its topic, its root entity and the columns of its key."
    )
    def list_products() -> ToolResult:
        return _answer(lambda: {"products": reader.products()})

    @tool("schema", "The JSON Schema of the documents of a product.")
    def schema(product: str) -> ToolResult:
        return _answer(lambda: reader.schema(product))

    @tool(
        "get", 'A document as the state shows it now. `key`: JSON such as {"id": 7}, or the value of a single column.'
    )
    def get(product: str, key: str) -> ToolResult:
        return _answer(lambda: document_object(reader.document(product, key)))

    @tool("explain", "How a product finds its rows: its joins with their access paths.")
    def explain(product: str) -> ToolResult:
        return _answer(lambda: reader.access_paths(product))

    @tool("lineage", "Why a document is as it is: what each join found, and the record that wrote each row.")
    def lineage(product: str, key: str) -> ToolResult:
        return _answer(lambda: reader.lineage(product, key))

    return server


def _answer(look_up: Callable[[], Mapping[str, Any]]) -> CallToolResult:
    try:
        found = look_up()
    except Exception as error:
        raise ToolError(str(problem_of(error))) from None
    text = TextContent(type="text", text=canonical_json.dumps(found))
    return CallToolResult(content=[text], structured_content=_plain(found))


def _plain(value: Any) -> Any:
    """The value without decimals, of which the SDK makes texts. A number beyond the digits of a double is the nearest one, or
    the same integer; one that no double can be stays a text."""
    match value:
        case Mapping():
            return {name: _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case Decimal():
            if isinf(number := float(value)):
                return str(value)
            return int(value) if value == value.to_integral_value() and Decimal(number) != value else number
    return value

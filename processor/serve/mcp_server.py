"""The MCP server of `statestore mcp`: the look-ups as tools of an assistant, over standard input and output. Reads only."""

from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from processor.serve.problem import problem_of
from processor.serve.state_reader import StateReader, document_object
from processor.settings.installed_release import statestore_version


def mcp_server(reader: StateReader) -> MCPServer[Any]:
    """The server over a reader. An error of a tool has the text that HTTP's problem has."""
    server = MCPServer("statestore", version=statestore_version(), log_level="ERROR")

    def tool(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return server.tool(name=name, description=text, annotations=ToolAnnotations(read_only_hint=True))

    @tool(
        "list_products", "The products of documents, each with its topic, its root entity and the columns of its key."
    )
    def list_products() -> dict[str, Any]:
        return {"products": _answer(reader.products)}

    @tool("schema", "The JSON Schema of the documents of a product.")
    def schema(product: str) -> dict[str, Any]:
        return dict(_answer(lambda: reader.schema(product)))

    @tool("get", 'A document as the state has it now. `key`: JSON such as {"id": 7}, or the value of a single column.')
    def get(product: str, key: str) -> dict[str, Any]:
        return document_object(_answer(lambda: reader.document(product, key)))

    @tool("explain", "How a product finds its rows: its joins with their access paths.")
    def explain(product: str) -> dict[str, Any]:
        return dict(_answer(lambda: reader.access_paths(product)))

    @tool("lineage", "Why a document is as it is: what each join found, and the record that wrote each row.")
    def lineage(product: str, key: str) -> dict[str, Any]:
        return dict(_answer(lambda: reader.lineage(product, key)))

    return server


def _answer(look_up: Callable[[], Any]) -> Any:
    try:
        return look_up()
    except Exception as error:
        raise ToolError(str(problem_of(error))) from None

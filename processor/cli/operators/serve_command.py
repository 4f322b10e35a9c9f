"""`statestore serve` and `statestore mcp`: documents and rows by key, over HTTP and for assistants. Both only read."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from processor.cli.arguments import positive
from processor.cli.options import REGISTRY, TABLE, add_settings, print_progress, reachable_settings
from processor.errors import SettingError
from processor.settings.open_registry import open_registry
from processor.settings.resolve_secrets import resolve_reference
from processor.settings.secret_references import EXAMPLES, is_reference
from processor.settings.settings import Settings

if TYPE_CHECKING:
    from processor.serve.state_reader import StateReader

PORT = 8280


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = verbs.add_parser("serve", help="answer look-ups of documents and rows over HTTP")
    serve.add_argument("--host", default="127.0.0.1", help="address (127.0.0.1); another needs a token or mTLS")
    serve.add_argument("--port", type=positive, default=PORT, help=f"port ({PORT})")
    serve.add_argument("--token", metavar="REF", default="", help="token of each request: env:, file: or secret:")
    serve.add_argument("--certificate", metavar="FILE", default="", help="certificate of the server (PEM)")
    serve.add_argument("--key", metavar="FILE", default="", help="key of the certificate (PEM)")
    serve.add_argument(
        "--client-ca", metavar="FILE", default="", help="authority of the clients' certificates, for mTLS"
    )
    serve.add_argument("--rate", type=positive, default=200, help="most requests a second (200)")
    serve.add_argument("--at-once", type=positive, default=16, help="most requests in work (16)")
    serve.set_defaults(run=run_serve)
    mcp = verbs.add_parser("mcp", help="answer look-ups of an assistant (MCP, over standard input and output)")
    mcp.set_defaults(run=run_mcp)
    for parser in (serve, mcp):
        parser.add_argument("--most-rows", type=positive, default=10_000, help="rows that a look-up may read (10000)")
        add_settings(parser, *REGISTRY, *TABLE)


def run_serve(options: argparse.Namespace) -> int:
    _require("uvicorn", "serve")
    from processor.serve.document_app import document_app
    from processor.serve.guard import GuardRules
    from processor.serve.listener import Listener

    token = _token(options.token)
    listener = Listener(
        host=options.host,
        port=options.port,
        token=bool(token),
        certificate=options.certificate,
        key=options.key,
        client_ca=options.client_ca,
    )
    rules = GuardRules(token=token, local=listener.is_local, rate=options.rate, at_once=options.at_once)
    with reachable_settings(options) as settings, _reader(options, settings) as reader:
        scheme = "https" if listener.certificate else "http"
        print_progress(f"look-ups at {scheme}://{listener.host}:{listener.port}/openapi.json")
        listener.run(document_app(reader, rules))
    return 0


def run_mcp(options: argparse.Namespace) -> int:
    _require("mcp", "mcp")
    from processor.serve.mcp_server import mcp_server

    with reachable_settings(options) as settings, _reader(options, settings) as reader:
        mcp_server(reader).run("stdio")
    return 0


@contextmanager
def _reader(options: argparse.Namespace, settings: Settings) -> Iterator["StateReader"]:
    from processor.job.binding import readable_store
    from processor.serve.state_reader import StateReader

    with ExitStack() as stack:
        registry = stack.enter_context(open_registry(settings))
        yield StateReader(
            store=stack.enter_context(readable_store(settings, registry)),
            snapshot=registry.snapshot,
            boundaries=lambda entities: registry.epochs([], list(entities)),
            most_rows=options.most_rows,
        )


def _token(reference: str) -> str:
    """The token. Raises SettingError for one in the command itself, where other users may read it."""
    if reference and not is_reference(reference):
        raise SettingError(f"--token holds the token itself: {EXAMPLES}")
    token = resolve_reference("--token", reference)
    if reference and len(token) < 16:
        raise SettingError(f"--token: {reference} has fewer than 16 characters: use a longer random text")
    return token


def _require(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise SettingError(f"this verb needs more packages: pip install 'statestore[{extra}]'")

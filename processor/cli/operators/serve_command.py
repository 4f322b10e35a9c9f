"""`statestore serve` and `statestore mcp`: documents and rows by key, over HTTP and for assistants. Both only read."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from processor.cli.arguments import positive
from processor.cli.http_options import add_listener, add_token, connection_limits, require_packages, token_of
from processor.cli.options import REGISTRY, TABLE, add_settings, print_progress, reachable_settings
from processor.environment.listeners import LOCAL_NAMES, plain_name
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import SettingError

if TYPE_CHECKING:
    from processor.tools.web.serve.reader import StateReader

PORT = 8280
LOOK_UPS = 4
MOST_ROWS = 10_000


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = verbs.add_parser("serve", help="answer look-ups of documents and rows over HTTP")
    add_listener(serve, PORT, "a token or mTLS")
    add_token(serve)
    serve.add_argument(
        "--client-ca", metavar="FILE", default="", help="authority of the clients' certificates, for mTLS"
    )
    serve.add_argument(
        "--look-ups", type=positive, default=LOOK_UPS, help=f"look-ups that read at the same time ({LOOK_UPS})"
    )
    serve.set_defaults(run=run_serve)
    mcp = verbs.add_parser("mcp", help="answer look-ups of an assistant (MCP, over standard input and output)")
    mcp.set_defaults(run=run_mcp, look_ups=1)
    for parser in (serve, mcp):
        parser.add_argument(
            "--most-rows",
            metavar="[PRODUCT=]N",
            type=_row_limit,
            action="append",
            default=[],
            help=f"rows that a look-up may read ({MOST_ROWS}); with PRODUCT=, one of this product; may repeat",
        )
        add_settings(parser, *REGISTRY, *TABLE)


def run_serve(options: argparse.Namespace) -> int:
    require_packages("serve", "uvicorn")
    from processor.tools.web.guard import GuardRules
    from processor.tools.web.listener import Listener
    from processor.tools.web.serve.app import document_app

    token = token_of(options)
    listener = Listener(
        host=options.host,
        port=options.port,
        token=bool(token),
        certificate=options.certificate,
        key=options.key,
        client_ca=options.client_ca,
        limits=connection_limits(options),
    )
    names = LOCAL_NAMES | {plain_name(listener.host)} if listener.is_local else ()
    rules = GuardRules(token=token, names=names, rate=options.rate, at_once=options.at_once)
    with reachable_settings(options) as settings, _reader(options, settings) as reader:
        app = document_app(reader, rules)
        listener.run(app, lambda address: print_progress(f"look-ups at {address}/openapi.json"))
    return 0


def run_mcp(options: argparse.Namespace) -> int:
    require_packages("mcp", "mcp")
    from processor.tools.web.serve.mcp import mcp_server

    with reachable_settings(options) as settings, _reader(options, settings) as reader:
        mcp_server(reader).run("stdio")
    return 0


@contextmanager
def _reader(options: argparse.Namespace, settings: Settings) -> Iterator["StateReader"]:
    from processor.job.run.binding import look_up_stores
    from processor.tools.web.serve.reader import StateReader, StorePool
    from processor.tools.web.serve.views import PlanView

    limits = {"": MOST_ROWS} | dict(options.most_rows)
    with open_registry(settings) as registry, look_up_stores(settings, registry, options.look_ups) as stores:
        view = PlanView(snapshot=registry.snapshot, jobs=registry.jobs)
        if unknown := sorted(limits.keys() - {"", *view.now().plan.products}):
            raise SettingError(f"--most-rows: there is no product `{unknown[0]}`")
        yield StateReader(
            stores=StorePool(stores),
            view=view,
            boundaries=lambda entities: registry.epochs([], list(entities)),
            most_rows=limits.pop(""),
            most_rows_of=limits,
        )


def _row_limit(text: str) -> tuple[str, int]:
    """A product and its limit; an empty name for all others."""
    product, _, number = text.rpartition("=")
    return product, positive(number)

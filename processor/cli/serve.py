"""`statestore serve`, `mcp` and `console`: documents and rows by key, over HTTP and for assistants, and the screens of operators
in a browser. `serve` and `mcp` only read. `catalogue` writes definitions as a static site, with a page for each product and each
entity.

For the user of this machine, the console works with the role of its connection to the registry. For a person whom a token or a
proxy names, the console takes the role of this person in the database.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.choices import PRICES, chosen_prices, empty_registry
from processor.cli.options import (
    KAFKA,
    REGISTRY,
    TABLE,
    load_settings,
    print_progress,
    reachable_settings,
    require_packages,
    user_name,
)
from processor.cli.verb import AUTHORS, OPERATORS, WITH_TESTS, Flag, flag, positive, verb
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.environment.listeners import (
    LOCAL_NAMES,
    THIS_MACHINE,
    ConnectionLimits,
    is_loopback,
    is_named,
    plain_name,
)
from processor.environment.programs.servers import CONSOLE_PACKAGES, CONSOLE_PORT
from processor.environment.settings.kafka import EXAMPLES, is_reference
from processor.environment.settings.resolve import open_registry, resolve_reference
from processor.environment.settings.settings import Settings
from processor.errors import SettingError
from processor.language.definitions.load import files_below, load_directory, read_tests
from processor.language.definitions.product_tests import read_cases
from processor.text import visible_line
from processor.tools.inspect.preview import planned_state, preview
from processor.tools.web.answers import open_templates
from processor.tools.web.catalogue.product import product_versions
from processor.tools.web.catalogue.site import Catalogue, example_of, site_files, write_site
from registry.model import HistoryEntry, Snapshot

if TYPE_CHECKING:
    from processor.tools.web.console.app import PersonRules
    from processor.tools.web.serve.reader import StateReader
    from processor.tools.web.server import GuardRules, Listener

PORT = 8280
LOOK_UPS = 4
MOST_ROWS = 10_000


def port_number(text: str) -> int:
    """The number of a port."""
    if (number := positive(text)) > 65535:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 65535")
    return number


def row_limit(text: str) -> tuple[str, int]:
    """A product and its limit; an empty name for all others."""
    product, _, number = text.rpartition("=")
    return product, positive(number)


def listener_flags(port: int, otherwise: str) -> tuple[Flag, ...]:
    """The address, the certificate and the limits. `otherwise`: what another address than loopback needs."""
    return (
        flag("--host", f"address (127.0.0.1); another needs {otherwise}", default="127.0.0.1"),
        flag("--port", f"port ({port})", type=port_number, default=port),
        flag("--certificate", "certificate of the server (PEM)", "FILE", default=""),
        flag("--key", "key of the certificate (PEM)", "FILE", default=""),
        flag("--rate", "most requests a second (200)", type=positive, default=200),
        flag("--at-once", "most requests in work (16)", type=positive, default=16),
    )


ROW_LIMITS = flag(
    "--most-rows",
    f"rows that a look-up may read ({MOST_ROWS}); with PRODUCT=, one of this product; may repeat",
    "[PRODUCT=]N",
    type=row_limit,
    action="append",
    default=[],
)


@verb(
    "serve",
    OPERATORS,
    *listener_flags(PORT, "a token or mTLS"),
    flag("--token", "token of each request: env:, file: or secret:", "REF", default=""),
    flag("--client-ca", "authority of the clients' certificates, for mTLS", "FILE", default=""),
    flag("--look-ups", f"look-ups that read at the same time ({LOOK_UPS})", type=positive, default=LOOK_UPS),
    ROW_LIMITS,
    settings=(*REGISTRY, *TABLE),
)
def serve(options: argparse.Namespace) -> int:
    """Answer look-ups of documents and rows over HTTP."""
    require_packages("serve", "uvicorn")
    from processor.tools.web.serve.app import document_app
    from processor.tools.web.server import GuardRules

    token = token_of(options)
    listener = _listener(options, known=bool(token), client_ca=options.client_ca)
    names = LOCAL_NAMES | {plain_name(listener.host)} if listener.is_local else ()
    rules = GuardRules(token=token, names=names, rate=options.rate, at_once=options.at_once)
    with reachable_settings(options) as settings, _reader(options, settings, options.look_ups) as reader:
        app = document_app(reader, rules)
        listener.run(app, lambda address: print_progress(f"look-ups at {address}/openapi.json"))
    return 0


@verb("mcp", OPERATORS, ROW_LIMITS, settings=(*REGISTRY, *TABLE))
def mcp(options: argparse.Namespace) -> int:
    """Answer look-ups of an assistant (MCP, over standard input and output)."""
    require_packages("mcp", "mcp")
    from processor.tools.web.serve.mcp import mcp_server

    with reachable_settings(options) as settings, _reader(options, settings, 1) as reader:
        mcp_server(reader).run("stdio")
    return 0


@contextmanager
def _reader(options: argparse.Namespace, settings: Settings, look_ups: int) -> Iterator["StateReader"]:
    from processor.job.run.binding import look_up_stores
    from processor.tools.web.serve.reader import PlanView, StateReader, StorePool

    limits = {"": MOST_ROWS} | dict(options.most_rows)
    with open_registry(settings) as registry, look_up_stores(settings, registry, look_ups) as stores:
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


@verb(
    "console",
    OPERATORS,
    *listener_flags(CONSOLE_PORT, "tokens or a proxy"),
    flag("--tokens", "lines NAME=TOKEN of people: env:, file: or secret:", "REF", default=""),
    flag("--proxy", "address of the proxy that signs people in", "ADDRESS", default=""),
    flag("--identity-header", "header in which the proxy names the person", "NAME", default=""),
    flag("--public-host", "names of the proxy in people's browsers", "LIST", default=""),
    flag("--group-header", "header in which the proxy lists the groups", "NAME", default=""),
    flag("--operators", "operators: NAME and group:NAME; all others read", "LIST", default=""),
    flag(
        "--group-separator",
        "separates groups in --group-header, and names in --operators (default: a comma, which no group may have then)",
        "TEXT",
        rare=True,
        default=",",
    ),
    settings=(*REGISTRY, *TABLE, *KAFKA),
)
def console(options: argparse.Namespace) -> int:
    """Serve the screens of operators to a browser."""
    require_packages("console", *CONSOLE_PACKAGES)
    from processor.tools.web.console.app import READER, SCREENS, console_app, console_parts

    people, known = _people(options), bool(options.tokens or options.proxy)
    listener = _listener(options, known=known, proxy=options.proxy)
    rules = replace(name_rules(options), rate=options.rate, at_once=options.at_once)
    with (
        reachable_settings(options) as settings,
        open_registry(settings) as registry,
        console_parts(registry, settings, registry.acting_as(READER) if known else None) as parts,
    ):
        parts.preload()
        app = console_app(parts, SCREENS, people, rules)
        listener.run(app, lambda address: print_progress(f"the console is at {address}/"))
    return 0


def _people(options: argparse.Namespace) -> "PersonRules":
    """How the console knows people. Raises SettingError where flags contradict, or others reach it unnamed."""
    from processor.tools.web.console.app import OwnUser, ProxyPeople, TokenPeople, read_operators, read_tokens

    if not options.group_separator.strip():
        raise SettingError("--group-separator is empty: give the text that the proxy writes between two groups")
    operators = read_operators(options.operators, options.group_separator)
    _check_flags(options, groups=operators.name_groups())
    if options.proxy:
        return ProxyPeople(
            address=options.proxy,
            header=options.identity_header,
            group_header=options.group_header,
            separator=options.group_separator,
            operators=operators,
        )
    if options.tokens:
        return TokenPeople(
            tokens=read_tokens(owned_text("--tokens", options.tokens), options.tokens), operators=operators
        )
    if not is_loopback(options.host):
        raise SettingError(
            f"--host {options.host} is reachable from other machines: give --tokens REF, or --proxy and --identity-header of a "
            "proxy that signs people in, or leave --host out"
        )
    return OwnUser(user_name())


def name_rules(options: argparse.Namespace) -> "GuardRules":
    """The names that the Host of a request may have. A page of another site could lead its own name to this machine, and state a
    person as the proxy does. People with tokens need no such rule: no other site knows a token."""
    from processor.tools.web.server import GuardRules

    if options.tokens and not is_loopback(options.host):
        return GuardRules(names=())
    public = [name for name in map(str.strip, options.public_host.split(",")) if name]
    for name in public:
        if not is_named(name, {plain_name(name)}):
            raise SettingError(f"--public-host: {name} is no name of a host: leave the scheme and the port out")
    own = [] if options.host in ("0.0.0.0", "::") else [options.host]  # a page of any site may name these two
    names = LOCAL_NAMES.union(map(plain_name, [*own, *public]))
    if not options.proxy:
        return GuardRules(names=names)
    return GuardRules(
        names=names,
        other_name="the Host of the request is no name of this console: give --public-host the name in people's browsers, or let "
        "the proxy send the console's address as the Host",
    )


def _check_flags(options: argparse.Namespace, *, groups: bool) -> None:
    """Raises SettingError for flags that contradict. `groups`: whether --operators names one."""
    if bool(options.identity_header) != bool(options.proxy):
        raise SettingError("--identity-header and --proxy go together: nobody else than the proxy may state a name")
    if options.public_host and not options.proxy:
        raise SettingError("--public-host goes with --proxy: it is the proxy's name in people's browsers")
    if options.proxy and options.tokens:
        raise SettingError("--tokens and --proxy both say who a person is: leave one out")
    if options.operators and not (options.proxy or options.tokens):
        raise SettingError(
            "--operators names people, and only --tokens or --proxy say who a person is: give one of them"
        )
    if groups != bool(options.group_header) or (groups and not options.proxy):
        raise SettingError(
            "--group-header, --proxy and a `group:NAME` in --operators go together: the proxy states the groups of a person"
        )


def _listener(options: argparse.Namespace, *, known: bool, proxy: str = "", client_ca: str = "") -> "Listener":
    """The listener of `listener_flags`. `known`: whether each request says who sends it; `proxy`: address of many clients. Each
    request in work allows some connections, of one address and of all."""
    from processor.tools.web.server import Listener

    least = ConnectionLimits()
    return Listener(
        host=options.host,
        port=options.port,
        token=known,
        certificate=options.certificate,
        key=options.key,
        client_ca=client_ca,
        limits=ConnectionLimits(
            most=max(least.most, 4 * options.at_once),
            most_of_one=max(least.most_of_one, 2 * options.at_once),
            shared=THIS_MACHINE | ({proxy} if proxy else set()),
        ),
    )


def token_of(options: argparse.Namespace) -> str:
    """The token. Raises SettingError for one in the command itself, where other users may read it."""
    reference = options.token
    if reference and not is_reference(reference):
        raise SettingError(f"--token holds the token itself: {EXAMPLES}")
    token = resolve_reference("--token", reference)
    if reference and len(token) < 16:
        raise SettingError(f"--token: {reference} has fewer than 16 characters: use a longer random text")
    return token


def owned_text(flag: str, reference: str) -> str:
    """The text of a reference that holds secrets of people. Raises SettingError for a secret in the command itself, and for a
    file that others may read."""
    if not is_reference(reference):
        raise SettingError(f"{flag} holds the secret itself: {EXAMPLES}")
    text = resolve_reference(flag, reference)
    kind, _, path = reference.partition(":")
    if kind == "file" and (found := os.stat(path)).st_mode & (0o037 if found.st_uid == 0 else 0o077):
        raise SettingError(f"{flag}: others may read {path}: give it to its owner alone (chmod 600 {path})")
    return text


@verb(
    "catalogue",
    AUTHORS,
    WITH_TESTS,
    flag("--to", "directory of the site", "SITE", type=Path, required=True),
    flag("--title", "title of the site (default: the name of DIR)", "TEXT"),
    *PRICES,
    settings=REGISTRY,
)
def catalogue(options: argparse.Namespace) -> int:
    """Write a static site of the definitions: schemas, examples, lineage, slots, prices."""
    render = open_templates()
    tune_garbage_collector()
    directory: Path = options.definitions
    made = _catalogue(options, directory)
    write_site(site_files(made, render), options.to)
    definitions, examples = made.definitions, made.examples
    products = f"{len(definitions.products)} products ({len(examples)} with an example)"
    print(visible_line(f"{options.to / 'index.html'}: {products}, {len(definitions.entities)} entities"))
    return 0


def _catalogue(options: argparse.Namespace, directory: Path) -> Catalogue:
    definitions = load_directory(directory)
    with files_below(directory):
        cases = read_cases(read_tests(directory), definitions)
    settings, stored, has_run, history = _registry_of(options)
    found = preview(definitions, stored, has_run, None if options.no_price else settings)
    alone = plan_alone(definitions, settings.slots)  # as `test` runs them: nothing of it is paused
    examples = {name: example_of(name, cases, alone, settings) for name in definitions.products}
    return Catalogue(
        title=options.title or directory.resolve().name,
        definitions=definitions,
        plan=planned_state(definitions, stored, has_run).plan,
        found=found,
        prices=chosen_prices(options),
        examples={name: example for name, example in examples.items() if example},
        versions=None if history is None else product_versions(stored, found.entries, history, definitions.products),
    )


def _registry_of(
    options: argparse.Namespace,
) -> tuple[Settings, Snapshot, frozenset[str], tuple[HistoryEntry, ...] | None]:
    """The settings, and the registry that they name with its history. An empty one, and no history, where they name none."""
    settings = load_settings(options)
    named = options.registry or settings.registry != Settings().registry or options.embedded
    if not named:
        return settings, empty_registry(settings), frozenset(), None
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return settings, *registry.snapshot_for_apply(), registry.history()

"""`statestore console`: the screens of operators in a browser. For the user of this machine, the console works with the role of
its connection to the registry. For a person whom a token or a proxy names, it takes the role of this person in the database."""

import argparse
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from processor.cli.http_options import add_listener, connection_limits, owned_text, require_packages
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, print_progress, reachable_settings
from processor.cli.printing.edit_report import user_name
from processor.environment.listeners import LOCAL_NAMES, is_loopback, is_named, plain_name
from processor.environment.programs.servers import CONSOLE_PACKAGES, CONSOLE_PORT
from processor.environment.settings.resolve import open_registry
from processor.errors import SettingError

if TYPE_CHECKING:
    from processor.tools.web.console.people import PersonRules
    from processor.tools.web.guard import GuardRules


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("console", help="serve the screens of operators to a browser")
    add_listener(parser, CONSOLE_PORT, "tokens or a proxy")
    for name, value, text in (
        ("tokens", "REF", "lines NAME=TOKEN of people: env:, file: or secret:"),
        ("proxy", "ADDRESS", "address of the proxy that signs people in"),
        ("identity-header", "NAME", "header in which the proxy names the person"),
        ("public-host", "LIST", "names of the proxy in people's browsers"),
        ("group-header", "NAME", "header in which the proxy lists the groups"),
        ("operators", "LIST", "operators: NAME and group:NAME; all others read"),
    ):
        parser.add_argument(f"--{name}", metavar=value, default="", help=text)
    separator = parser.add_argument(
        "--group-separator", metavar="TEXT", default=",", help=argparse.SUPPRESS, dest="group_separator"
    )
    text = (
        "separates groups in --group-header, and names in --operators (default: a comma, which no group may have then)"
    )
    add_settings(parser, *REGISTRY, *TABLE, *KAFKA, rare={separator: text})
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    require_packages("console", *CONSOLE_PACKAGES)
    from processor.tools.web.console.app import SCREENS, console_app
    from processor.tools.web.console.caches import DeadLetterCache, LandingCache, PriceCache
    from processor.tools.web.console.people import READER
    from processor.tools.web.console.screen import ConsoleParts, LazyReader, SlotWidening
    from processor.tools.web.listener import Listener

    people, known = _people(options), bool(options.tokens or options.proxy)
    listener = Listener(
        host=options.host,
        port=options.port,
        token=known,
        certificate=options.certificate,
        key=options.key,
        limits=connection_limits(options, options.proxy),
    )
    rules = replace(name_rules(options), rate=options.rate, at_once=options.at_once)
    with (
        reachable_settings(options) as settings,
        open_registry(settings) as registry,
        closing(LazyReader(shared := registry.acting_as(READER) if known else registry, settings)) as table,
    ):
        prices = PriceCache(shared, settings)
        parts = ConsoleParts(
            registry=registry,
            settings=settings,
            open_reader=table.reader,
            letters=DeadLetterCache(settings, table.reader).letters,
            event_prices=prices.prices,
            known_prices=prices.known,
            landings=LandingCache(settings, shared.landings.all).landings,
            widening=SlotWidening(settings),
        )
        parts.preload()
        app = console_app(parts, SCREENS, people, rules)
        listener.run(app, lambda address: print_progress(f"the console is at {address}/"))
    return 0


def _people(options: argparse.Namespace) -> "PersonRules":
    """How the console knows people. Raises SettingError where flags contradict, or others reach it unnamed."""
    from processor.tools.web.console.people import OwnUser, ProxyPeople, TokenPeople, read_operators, read_tokens

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
    from processor.tools.web.guard import GuardRules

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

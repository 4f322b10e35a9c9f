"""`statestore console`: the screens of operators in a browser. The verb connects with the role of the person who starts it, and
the rights of that role decide what the pages may change."""

import argparse
from contextlib import closing

from processor.cli.http_options import add_listener, require_packages, token_of
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, print_progress, reachable_settings
from processor.cli.printing.edit_report import user_name
from processor.errors import SettingError
from processor.settings.open_registry import open_registry

PORT = 8290


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("console", help="serve the screens of operators to a browser")
    add_listener(parser, PORT, "a token or a proxy")
    parser.add_argument(
        "--identity-header", metavar="NAME", default="", help="header in which the proxy names the person"
    )
    parser.add_argument("--proxy", metavar="ADDRESS", default="", help="address of the proxy that signs people in")
    add_settings(parser, *REGISTRY, *TABLE, *KAFKA)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    require_packages("console", "uvicorn", "starlette", "jinja2")
    from processor.console.all_screens import SCREENS
    from processor.console.console_app import console_app
    from processor.console.console_parts import ConsoleParts, TableDoor
    from processor.console.letter_shelf import LetterShelf
    from processor.console.person_rules import PersonRules
    from processor.console.price_board import PriceBoard
    from processor.console.slot_widening import SlotWidening
    from processor.serve.guard import GuardRules
    from processor.serve.listener import Listener, is_loopback

    token = token_of(options)
    people = PersonRules(own=user_name(), token=bool(token), header=options.identity_header, proxy=options.proxy)
    if not (is_loopback(options.host) or token or people.proxy):
        raise SettingError(
            f"--host {options.host} is reachable from other machines: give --token REF, or --proxy and --identity-header of a "
            "proxy that signs people in, or leave --host out"
        )
    listener = Listener(
        host=options.host,
        port=options.port,
        token=bool(token or people.proxy),
        certificate=options.certificate,
        key=options.key,
    )
    local = listener.is_local and not people.proxy
    rules = GuardRules(token=token, local=local, rate=options.rate, at_once=options.at_once)
    with (
        reachable_settings(options) as settings,
        open_registry(settings) as registry,
        closing(TableDoor(registry, settings)) as table,
    ):
        parts = ConsoleParts(
            registry=registry,
            settings=settings,
            open_reader=table.reader,
            letters=LetterShelf(settings, table.reader).letters,
            price_board=PriceBoard(registry, settings).prices,
            widening=SlotWidening(registry, settings),
        )
        scheme = "https" if listener.certificate else "http"
        print_progress(f"the console is at {scheme}://{listener.host}:{listener.port}/")
        listener.run(console_app(parts, SCREENS, people, rules))
    return 0

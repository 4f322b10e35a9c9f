"""The forms in which a verb shows a state: text, JSON (`--json`), or text again and again (`--watch`)."""

import argparse
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from time import sleep

WATCH_SECONDS = 2


def add_forms(parser: argparse.ArgumentParser) -> None:
    """Adds `--json` and `--watch`."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--watch", action="store_true", help=f"print again every {WATCH_SECONDS} s, until Ctrl-C")


def print_state(options: argparse.Namespace, print_once: Callable[[], int]) -> int:
    """Prints the state once, or with `--watch` until Ctrl-C. Returns the exit status of the last time."""
    if not options.watch:
        return print_once()
    status = 0
    with suppress(KeyboardInterrupt):
        while True:
            print(f"\n{datetime.now():%Y-%m-%d %H:%M:%S}")
            status = print_once()
            sleep(WATCH_SECONDS)
    return status

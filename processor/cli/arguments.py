"""The arguments that several verbs share: numbers, a slot, and the reason of an edit."""

import argparse
import re

from processor.environment.settings.resolve import database_address
from processor.environment.stores.kind import LARGEST
from processor.errors import SettingError

_MOST_DIGITS = 20
"""Python reads no integers of thousands of digits."""


def positive(text: str) -> int:
    """A whole number, at least 1."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A whole number, at least 0."""
    return _whole(text, 0)


def _whole(text: str, low: int) -> int:
    number = int(text) if len(text) < _MOST_DIGITS else LARGEST + 1
    if not low <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {LARGEST}")
    return number


def seconds(text: str) -> float:
    """A number of seconds, at least 0."""
    number = float(text)
    if not 0 <= number <= LARGEST:  # refuses nan too
        raise argparse.ArgumentTypeError(f"must be from 0 to {LARGEST}")
    return number


def add_why(parser: argparse.ArgumentParser) -> None:
    """Adds `--why REASON`, which `reason` reads."""
    parser.add_argument("--why", metavar="REASON", default="", help="for the registry's history; the verb needs it")


def reason(options: argparse.Namespace) -> str:
    """The reason of the user. Raises SettingError without one."""
    why = str(options.why)
    if not why.strip():
        raise SettingError("--why is missing: give the reason, which `statestore history` shows later")
    return why


def add_source(parser: argparse.ArgumentParser | argparse._ArgumentGroup, text: str) -> None:
    """Adds `--source URL` and `--password REF`, which `source_address` reads. `text`: the help."""
    parser.add_argument("--source", metavar="URL", default="", help=text)
    parser.add_argument("--password", metavar="REF", default="", help="password of --source: env:, file: or secret:")


def source_address(options: argparse.Namespace) -> str:
    """The address of the source with its password. Raises SettingError for a password in the command itself."""
    return database_address(options.source, options.password, ("--source", "--password"))


def slot_number(text: str) -> int:
    """The number of `GSI_3`, or of `3`."""
    found = re.fullmatch(r"(?:GSI_)?(\d{1,2})", text, re.IGNORECASE | re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a slot like GSI_3, not {text!r}")
    return int(found[1])

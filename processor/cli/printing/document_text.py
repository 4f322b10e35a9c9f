"""One document as text: compact JSON in one line for programs, and a line for each member for people."""

import argparse
import sys

from processor.text import visible, visible_line
from processor.values import canonical_json


def add_pretty(parser: argparse.ArgumentParser) -> None:
    """Adds the flag `--pretty`."""
    text = "print a line for each member, as on a terminal"
    parser.add_argument("--pretty", action="store_true", help=text)


def document_text(value: bytes, options: argparse.Namespace) -> str:
    """The document of an encoded value, for this terminal or this file."""
    if options.pretty or sys.stdout.isatty():
        return visible(canonical_json.dumps_indented(canonical_json.loads(value)))
    return visible_line(value.decode())

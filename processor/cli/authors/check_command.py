"""`statestore check`: reads a directory of definitions with its tests, and prints each mistake. For editors and commit hooks.

It imports only the readers of definitions: 0.2 seconds in all, so that an editor can run it at each save.
"""

import argparse
import sys
from pathlib import Path

from processor.cli.printing.visible_text import visible
from processor.definitions.load import files_below, load_directory, read_tests
from processor.definitions.problems import DefinitionError
from processor.plan.planning import plan_alone

SLOTS = 20
"""The most slots of a table, and the default."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("check", help="read definitions and their tests, and print each mistake as path:line")
    help = "directories with entities.yaml, products, and tests/"
    parser.add_argument("definitions", metavar="DIR", type=Path, nargs="+", help=help)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    wrong = [directory for directory in options.definitions if not _is_right(directory)]
    return 1 if wrong else 0


def _is_right(directory: Path) -> bool:
    """Prints the mistakes of a directory, or a line that counts what it has."""
    try:
        definitions = load_directory(directory)
        texts, cases = read_tests(directory), 0
        if texts:
            from processor.definitions.product_tests import read_cases

            with files_below(directory):
                cases = len(read_cases(texts, definitions))
        plan_alone(definitions, SLOTS)
    except DefinitionError as error:
        print(visible(str(error)), file=sys.stderr)
        return False
    counts = f"{len(definitions.entities)} entities, {len(definitions.products)} products, {cases} tests"
    print(f"{visible(str(directory))}: {counts}, no mistake")
    return True

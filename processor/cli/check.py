"""`statestore check`: reads directories of definitions with their tests, and prints each mistake. For editors and commit hooks.

An editor runs it at each save, and most of its time are imports: so it imports only what a directory needs, in `_read`.
"""

import argparse
import gc
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.verb import AUTHORS, definitions_in, verb
from processor.text import visible, visible_line

if TYPE_CHECKING:
    from processor.language.product.product import Definitions, Join

SLOTS = 20
"""The most slots of a table, and the default."""


@verb(
    "check",
    AUTHORS,
    definitions_in("directories with entities.yaml, products, and tests/", nargs="*"),
)
def check(options: argparse.Namespace) -> int:
    """Read definitions and their tests, and print each mistake as path:line."""
    collects = gc.isenabled()
    gc.disable()  # the process ends soon, and the collector takes a seventh of its time
    try:
        wrong = [directory for directory in options.definitions if not _read(directory)]
        return 1 if wrong else 0
    finally:
        if collects:
            gc.enable()


def _read(directory: Path) -> bool:
    """Prints the mistakes of a directory, or a line that counts its content. Returns whether there is no mistake."""
    from processor.language.definitions.load import files_below, load_directory, read_tests
    from processor.language.definitions.problems import DefinitionError

    cases = 0
    try:
        definitions = load_directory(directory)
        if texts := read_tests(directory):
            from processor.language.definitions.product_tests import read_cases

            with files_below(directory):
                cases = len(read_cases(texts, definitions))
    except DefinitionError as error:
        print(visible(str(error)), file=sys.stderr)
        return False
    _check_slots(definitions)
    counts = f"{len(definitions.entities)} entities, {len(definitions.products)} products, {cases} tests"
    print(visible_line(f"{directory}: {counts}, no mistake"))
    return True


def _check_slots(definitions: "Definitions") -> None:
    """Raises NoSlot where an entity needs more slots than a table has. A join fills a slot on each of its two sides at most, so a
    few joins always fit, and the planner, a fifth of the time, stays away."""
    if 2 * sum(_count(product.joins) for product in definitions.products.values()) > SLOTS:
        from processor.engine.plan.planning import plan_alone

        plan_alone(definitions, SLOTS)


def _count(joins: "Iterable[Join]") -> int:
    return sum(1 + _count(join.joins) for join in joins)

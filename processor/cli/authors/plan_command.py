"""`statestore plan`: shows what `apply` would do, and the cost of each kind of event after it."""

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from processor.cli.options import (
    REGISTRY,
    add_definitions,
    add_settings,
    load_definitions,
    load_settings,
    reachable_settings,
)
from processor.cli.printing.plan_details import detail_lines
from processor.cli.printing.plan_json import plan_json
from processor.cli.printing.plan_text import plan_lines
from processor.errors import StatestoreError
from processor.pricing.preview import Preview, preview
from processor.pricing.price_list import DEFAULT, read_prices
from processor.product.product import Definitions
from processor.progress.topic_moves import move_lines
from processor.settings.open_registry import open_registry
from processor.settings.settings import Settings
from registry.errors import RegistryError, RegistryMissing
from registry.model import Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "plan", help="show what `apply` would do: changes, slots, warnings, and the price of each kind of event"
    )
    add_definitions(parser)
    parser.add_argument("--offline", action="store_true", help="compare with an empty registry, and connect to none")
    parser.add_argument(
        "--prices", metavar="FILE", help=f"file with the prices of another region than {DEFAULT.region} (TOML)"
    )
    parser.add_argument(
        "--no-price", action="store_true", help="leave the prices out: those of hundreds of products take long"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show all slots and joins too, and the price of each kind of event"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        prices = read_prices(options.prices) if options.prices else DEFAULT
        found = _preview(options)
    except (StatestoreError, RegistryError) as error:
        if not options.json:
            raise
        print(json.dumps({"errors": str(error).splitlines()}, indent=2))
        return 1
    if options.json:
        print(json.dumps(plan_json(found, prices), indent=2))
    else:
        print("\n".join(plan_lines(found, prices, detail_lines(found, prices) if options.verbose else ())))
    return 0


def _preview(options: argparse.Namespace) -> Preview:
    definitions = load_definitions(options)
    if options.offline:
        settings = load_settings(options)
        return preview(definitions, empty_registry(settings), frozenset(), None if options.no_price else settings)
    with reachable_settings(options) as settings:
        statistics, moves = None, tuple[str, ...]()
        with open_registry(settings) as registry:
            try:
                stored, has_run = registry.snapshot_for_apply()
                moves = _moves(definitions, stored, registry)
            except RegistryMissing:
                print("there is no registry yet: `apply` creates it", file=sys.stderr)
                stored, has_run = empty_registry(settings), frozenset[str]()
            else:
                with suppress(RegistryMissing):  # a registry of an older release has no statistics
                    statistics = registry.statistics.last()
        found = preview(definitions, stored, has_run, None if options.no_price else settings, statistics)
        return replace(found, warnings=(*moves, *found.warnings))


def _moves(definitions: Definitions, stored: Snapshot, registry: "Registry") -> tuple[str, ...]:
    """The moves of entities to other topics that the apply asks for, or that a job has yet to make."""
    topics = {entity.name: entity.topic for entity in stored.entities}
    topics |= {name: entity.topic for name, entity in definitions.entities.items()}
    return tuple(move_lines(topics, registry.epochs(sorted(topics.values()), sorted(topics))))


def empty_registry(settings: Settings) -> Snapshot:
    """The snapshot of a registry before the first apply."""
    return Snapshot(version=0, slots=settings.slots, entities=(), products=(), assignments=(), joins=())

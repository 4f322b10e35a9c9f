"""`statestore plan`: shows what `apply` would do, and the cost of each kind of event after it."""

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.arguments import positive
from processor.cli.chosen_diff import recorded_diff, stored_diff
from processor.cli.chosen_plan import empty_registry
from processor.cli.options import (
    REGISTRY,
    add_definitions,
    add_settings,
    load_definitions,
    load_settings,
    reachable_settings,
)
from processor.cli.printing.diff_markdown import markdown_lines
from processor.cli.printing.diff_text import diff_json, diff_lines
from processor.cli.printing.plan_details import detail_lines
from processor.cli.printing.plan_json import plan_json
from processor.cli.printing.plan_text import plan_lines
from processor.engine.plan.planning import requirements_of
from processor.engine.protocol.epochs import move_lines
from processor.environment.settings.open_registry import open_registry
from processor.errors import SettingError, StatestoreError
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from processor.tools.inspect.diff import DiffReport
from processor.tools.inspect.preview import Preview, preview
from processor.tools.inspect.price_list import DEFAULT, read_prices
from processor.values import canonical_json
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import RegistryError, RegistryMissing
from registry.model import Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("plan", help="show what `apply` would do: changes, documents, warnings, and prices")
    add_definitions(parser)
    parser.add_argument("--offline", action="store_true", help="compare with an empty registry, and connect to none")
    parser.add_argument("--against", metavar="DIR", type=Path, help="with --offline: compare with these definitions")
    parser.add_argument("--diff", action="store_true", help="compare the documents of stored rows, before and after")
    parser.add_argument("--from", dest="source", metavar="FILE", help="with --diff --offline: topics, as of `try`")
    parser.add_argument("--sample", metavar="N", type=positive, help="compare N documents of each product, not all")
    parser.add_argument("--seed", metavar="S", type=int, help="the same seed takes the same sample")
    parser.add_argument("--prices", metavar="FILE", help=f"prices of another region than {DEFAULT.region} (TOML)")
    parser.add_argument("--no-price", action="store_true", help="no prices: those of hundreds of products take long")
    parser.add_argument("--verbose", action="store_true", help="show slots, joins and the price of each event too")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        _check_flags(options)
        prices = read_prices(options.prices) if options.prices else DEFAULT
        found, diff = _offline(options) if options.offline else _online(options)
    except (StatestoreError, RegistryError) as error:
        if not options.json:
            raise
        print(json.dumps({"errors": str(error).splitlines()}, indent=2))
        return 1
    if options.json:
        shown = plan_json(found, prices) | ({"diff": diff_json(diff, prices)} if diff else {})
        print(canonical_json.dumps_indented(shown))
        return 0
    details = detail_lines(found, prices) if options.verbose else ()
    lines = list(plan_lines(found, prices, details))
    if options.markdown:
        print("\n".join(markdown_lines(lines, diff, prices)))
    else:
        print("\n".join([*lines, *(diff_lines(diff, prices) if diff else ())]))
    return 0


def _check_flags(options: argparse.Namespace) -> None:
    """Raises SettingError for flags that do not go together."""
    if options.diff and options.offline and not options.source:
        raise SettingError(
            "--diff --offline has no rows to compare: add --from FILE, or leave --offline out to read the state"
        )
    if options.source and not (options.diff and options.offline):
        raise SettingError("--from belongs to --diff --offline; without --offline the rows are those of the state")
    if options.against and not options.offline:
        raise SettingError("--against belongs to --offline; without it plan compares with the registry")
    if (options.sample or options.seed is not None) and not options.diff:
        raise SettingError("--sample and --seed belong to --diff")
    if options.markdown and options.json:
        raise SettingError("--markdown and --json are two forms of one output: give one of them")


def _offline(options: argparse.Namespace) -> tuple[Preview, DiffReport | None]:
    """The plan against an empty registry, or against one with the definitions of `--against`."""
    definitions, settings = load_definitions(options), load_settings(options)
    against = load(read_directory(options.against)) if options.against else Definitions(entities={}, products={})
    empty = empty_registry(settings)
    stored = edited(empty, apply(empty, requirements_of(against), frozenset()))
    has_run = frozenset(against.entities)
    found = preview(definitions, stored, has_run, None if options.no_price else settings)
    return found, recorded_diff(options, definitions, stored) if options.diff else None


def _online(options: argparse.Namespace) -> tuple[Preview, DiffReport | None]:
    """The plan against the registry."""
    definitions = load_definitions(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        statistics, moves = None, tuple[str, ...]()
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
        diff = stored_diff(options, definitions, settings, registry, (stored, has_run)) if options.diff else None
    return replace(found, warnings=(*moves, *found.warnings)), diff


def _moves(definitions: Definitions, stored: Snapshot, registry: "Registry") -> tuple[str, ...]:
    """The moves of entities to other topics that the apply asks for, or that a job has yet to make."""
    topics = {entity.name: entity.topic for entity in stored.entities}
    topics |= {name: entity.topic for name, entity in definitions.entities.items()}
    return tuple(move_lines(topics, registry.epochs(sorted(topics.values()), sorted(topics))))

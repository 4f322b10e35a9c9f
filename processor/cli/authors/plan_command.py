"""`statestore plan`: shows what `apply` would do, and the cost of each kind of event after it."""

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from processor.cli.options import (
    REGISTRY,
    add_definitions,
    add_settings,
    load_definitions,
    load_settings,
    reachable_settings,
)
from processor.cli.printing.visible_text import visible
from processor.errors import StatestoreError
from processor.first_of import first_of
from processor.pricing.backfill_estimate import BACKFILL_UNITS, Backfill
from processor.pricing.estimate import Estimate
from processor.pricing.preview import Preview, preview
from processor.pricing.price import BATCH, REQUESTS, Cost
from processor.pricing.price_list import DEFAULT, Prices, read_prices
from processor.product.product import Definitions
from processor.progress.topic_moves import move_lines
from processor.settings.open_registry import open_registry
from processor.settings.settings import Settings
from processor.text_table import fitted, table_lines
from registry.errors import RegistryError, RegistryMissing
from registry.model import Snapshot
from statestore.items import slot_name

if TYPE_CHECKING:
    from registry.repository import Registry

SHOWN_WARNINGS = 20
SHOWN_NAMES = 10
"""The text shows so many warnings, and so many names that an apply keeps; of further ones only how many. --json shows all."""


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
    print(
        json.dumps(_json(found, prices), indent=2) if options.json else visible("\n".join(preview_lines(found, prices)))
    )
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


def preview_lines(found: Preview, prices: Prices) -> Iterator[str]:
    """The preview as text."""
    yield f"changes to registry version {found.version}:" if found.changes else "nothing would change"
    yield from (f"  {change}" for change in found.changes)
    if found.kept:
        yield f"  not named here, and kept: {first_of(found.kept, SHOWN_NAMES)}"
    yield "slots:"
    rows = [
        [s.entity, slot_name(s.slot), "#".join(s.columns), s.state, _served_joins(s.serves, s.together)]
        for s in found.slots
    ]
    yield from _table(fitted(rows, indent=2))
    yield f"  free: {', '.join(f'{entity} {n}' for entity, n in found.free.items())}"
    if found.trees:
        yield "joins below each root, with the products that use them (each join reads its rows once for all of these):"
        yield from (f"  {line}" for line in found.trees)
    if found.backfills:
        yield "the job fills these in stored rows, and products that need them wait until then:"
        yield from (f"  {_backfill_line(backfill, prices)}" for backfill in found.backfills)
    if found.costs:
        yield (
            f"price of an event in {prices.region} ({prices.date}: ${prices.write} / M write units, ${prices.read} / M read "
            f"units), every join with one row: first its units and dollars in a batch of {BATCH:,} such events, then its dollars "
            "and requests alone in its batch (+ is what settling it adds):"
        )
        header = ["event", "write units", "read units", "$ / M events", "alone: $ / M", "documents", *REQUESTS]
        yield from _table([header, *(_cost_cells(cost, prices) for cost in found.costs)], right=range(1, len(header)))
    if found.estimates:
        yield (
            f"estimate in a batch of {BATCH:,}, by statistics of {found.taken_at:%Y-%m-%d %H:%M} UTC (joins find their mean "
            "rows, one where nothing is known, and every document that is rebuilt is published):"
        )
        header = ["event", "rebuilt", "write units", "read units", "$ / M events"]
        rows = [_estimate_cells(estimate, prices) for estimate in found.estimates]
        yield from _table([header, *rows], right=range(1, len(header)))
    if found.warnings:
        yield "warnings:"
        yield from (f"  {warning}" for warning in found.warnings[:SHOWN_WARNINGS])
        if more := len(found.warnings[SHOWN_WARNINGS:]):
            yield f"  and {more} more: `plan --json` shows all"
    if found.changes:
        yield f"plan {found.plan}: `apply --plan {found.plan}` makes exactly these changes, or refuses"


def _backfill_line(backfill: Backfill, prices: Prices) -> str:
    needed = f"{backfill.entity}: {backfill.holds}"
    if backfill.rows is None or backfill.write_units is None or backfill.seconds is None:
        return f"{needed}; `statestore statistics` counts its rows"
    dollars = prices.dollars(backfill.write_units, Decimal(0)) / 1_000_000
    time = f"about {timedelta(seconds=backfill.seconds)} at {BACKFILL_UNITS:,} write units a second and shard"
    return f"{needed}, in {backfill.rows:,} rows: {backfill.write_units:,} write units, ${dollars:.2f}, {time}"


def _table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    return (f"  {line}" for line in table_lines(rows, right))


def _served_joins(serves: tuple[str, ...], together: tuple[str, ...]) -> str:
    return "; ".join(serves) + (f" (one query with {', '.join(together)})" if together else "")


def _cost_cells(cost: Cost, prices: Prices) -> list[str]:
    write, read = cost.batch_write_units, cost.batch_read_units
    dollars = (prices.dollars(write, read), prices.dollars(cost.write_units, cost.read_units))
    figures = [f"{write:.2f}", f"{read:.2f}", *(f"{figure:.3f}" for figure in dollars), str(cost.documents)]
    return [
        f"{cost.entity}: {cost.event}",
        *figures,
        *(f"{cost.requests[name]}+{cost.later[name]}" for name in REQUESTS),
    ]


def _estimate_cells(estimate: Estimate, prices: Prices) -> list[str]:
    figures = (estimate.documents, estimate.write_units, estimate.read_units, _dollars(estimate, prices))
    return [f"{estimate.entity}: {estimate.event}", *(f"{figure:,.2f}" for figure in figures)]


def _dollars(estimate: Estimate, prices: Prices) -> Decimal:
    """Dollars a million events."""
    return prices.dollars(Decimal(estimate.write_units), Decimal(estimate.read_units))


def _json(found: Preview, prices: Prices) -> dict[str, object]:
    priced = [
        {
            **{name: float(value) if isinstance(value, Decimal) else value for name, value in asdict(cost).items()},
            "dollars_per_million": float(prices.dollars(cost.write_units, cost.read_units)),
            "batch_dollars_per_million": float(prices.dollars(cost.batch_write_units, cost.batch_read_units)),
        }
        for cost in found.costs
    ]
    listed = {name: str(value) if isinstance(value, Decimal) else value for name, value in asdict(prices).items()}
    estimated = [{**asdict(one), "dollars_per_million": float(_dollars(one, prices))} for one in found.estimates]
    taken = found.taken_at.isoformat() if found.taken_at else None
    return {
        **asdict(found),
        "taken_at": taken,
        "prices": listed,
        "costs": priced,
        "estimates": estimated,
        "errors": [],
    }

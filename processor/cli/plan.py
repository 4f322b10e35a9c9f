"""`statestore plan`: what `apply` would do, and what each kind of event costs then."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal

from processor.backfills import NeedsBackfills
from processor.cli.options import add_definitions, add_settings, addressed, definitions_of, settings_of
from processor.cli.output import aligned
from processor.errors import StatestoreError
from processor.estimate import Estimate
from processor.preview import Preview, preview
from processor.price import REQUESTS, Cost
from processor.prices import DEFAULT, Prices, read_prices
from processor.settings import Settings
from registry.errors import RegistryError, RegistryMissing
from registry.model import Snapshot


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("plan", help="what `apply` would do: changes, slots, warnings, the price of each event")
    add_definitions(parser)
    parser.add_argument("--offline", action="store_true", help="against an empty registry, asking none")
    parser.add_argument("--prices", metavar="FILE", help=f"prices of another region than {DEFAULT.region} (TOML)")
    parser.add_argument("--no-price", action="store_true", help="quickly: prices of hundreds of products take a while")
    parser.add_argument("--json", action="store_true")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        prices = read_prices(options.prices) if options.prices else DEFAULT
        found = _preview(options)
    except (StatestoreError, RegistryError) as error:
        if not options.json:
            raise
        needed = [asdict(one) for one in error.needed] if isinstance(error, NeedsBackfills) else []
        print(json.dumps({"errors": str(error).splitlines(), "backfills": needed}, indent=2))
        return 1
    print(json.dumps(_json(found, prices), indent=2) if options.json else "\n".join(lines(found, prices)))
    return 0


def _preview(options: argparse.Namespace) -> Preview:
    definitions = definitions_of(options)
    if options.offline:
        settings = settings_of(options)
        return preview(definitions, empty(settings), frozenset(), None if options.no_price else settings)
    from registry.repository import Registry

    with addressed(options) as settings:
        statistics = None
        with Registry(settings.registry, settings.registry_schema) as registry:
            try:
                stored, has_run = registry.standing()
            except RegistryMissing:
                print("there is no registry yet: `apply` makes it", file=sys.stderr)
                stored, has_run = empty(settings), frozenset[str]()
            else:
                with suppress(RegistryMissing):  # of a registry that is older than its statistics
                    statistics = registry.statistics()
        return preview(definitions, stored, has_run, None if options.no_price else settings, statistics)


def empty(settings: Settings) -> Snapshot:
    """A registry that nothing was applied to."""
    return Snapshot(version=0, slots=settings.slots, entities=(), products=(), assignments=(), joins=())


def lines(found: Preview, prices: Prices) -> Iterator[str]:
    """What an apply would do, as text."""
    yield f"changes to registry version {found.version}:" if found.changes else "nothing would change"
    yield from (f"  {change}" for change in found.changes)
    if found.kept:
        yield f"  not named here, and kept: {', '.join(found.kept)}"
    yield "slots:"
    rows = [[s.entity, f"GSI_{s.slot}", "#".join(s.columns), s.state, _why(s.serves, s.together)] for s in found.slots]
    yield from aligned(rows, right=())
    yield f"  free: {', '.join(f'{entity} {n}' for entity, n in found.free.items())}"
    if found.costs:
        yield (
            f"price of an event in a micro-batch of its own, every join with one row, in {prices.region} ({prices.date}: "
            f"${prices.write} / M write units, ${prices.read} / M read units; + is what settling it adds):"
        )
        header = ["event", "documents", *REQUESTS, "write units", "read units", "$ / M events"]
        yield from aligned([header, *(_cost(cost, prices) for cost in found.costs)], right=range(1, len(header)))
    if found.estimates:
        yield (
            f"estimate, by statistics of {found.taken_at:%Y-%m-%d %H:%M} UTC (joins find their mean rows, one where nothing is "
            "known, and every document that is rebuilt is published):"
        )
        header = ["event", "rebuilt", "write units", "read units", "$ / M events"]
        yield from aligned([header, *(_estimate(one, prices) for one in found.estimates)], right=range(1, len(header)))
    if found.warnings:
        yield "warnings:"
        yield from (f"  {warning}" for warning in found.warnings)


def _why(serves: tuple[str, ...], together: tuple[str, ...]) -> str:
    return "; ".join(serves) + (f" (one query with {', '.join(together)})" if together else "")


def _cost(cost: Cost, prices: Prices) -> list[str]:
    asked = [f"{cost.requests[name]}+{cost.later[name]}" for name in REQUESTS]
    dollars = f"{prices.dollars(cost.write_units, cost.read_units):.3f}"
    units = [str(cost.write_units), f"{cost.read_units.normalize():f}"]
    return [f"{cost.entity}: {cost.event}", str(cost.documents), *asked, *units, dollars]


def _estimate(one: Estimate, prices: Prices) -> list[str]:
    figures = (one.documents, one.write_units, one.read_units, _dollars(one, prices))
    return [f"{one.entity}: {one.event}", *(f"{figure:,.2f}" for figure in figures)]


def _dollars(one: Estimate, prices: Prices) -> Decimal:
    return prices.dollars(Decimal(one.write_units), Decimal(one.read_units))


def _json(found: Preview, prices: Prices) -> dict[str, object]:
    priced = [
        {
            **asdict(cost),
            "read_units": float(cost.read_units),
            "dollars_per_million": float(prices.dollars(cost.write_units, cost.read_units)),
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
        "backfills": [],
    }

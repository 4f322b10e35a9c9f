"""The details of `plan --verbose`: slots that stay, joins, shared trees, and the price of each kind of event."""

from collections.abc import Iterator, Sequence

from processor.cli.printing.plan_text import WIDTH, served_joins
from processor.text import fitted_to, table_lines, visible_line, wrapped_lines
from processor.tools.inspect.estimate import Estimate
from processor.tools.inspect.preview import Preview, estimated_dollars
from processor.tools.inspect.price import BATCH, REQUESTS, Cost
from processor.tools.inspect.prices import Prices
from statestore.items import slot_name

REQUEST_NAMES = {"UpdateItem": "update", "BatchGetItem": "get", "Query": "query", "DeleteItem": "delete"}
"""The requests as the table names them."""


def detail_lines(found: Preview, prices: Prices) -> Iterator[str]:
    """The details as text. The slots that are new, and what changes, are in `plan_lines`."""
    yield from _section("joins that are new, or read in another way:", found.joins)
    kept = [slot for slot in found.slots if slot.state != "new"]
    shown = [
        f"{slot_name(s.slot)} of {s.entity}, {s.state}, holds {'#'.join(s.columns)}{served_joins(s)}" for s in kept
    ]
    yield from _section("slots that stay:", shown)
    yield from _section("free slots:", [", ".join(f"{entity} {n}" for entity, n in found.free.items())])
    title = "joins below each root, with the products that use them (each join reads its rows once for all):"
    yield from _section(title, found.trees)
    if found.costs:
        yield from _costs(found.costs, prices)
    if found.estimates:
        yield from _estimates(found, prices)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
    for line in lines:
        text = line.lstrip()
        yield from wrapped_lines(visible_line(text), WIDTH, "  " + " " * (len(line) - len(text)), "    ")


def _costs(costs: Sequence[Cost], prices: Prices) -> Iterator[str]:
    yield ""
    title = (
        f"price of an event in {prices.region} ({prices.date}: ${prices.write} / M write units, ${prices.read} / M read units), "
        f"every join with one row: its units and $ / M events in a batch of {BATCH:,} such events, then $ / M and requests alone "
        "in its batch (+ is what settling it adds):"
    )
    yield from wrapped_lines(title, WIDTH)
    header = ["event", "write", "read", "$ / M", "alone", "docs", *map(REQUEST_NAMES.__getitem__, REQUESTS)]
    yield from _table([header, *(_cost_cells(cost, prices) for cost in costs)])


def _estimates(found: Preview, prices: Prices) -> Iterator[str]:
    yield ""
    title = (
        f"estimate in a batch of {BATCH:,}, by statistics of {found.taken_at:%Y-%m-%d %H:%M} UTC (joins find their mean rows, "
        "one where nothing is known, and every document that is rebuilt is published):"
    )
    yield from wrapped_lines(title, WIDTH)
    header = ["event", "rebuilt", "write", "read", "$ / M"]
    yield from _table([header, *(_estimate_cells(estimate, prices) for estimate in found.estimates)])


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of events; the names of the events are wrapped."""
    return (f"  {line}" for line in table_lines(fitted_to(WIDTH - 2, rows, 0), right=range(1, len(rows[0]))))


def _cost_cells(cost: Cost, prices: Prices) -> list[str]:
    write, read = cost.batch_write_units, cost.batch_read_units
    dollars = (prices.dollars(write, read), prices.dollars(cost.write_units, cost.read_units))
    figures = [f"{write:.2f}", f"{read:.2f}", *(f"{figure:.3f}" for figure in dollars), str(cost.documents)]
    requests = [f"{cost.requests[name]}+{cost.later[name]}" for name in REQUESTS]
    return [visible_line(f"{cost.entity}: {cost.event}"), *figures, *requests]


def _estimate_cells(estimate: Estimate, prices: Prices) -> list[str]:
    figures = (estimate.documents, estimate.write_units, estimate.read_units, estimated_dollars(estimate, prices))
    return [visible_line(f"{estimate.entity}: {estimate.event}"), *(f"{figure:,.2f}" for figure in figures)]

"""The text of `plan`: a summary, then each change once, in lines of at most 100 characters. `plan_details` has the rest."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from processor.cli.printing.colour import coloured
from processor.text import first_of, fitted_to, table_lines, visible_line, wrapped_lines
from processor.tools.inspect.costs import ProductPrice, product_prices
from processor.tools.inspect.planned_entries import EntryAction, PlannedEntry
from processor.tools.inspect.preview import Backfill, Preview, SlotPreview, backfill_text
from processor.tools.inspect.price import BATCH
from processor.tools.inspect.price_list import Prices
from statestore.items import slot_name

WIDTH = 100
"""Characters of the longest line."""
SHOWN_WARNINGS = 20
SHOWN_NAMES = 10
"""The text shows so many warnings, and so many names that an apply keeps; of further ones only how many. --json shows all."""
NAMED = 2
"""The summary names the products whose price it has, if there are at most so many; else the plan has a table of them."""
SIGNS: Mapping[EntryAction, str] = {"add": "+", "change": "~", "withdraw": "-"}
COLOURS = {"+": "green", "-": "red"}


def plan_lines(found: Preview, prices: Prices, details: Iterable[str] = ()) -> Iterator[str]:
    """The plan as text. `details`: lines that follow the prices."""
    priced = product_prices(found, prices)
    yield from wrapped_lines(summary(found, prices), WIDTH)
    if found.changes:
        yield ""
        yield from _change_lines(found, prices)
    if found.kept:
        yield from wrapped_lines(f"not named here, and kept: {first_of(found.kept, SHOWN_NAMES)}", WIDTH, "  ")
    if len(priced) > NAMED:
        yield ""
        yield from _price_table(priced, found, prices)
    yield from _gate_lines(found)
    yield from details
    if found.warnings:
        yield ""
        yield "warnings:"
        for warning in found.warnings[:SHOWN_WARNINGS]:
            yield from wrapped_lines(visible_line(warning), WIDTH, "  ")
        if more := len(found.warnings[SHOWN_WARNINGS:]):
            yield f"  and {more} more: `plan --json` shows all"
    if found.changes:
        yield ""
        yield f"`apply --plan {found.plan}` makes exactly these changes, or refuses"


def summary(found: Preview, prices: Prices) -> str:
    """The plan in one line: its changes, the rows to fill, and the prices of events."""
    parts = [", ".join(_counts(found)) or ("other changes" if found.changes else "nothing would change")]
    if known := [one for one in found.backfills if one.rows is not None]:
        parts.append(_filling(known, prices))
    priced = product_prices(found, prices)
    if len(priced) <= NAMED:
        parts += [f"{one.product}: {_range(one.low, one.high)}" for one in priced]
    else:
        low, high = min(one.low for one in priced), max(one.high for one in priced)
        parts.append(f"{len(priced)} products: {_range(low, high)}")
    return visible_line("; ".join(parts))


def _counts(found: Preview) -> Iterator[str]:
    """How many entries the apply adds and changes, and how many slots."""
    for action in SIGNS:
        acted = Counter(entry.kind for entry in found.entries if entry.action == action)
        if acted:
            yield f"{' and '.join(counted(count, kind) for kind, count in acted.items())} to {action}"
    if new := [slot for slot in found.slots if slot.state == "new"]:
        filled = {backfill.entity for backfill in found.backfills}
        fill = "fill" if any(slot.entity in filled for slot in new) else "add"
        yield f"{counted(len(new), 'slot')} to {fill}"
    if found.dropped:
        yield f"{counted(len(found.dropped), 'join')} to drop"


def counted(count: int, what: str) -> str:
    """`1 entity`, `2,000 entities`."""
    return f"{count:,} {what if count == 1 else {'entity': 'entities'}.get(what, what + 's')}"


def _filling(backfills: Iterable[Backfill], prices: Prices) -> str:
    """The rows, the time and the dollars of backfills, one after the other."""
    rows, units, seconds = (
        sum(each) for each in zip(*((b.rows or 0, b.write_units or 0, b.seconds or 0) for b in backfills), strict=True)
    )
    dollars = prices.dollars(units, Decimal(0)) / 1_000_000
    return f"{rows:,} rows, {_duration(seconds)}, ${dollars:,.2f}"


def _duration(seconds: int) -> str:
    """Minutes up to two hours, then hours."""
    if seconds < 60:
        return "under a minute"
    return counted(round(seconds / 60), "minute") if seconds < 7200 else counted(round(seconds / 3600), "hour")


def _range(low: Decimal, high: Decimal) -> str:
    """Dollars a million events."""
    shown = dict.fromkeys(f"${dollars:,.1f}" for dollars in (low, high))
    return f"{' to '.join(shown)} a million events"


def _change_lines(found: Preview, prices: Prices) -> Iterator[str]:
    for entry in found.entries:
        yield from _signed(SIGNS[entry.action], _entry_text(entry, fills=bool(found.backfills)))
        for detail in entry.details:
            yield from wrapped_lines(visible_line(detail), WIDTH, "      ")
    filled = {backfill.entity: backfill for backfill in found.backfills}
    for slot in (one for one in found.slots if one.state == "new"):
        yield from _signed("+", _slot_text(slot))
    for backfill in filled.values():
        for fields in backfill.edges:
            yield from _signed("+", f"edges of {backfill.entity} by {fields}")
        yield from _signed("~", backfill_text(backfill, prices))
    for join in found.dropped:
        yield from _signed("-", f"join {join}, which no product uses")


def _signed(sign: str, text: str) -> Iterator[str]:
    first, *further = wrapped_lines(visible_line(text), WIDTH, "    ")
    yield f"  {coloured(sign, COLOURS.get(sign, 'bold'))} {first.lstrip()}"
    yield from further


def _entry_text(entry: PlannedEntry, *, fills: bool) -> str:
    if entry.action == "withdraw":
        return f"product {entry.name}: version {entry.version} waits no more"
    version = f", version {entry.version}" if entry.version else ""
    return f"{entry.kind} {entry.name}{version}{', once its slots are full' if entry.waits and fills else ''}"


def _slot_text(slot: SlotPreview) -> str:
    return f"{slot_name(slot.slot)} of {slot.entity} holds {'#'.join(slot.columns)}{served_joins(slot)}"


def served_joins(slot: SlotPreview) -> str:
    """The joins that a slot serves, as the end of a line."""
    together = f" (one query with {', '.join(slot.together)})" if slot.together else ""
    if slot.strangers:
        together += f" (a query of its own where {slot_name(slot.slot)} has rows of {', '.join(slot.strangers)}, too)"
    return f": {'; '.join(slot.serves)}{together}" if slot.serves else ""


def _gate_lines(found: Preview) -> Iterator[str]:
    """What holding costs, which is in the prices of events, but for the growth of the items."""
    if found.gates:
        yield ""
        yield from wrapped_lines(
            "gates: write units of holding, for an event alone in its batch and for one in a batch of "
            f"{BATCH:,}. Changes that wait together make one document, and the prices do not count this:",
            WIDTH,
        )
    for one in found.gates:
        yield from wrapped_lines(
            visible_line(f"{one.product}: {one.alone:g} alone, {one.in_batch:.3f} in a batch"), WIDTH, "  "
        )


def _price_table(priced: Sequence[ProductPrice], found: Preview, prices: Prices) -> Iterator[str]:
    how = "by statistics" if found.estimates else "every join with one row"
    title = f"$ a million events in {prices.region} ({prices.date}), {how}, in a batch of {BATCH:,}; an event's price is for all "
    yield from wrapped_lines(f"{title}documents that it changes:", WIDTH)
    rows = [["product", "from", "to"]]
    rows += [[visible_line(one.product), f"{one.low:,.3f}", f"{one.high:,.3f}"] for one in priced]
    yield from (f"  {line}" for line in table_lines(fitted_to(WIDTH - 2, rows, 0), right=(1, 2)))

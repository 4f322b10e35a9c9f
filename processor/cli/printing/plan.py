"""The plan and its diff as text, as JSON, and as Markdown for a comment of a pull request. The text is a summary, then each
change once, in lines of at most 100 characters; --verbose adds slots, joins and the price of each event; `diff_lines` has what
--diff adds."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal

from processor.cli.printing.output import coloured
from processor.text import first_of, fitted_to, shortened, table_lines, visible_line, wrapped_lines
from processor.tools.inspect.board import EntryAction, PlannedEntry
from processor.tools.inspect.diff import ChangeGroup, DiffReport, DocumentSizes, JoinFinding, ProductDiff
from processor.tools.inspect.estimate import Estimate
from processor.tools.inspect.preview import (
    Backfill,
    Preview,
    ProductPrice,
    SlotPreview,
    backfill_text,
    estimated_dollars,
    product_prices,
)
from processor.tools.inspect.price import BATCH, REQUESTS, Cost, LoadPrice
from processor.tools.inspect.prices import IMPORT, Prices
from processor.values import canonical_json
from processor.values.record import Value
from registry.fields import shown_fields
from statestore.items import slot_name

WIDTH = 100
"""Characters of the longest line."""
SHOWN_WARNINGS = 20
SHOWN_NAMES = 10
SHOWN_SUBJECTS = 5
"""The text shows this many warnings, names that an apply keeps, and subjects of one warning; of further ones only how many.
--json shows all."""
NAMED = 2
"""The summary names the products whose price it has, if there are at most this many; else the plan has a table of them."""
SIGNS: Mapping[EntryAction, str] = {"add": "+", "change": "~", "withdraw": "-"}
COLOURS = {"+": "green", "-": "red"}


def plan_lines(found: Preview, prices: Prices, *, verbose: bool = False) -> Iterator[str]:
    """The plan as text. `verbose`: with each slot and join, and the price of each event."""
    priced = _priced(found, prices)
    yield from wrapped_lines(summary(found, prices), WIDTH)
    if found.changes:
        yield ""
        yield from _change_lines(found, prices, verbose=verbose)
    if found.kept:
        yield from wrapped_lines(f"not named here, and kept: {first_of(found.kept, SHOWN_NAMES)}", WIDTH, "  ")
    if len(priced) > NAMED:
        yield ""
        yield from _price_table(priced, found, prices)
    yield from _gate_lines(found)
    yield from _move_lines(found)
    yield from _clock_lines(found)
    if verbose:
        yield from _detail_lines(found, prices)
    if warnings := together(found.warnings):
        yield ""
        yield "warnings:"
        for warning in warnings[:SHOWN_WARNINGS]:
            yield from wrapped_lines(visible_line(warning), WIDTH, "  ")
        if more := len(warnings[SHOWN_WARNINGS:]):
            yield f"  and {more} more: `plan --json` shows all"
    if found.changes:
        yield ""
        yield f"`apply --plan {found.plan}` makes exactly these changes, or refuses"


def together(warnings: Iterable[str]) -> list[str]:
    """The warnings, as `subject: advice`; those with the same advice are one, with the first subjects."""
    subjects: dict[str, list[str]] = {}
    for warning in warnings:
        subject, _, advice = warning.partition(": ")
        subjects.setdefault(advice, []).append(subject)
    return [": ".join(filter(None, (first_of(named, SHOWN_SUBJECTS), advice))) for advice, named in subjects.items()]


def _priced(found: Preview, prices: Prices) -> list[ProductPrice]:
    """The prices of the products that the apply touches: all of them where it changes no definition."""
    named = {entry.name for entry in found.entries if entry.kind == "product"}
    changed = {entry.name for entry in found.entries if entry.kind == "entity"}
    priced = product_prices(found, prices)
    return [
        one
        for one in priced
        if not found.entries or one.product in named or not changed.isdisjoint(found.reads[one.product])
    ]


def summary(found: Preview, prices: Prices) -> str:
    """The plan in one line: its changes, the rows to fill, and the prices of events."""
    parts = [", ".join(_counts(found)) or ("other changes" if found.changes else "nothing would change")]
    if known := [one for one in found.backfills if one.rows is not None]:
        parts.append(_filling(known, prices))
    priced = _priced(found, prices)
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


def _change_lines(found: Preview, prices: Prices, *, verbose: bool) -> Iterator[str]:
    for entry in found.entries:
        yield from _signed(SIGNS[entry.action], _entry_text(entry, fills=bool(found.backfills)))
        for detail in entry.details:
            yield from wrapped_lines(visible_line(detail), WIDTH, "      ")
    filled = {backfill.entity: backfill for backfill in found.backfills}
    new = [slot for slot in found.slots if slot.state == "new"]
    for slot in new if verbose else (slot for slot in new if slot.strangers):
        yield from _signed("+", _slot_text(slot))
    if new and not verbose:
        yield from _signed("+", f"{counted(len(new), 'slot')} for joins: `plan --verbose` lists them")
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
    return f"{slot_name(slot.slot)} of {slot.entity} holds {shown_fields(slot.columns)}{served_joins(slot)}"


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


def _clock_lines(found: Preview) -> Iterator[str]:
    """What time costs, which is in no price of an event."""
    if found.clocks:
        yield ""
        yield from wrapped_lines(
            f"clock: each boundary that time passes makes a document of {first_of(found.clocks, SHOWN_NAMES)} again, with its "
            "reads, a delete, and at most two writes; an event writes the tick of its document where it is the first one",
            WIDTH,
        )


def _move_lines(found: Preview) -> Iterator[str]:
    """What a move to another partition adds. It costs no request of the store."""
    if found.routed:
        yield ""
        yield from wrapped_lines(
            f"partition_by: a document of {first_of(found.routed, SHOWN_NAMES)} that moves to another partition sends one "
            "message more, the tombstone in its former one",
            WIDTH,
        )


def _price_table(priced: Sequence[ProductPrice], found: Preview, prices: Prices) -> Iterator[str]:
    how = "by statistics" if found.estimates else "every join with one row"
    title = f"$ a million events in {prices.region} ({prices.date}), {how}, in a batch of {BATCH:,}; an event's price is for all "
    yield from wrapped_lines(f"{title}documents that it changes:", WIDTH)
    rows = [["product", "from", "to"]]
    rows += [[visible_line(one.product), f"{one.low:,.3f}", f"{one.high:,.3f}"] for one in priced]
    yield from (f"  {line}" for line in table_lines(fitted_to(WIDTH - 2, rows, 0), right=(1, 2)))


REQUEST_NAMES = {"UpdateItem": "update", "BatchGetItem": "get", "Query": "query", "DeleteItem": "delete"}
"""The requests as the table names them."""


def _detail_lines(found: Preview, prices: Prices) -> Iterator[str]:
    """The details as text. The slots that are new, and what changes, are in `plan_lines`."""
    yield from _section("joins that are new, or read in another way:", found.joins)
    kept = [slot for slot in found.slots if slot.state != "new"]
    shown = [
        f"{slot_name(s.slot)} of {s.entity}, {s.state}, holds {shown_fields(s.columns)}{served_joins(s)}" for s in kept
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


def plan_json(found: Preview, prices: Prices) -> dict[str, object]:
    """All that `plan` shows, with its prices in dollars a million events."""
    priced = [
        {
            **{name: float(value) if isinstance(value, Decimal) else value for name, value in asdict(cost).items()},
            "dollars_per_million": float(prices.dollars(cost.write_units, cost.read_units)),
            "batch_dollars_per_million": float(prices.dollars(cost.batch_write_units, cost.batch_read_units)),
        }
        for cost in found.costs
    ]
    listed = {name: str(value) if isinstance(value, Decimal) else value for name, value in asdict(prices).items()}
    estimated = [
        {**asdict(one), "dollars_per_million": float(estimated_dollars(one, prices))} for one in found.estimates
    ]
    by_product = [
        {"product": p.product, "from": float(p.low), "to": float(p.high)} for p in product_prices(found, prices)
    ]
    taken = found.taken_at.isoformat() if found.taken_at else None
    return {
        "summary": summary(found, prices),
        **asdict(found),
        "taken_at": taken,
        "prices": listed,
        "costs": priced,
        "estimates": estimated,
        "product_prices": by_product,
        "errors": [],
    }


NEW_TABLE = 4_000
"""Write units a second that a new table on demand takes at first. Read on 2026-11-27:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/pre-warming-on-demand-capacity-mode.html."""


def load_lines(found: LoadPrice, prices: Prices) -> Iterator[str]:
    """The price of a first load, of a million records like those that were tried."""
    share = Decimal(1_000_000) / max(found.records, 1)
    units, gigabytes = found.write_units * share, found.bytes * share / 10**9
    yield f"rows of a first load over DynamoDB, a million records like these {found.records:,}:"
    yield (
        f"  by `run`: ${units * prices.write / 1_000_000:.2f} for {units:,.0f} write units, at least "
        f"{_duration(int(units / NEW_TABLE))} at the {NEW_TABLE:,} a second of a new table"
    )
    yield f"  by `load`: ${gigabytes * IMPORT:.2f} for an import of {gigabytes:.2f} GB; AWS names no duration"


LONGEST = 100
"""Characters of an example's value."""
SHOWN_GROUPS = 20
"""The text shows this many groups of a product; --json shows all."""
WITHOUT_BEFORE = {"field added", "new document"}
WITHOUT_AFTER = {"field removed", "document gone"}


def diff_lines(report: DiffReport, prices: Prices) -> Iterator[str]:
    """The diff as lines of at most 100 characters."""
    for diff in report.products:
        yield ""
        heading, *further = wrapped_lines(visible_line(f"{diff.product}: {headline(diff)}"), WIDTH)
        yield coloured(heading, "bold")
        yield from further
        for group in diff.groups[:SHOWN_GROUPS] if not diff.new else ():
            yield from wrapped_lines(visible_line(f"{group_text(group)}: {group.documents:,}"), WIDTH, "  ")
            yield from wrapped_lines(visible_line(example(group)), WIDTH, "      ")
        if not diff.new and (more := len(diff.groups[SHOWN_GROUPS:])):
            yield f"  and {more} more groups: `plan --diff --json` shows all"
        for line in (*size_lines(diff), messages_line(diff, prices), *join_lines(diff)):
            yield from wrapped_lines(visible_line(line), WIDTH, "  ")
    if not report.products:
        yield from ("", "no product changes, so no document differs")
    for line in note_lines(report):
        yield from ("", *wrapped_lines(visible_line(line), WIDTH))


def headline(diff: ProductDiff) -> str:
    """How many documents differ, of how many roots."""
    of = counted(diff.compared, "root")
    if diff.share < 1:
        of += f" (a sample: {diff.share:.1%} of {diff.roots:,})"
    if diff.new:
        return f"a new product, {counted(diff.after.documents, 'document')} of {of}"
    return f"{counted(diff.differ, 'document')} of {of} {'differs' if diff.differ == 1 else 'differ'}"


def group_text(group: ChangeGroup) -> str:
    """The kind of a group, and where."""
    return f"{group.kind} {group.place}".rstrip()


def example(group: ChangeGroup) -> str:
    """The first document of a group, with its values."""
    if isinstance(group.before, list) and isinstance(group.after, list):
        return f"{group.key}: {len(group.before):,} -> {counted(len(group.after), 'element')}"
    before = "" if group.kind in WITHOUT_BEFORE else _value(group.before)
    after = "" if group.kind in WITHOUT_AFTER else _value(group.after)
    return f"{group.key}: {' -> '.join(filter(None, (before, after)))}"


def size_lines(diff: ProductDiff) -> Iterator[str]:
    """The sizes of documents, before and after."""
    if not diff.new:
        yield f"before: {_sizes(diff.before)}"
    yield f"{'documents' if diff.new else 'after'}: {_sizes(diff.after)}"


def messages_line(diff: ProductDiff, prices: Prices) -> str:
    """The messages that an apply sends, and their price."""
    if not diff.publishes:
        return (
            "apply sends no message, because only an entity changes: a document changes with its next event, or with "
            f"`statestore republish {diff.product}`"
        )
    about, tombstones = ("about ", " of the sample") if diff.share < 1 else ("", "")
    gone = diff.tombstones + diff.left
    parts = f" ({counted(gone, 'tombstone')}{tombstones})" if gone else ""
    dollars = diff.dollars(prices)
    price = "under $0.01" if dollars < Decimal("0.01") else f"at most ${dollars:,.2f}"
    when = " once the product is resumed" if diff.paused else ""
    return f"apply sends{when} {about}{counted(diff.messages, 'message')}{parts}, for {price}"


def join_lines(diff: ProductDiff) -> Iterator[str]:
    """The joins that find nothing for some rows, or several rows where one is wanted."""
    for join in diff.joins:
        if join.nothing or join.several:
            yield f"join {join.path}: {join_text(join)}"


def join_text(join: JoinFinding) -> str:
    """The findings of a join in words."""
    if join.nothing == join.asked:
        return f"finds no row of {join.entity} for any of {join.asked:,} rows above"
    found = [f"no row of {join.entity} for {join.nothing:,} of {join.asked:,}"] if join.nothing else []
    found += (
        [f"several rows for {join.several:,} of {join.asked:,}, of which a `one` shows the first"]
        if join.several
        else []
    )
    return f"finds {'; '.join(found)}"


def note_lines(report: DiffReport) -> Iterator[str]:
    """The notes of the report, and the seed of its sample."""
    yield from report.notes
    if report.seed is not None:
        yield f"this was a sample: --seed {report.seed} takes the same one"


def diff_json(report: DiffReport, prices: Prices) -> dict[str, object]:
    """The diff as a value of JSON."""
    products = [
        {**asdict(diff), "share": diff.share, "messages": diff.messages, "dollars": float(diff.dollars(prices))}
        for diff in report.products
    ]
    return {"products": products, "notes": list(report.notes), "seed": report.seed}


def _sizes(sizes: DocumentSizes) -> str:
    if not sizes.documents:
        return "no documents"
    mean = sizes.total / sizes.documents
    return f"{sizes.documents:,} of {mean:,.0f} bytes on average; the largest has {sizes.largest:,}: {sizes.key}"


def _value(value: Value) -> str:
    return shortened(canonical_json.dumps(value), LONGEST)


def markdown_lines(plan: Sequence[str], report: DiffReport | None, prices: Prices) -> Iterator[str]:
    """The Markdown. `plan`: the lines of the plan, its summary first."""
    yield from ("## statestore plan", "", "```text", *plan, "```")
    for diff in report.products if report else ():
        yield from ("", f"### `{diff.product}`", "", _markdown(headline(diff)))
        if diff.groups and not diff.new:
            yield from _markdown_table(diff)
        yield ""
        yield from (
            f"- {_markdown(line)}" for line in (*size_lines(diff), messages_line(diff, prices), *join_lines(diff))
        )
    if report and not report.products:
        yield from ("", "No product changes, so no document differs.")
    for line in note_lines(report) if report else ():
        yield from ("", _markdown(line))


def _markdown_table(diff: ProductDiff) -> Iterator[str]:
    yield from ("", "| documents | what differs | example |", "|---:|---|---|")
    for group in diff.groups[:SHOWN_GROUPS]:
        yield f"| {group.documents:,} | {_markdown(group_text(group))} | {_markdown(example(group))} |"
    if more := len(diff.groups[SHOWN_GROUPS:]):
        yield f"| | and {more} more groups | |"


def _markdown(text: str) -> str:
    """Text of others in Markdown: no character of it has a meaning there."""
    return re.sub(r"([\\`*_{}\[\]<>()#|~!@&])", r"\\\1", visible_line(text))

"""The diff of `plan --diff` as text and as JSON: what differs in documents, the messages that `apply` sends, and the joins."""

from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal

from processor.cli.printing.colour import coloured
from processor.cli.printing.plan_text import WIDTH, counted
from processor.text import shortened, visible_line, wrapped_lines
from processor.tools.inspect.diff import ChangeGroup, DiffReport, DocumentSizes, JoinFinding, ProductDiff
from processor.tools.inspect.prices import Prices
from processor.values import canonical_json
from processor.values.record import Value

LONGEST = 100
"""Characters of an example's value."""
SHOWN_GROUPS = 20
"""The text shows so many groups of a product; --json shows all."""
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
    dollars = _dollars(diff, prices)
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
        {**asdict(diff), "share": diff.share, "messages": diff.messages, "dollars": float(_dollars(diff, prices))}
        for diff in report.products
    ]
    return {"products": products, "notes": list(report.notes), "seed": report.seed}


def _dollars(diff: ProductDiff, prices: Prices) -> Decimal:
    """The price of a publication: the reads of its documents; and for each root the row and the ledger read, for each message the
    ledger written."""
    if not diff.publishes:
        return Decimal(0)
    reads = Decimal(diff.read_units / diff.share) + 2 * diff.roots
    return prices.dollars(diff.messages, reads) / 1_000_000


def _sizes(sizes: DocumentSizes) -> str:
    if not sizes.documents:
        return "no documents"
    mean = sizes.total / sizes.documents
    return f"{sizes.documents:,} of {mean:,.0f} bytes on average; the largest has {sizes.largest:,}: {sizes.key}"


def _value(value: Value) -> str:
    return shortened(canonical_json.dumps(value), LONGEST)

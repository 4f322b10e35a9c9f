"""`statestore row`, `rows` and `keys`: show a stored row, and list rows of an entity or keys of documents, a page at a time."""

import argparse
import shlex
import sys

from processor.cli.arguments import positive
from processor.cli.arrival import add_time, arrivals
from processor.cli.chosen_plan import stored_boundaries, stored_state
from processor.cli.chosen_row import KEY_TEXT, chosen_entity, typed_key
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, reachable_settings, require_settings
from processor.engine.plan.planning import product_of
from processor.engine.protocol.ledger import group_key, group_partition
from processor.text import visible_line, visible_lines
from processor.tools.inspect.rows import (
    absence_text,
    document_keys,
    former_topics,
    origin_of,
    page_of,
    recorded_rows,
    row_lines,
    row_object,
)
from processor.values import canonical_json
from processor.values.recorded_topics import to_line
from statestore import keys
from statestore.store import Page

USUAL = 100
"""How many items a list reads without --limit."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "show a stored row: its columns, its slots, and the record that wrote it last"
    row = verbs.add_parser("row", help=text, usage="%(prog)s [flags] ENTITY KEY")
    row.add_argument("entity", metavar="ENTITY")
    row.add_argument("key", metavar="KEY", help=f"the row's key: {KEY_TEXT}")
    row.add_argument("--json", action="store_true", help="print one JSON object")
    add_time(row)
    add_settings(row, *REGISTRY, *TABLE, *KAFKA)
    row.set_defaults(run=run_row)
    text = "list stored rows of an entity, as recorded topics that `try` reads"
    rows = verbs.add_parser("rows", help=text, usage="%(prog)s [flags] ENTITY")
    rows.add_argument("entity", metavar="ENTITY")
    listed = verbs.add_parser("keys", help="list the keys of a product's documents", usage="%(prog)s [flags] PRODUCT")
    listed.add_argument("product", metavar="PRODUCT")
    for parser, run, what in ((rows, run_rows, "rows"), (listed, run_keys, "keys")):
        text = f"read at most N {what}, with deleted ones ({USUAL})"
        parser.add_argument("--limit", metavar="N", type=positive, default=USUAL, help=text)
        parser.add_argument("--after", metavar="PLACE", help="go on behind this place, which the verb printed")
        add_settings(parser, *REGISTRY, *TABLE)
        parser.set_defaults(run=run)


def run_row(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, stored_state(settings) as (plan, store):
        if options.time:
            require_settings(settings, "bootstrap_servers")
        entity = chosen_entity(plan, options.entity)
        key = entity.key(keys.encode(typed_key(entity, options.key)) or "")
        item = store.get([key]).get(key)
        if item is None:
            print(visible_line(absence_text(entity, key.sk)), file=sys.stderr)
            return 1
        boundaries = stored_boundaries(settings, plan)
        topics = former_topics(boundaries)
        asked = [origin_of(item, entity, topics)] if options.time else []
        came = list(arrivals(settings, asked, boundaries).values())
    if options.json:
        found = row_object(item, entity, topics) | ({"came": came[0]} if came else {})
        print(visible_line(canonical_json.dumps(found)))
    else:
        print(visible_lines([*row_lines(item, entity, topics), *(f"  came {text}" for text in came)]))
    return 0


def run_rows(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, stored_state(settings) as (plan, store):
        entity = chosen_entity(plan, options.entity)
        after = entity.key(options.after) if options.after else None
        page = page_of(store, entity.partitions(), after, options.limit)
        topics = former_topics(stored_boundaries(settings, plan))
    return _print_page([to_line(record) for record in recorded_rows(page.items, entity, topics)], page, "deleted")


def run_keys(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, stored_state(settings) as (plan, store):
        product = product_of(plan, options.product)
        after = group_key(product.ledger, options.after) if options.after else None
        page = page_of(store, [group_partition(product.ledger)], after, options.limit)
    return _print_page(list(document_keys(page.items, product.number)), page, "without a document")


def _print_page(lines: list[str], page: Page, without: str) -> int:
    """Prints the lines of a page, and on standard error how many items have none, and how to go on. `without`: why an item has no
    line."""
    for line in lines:
        print(visible_line(line))
    missing = len(page.items) - len(lines)
    read = f"{len(page.items)} read" + (f", {missing} of them {without}" if missing else "")
    if page.after is not None:
        place = shlex.quote(page.after.sk)
        print(visible_line(f"{read}, and there may be more: add --after {place}"), file=sys.stderr)
    elif missing:
        print(read, file=sys.stderr)
    return 0

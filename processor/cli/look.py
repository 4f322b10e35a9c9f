"""`statestore get`, `explain`, `row`, `rows`, `keys` and `schema`: show a document and why it is as it is, how a product reads
the table, stored rows, keys of documents, and the schema of documents."""

import argparse
import json
import shlex
from collections import Counter
from dataclasses import asdict
from time import time
from typing import get_args

from processor.cli.choices import (
    DOCUMENT_KEY,
    KEY_TEXT,
    TIME,
    arrivals,
    chosen_entity,
    chosen_plan,
    chosen_wait,
    requested_document,
    stored_boundaries,
    stored_state,
    typed_key,
)
from processor.cli.options import KAFKA, REGISTRY, TABLE, reachable_settings, require_settings
from processor.cli.printing.output import UNFIT_LINE, document_text, warn
from processor.cli.verb import (
    AUTHORS,
    ENTITY,
    JSON,
    PRETTY,
    PRODUCT,
    STORED_DEFINITIONS,
    Flag,
    flag,
    one_of,
    positive,
    verb,
)
from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.plan.planning import product_of
from processor.engine.protocol.gates import wait_json, wait_lines, wait_text
from processor.engine.protocol.ledger import group_key, group_partition, read_entry
from processor.engine.rounds.publish_stage import encoded_document
from processor.errors import StatestoreError
from processor.language.definitions.describe import definition_lines, describe_product
from processor.language.product.avro import NAMES_CURE, avro_schema
from processor.language.product.document_type import document_schema, index_mapping
from processor.language.product.product import DocumentFormat
from processor.language.product.sql_printer import product_sql
from processor.text import visible, visible_line, visible_lines
from processor.tools.inspect.explain import (
    explain,
    explanation_lines,
    lineage,
    lineage_lines,
    lost_lines,
    mermaid_lines,
)
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


@verb(
    "get",
    AUTHORS,
    PRODUCT,
    DOCUMENT_KEY,
    flag("--json", "print one JSON object with product, key, document, waits"),
    PRETTY,
    settings=(*REGISTRY, *TABLE),
    usage="PRODUCT KEY",
)
def get(options: argparse.Namespace) -> int:
    """Show a document, assembled from the state as it is now."""
    with reachable_settings(options) as settings, requested_document(options, settings) as requested:
        plan, product, root, runner = requested
        (body,) = runner.run([encoded_document(plan, product, root, Counter())])
        lost = list(lost_lines(runner.run([lineage(plan, product, root, {})])[0])) if _may_lack(plan, product) else []
        published = read_entry(runner.store.get([at := group_key(product.ledger, root)]).get(at), product.number)
        wait = chosen_wait(requested, body)
    if wait is not None:
        warn(
            f"{options.product} {options.key}: {wait_text(wait, time())}; `statestore explain {options.product} KEY` says why"
        )
    if published.unfit:
        warn(f"{options.product} {options.key}: {UNFIT_LINE}")
    warn(*(f"{options.product} {options.key}: {line}" for line in lost))
    if options.json:
        document = None if body.value is None else canonical_json.loads(body.value)
        key = canonical_json.loads(body.key) if body.key else options.key
        found = {"product": options.product, "key": key, "document": document, "waits": wait is not None}
        print(visible_line(canonical_json.dumps(found)))
        return int(body.value is None)
    if body.value is None:
        why = f"`statestore explain {options.product} KEY` says why"
        warn(f"{options.product} has no document for {options.key}; {why}")
        return 1
    print(document_text(body.value, options))
    return 0


def _may_lack(plan: Plan, product: ProductPlan) -> bool:
    """Whether rows of the product may lack values because their entity keeps declared columns only."""
    names = {product.product.root, *(node.join.entity for node in product.nodes)}
    return not all(plan.entities[name].entity.keeps_undeclared for name in names)


@verb(
    "explain",
    AUTHORS,
    PRODUCT,
    flag("key", DOCUMENT_KEY.given["help"], "KEY", nargs="?"),
    STORED_DEFINITIONS,
    one_of(
        flag("--sql", "show the one PostgreSQL query that the documents equal"),
        flag("--mermaid", "print the tree of joins as a Mermaid diagram"),
        flag("--tree", "print the product as a tree, also one given as SQL"),
    ),
    JSON,
    PRETTY,
    TIME,
    settings=(*REGISTRY, *TABLE, *KAFKA),
    usage="PRODUCT [KEY]",
)
def explain_product(options: argparse.Namespace) -> int:
    """Show a product's access paths, its SQL (--sql), or why a document is as it is (KEY)."""
    if options.key is not None:
        if options.definitions or options.sql or options.mermaid or options.tree:
            raise StatestoreError(
                "KEY names a document of the state: leave --definitions, --sql, --mermaid and --tree out"
            )
        return _explain_document(options)
    plan = chosen_plan(options)
    product = product_of(plan, options.product)
    if options.sql:
        sql = product_sql(product.product, plan.declared_entities)
        print(json.dumps({"product": options.product, "sql": sql}) if options.json else visible(sql + ";"))
    elif options.mermaid:
        diagram = visible_lines(mermaid_lines(plan, product))
        print(json.dumps({"product": options.product, "mermaid": diagram}) if options.json else diagram)
    elif options.tree:
        tree = describe_product(product.product)
        print(json.dumps(tree) if options.json else visible_lines(definition_lines(tree)))
    else:
        explained = explain(plan, product)
        print(json.dumps(asdict(explained), indent=2) if options.json else visible_lines(explanation_lines(explained)))
    return 0


def _explain_document(options: argparse.Namespace) -> int:
    """Prints the document and its lineage. Returns 1 without a document, as `get` does."""
    with reachable_settings(options) as settings, requested_document(options, settings) as requested:
        if options.time:
            require_settings(settings, "bootstrap_servers")
        plan, product, root, runner = requested
        boundaries = stored_boundaries(settings, plan)
        (body,) = runner.run([encoded_document(plan, product, root, Counter())])
        (found,) = runner.run([lineage(plan, product, root, former_topics(boundaries))])
        came = arrivals(settings, found.origins() if options.time else (), boundaries)
        wait = chosen_wait(requested, body, settings)
    if options.json:
        document = None if body.value is None else canonical_json.loads(body.value)
        times = {"came": {str(origin): text for origin, text in came.items()}} if options.time else {}
        waits = {"waits": None if wait is None else wait_json(wait)}
        print(visible_line(canonical_json.dumps({"document": document, **waits, **asdict(found), **times})))
        return int(document is None)
    if body.value is None:
        print(visible_line(f"{options.product} has no document for {options.key}: {found.reason}"))
    else:
        print(document_text(body.value, options))
    for line in wait_lines(wait, time()) if wait else ():
        print(visible_line(line))
    for line in lineage_lines(found, came):
        print(visible_line(line))
    return int(body.value is None)


USUAL = 100
"""How many items a list reads without --limit."""


@verb(
    "row",
    AUTHORS,
    ENTITY,
    flag("key", f"the row's key: {KEY_TEXT}", "KEY"),
    JSON,
    TIME,
    settings=(*REGISTRY, *TABLE, *KAFKA),
    usage="ENTITY KEY",
)
def row(options: argparse.Namespace) -> int:
    """Show a stored row: its columns, its slots, and the record that wrote it last."""
    with reachable_settings(options) as settings, stored_state(settings) as (plan, store):
        if options.time:
            require_settings(settings, "bootstrap_servers")
        entity = chosen_entity(plan, options.entity)
        key = entity.key(keys.encode(typed_key(entity.entity, options.key)) or "")
        item = store.get([key]).get(key)
        if item is None:
            warn(absence_text(entity, key.sk))
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


def _page_flags(what: str) -> tuple[Flag, Flag]:
    text = f"read at most N {what}, with deleted ones ({USUAL})"
    return (
        flag("--limit", text, "N", type=positive, default=USUAL),
        flag("--after", "go on behind this place, which the verb printed", "PLACE"),
    )


@verb("rows", AUTHORS, ENTITY, *_page_flags("rows"), settings=(*REGISTRY, *TABLE), usage="ENTITY")
def rows(options: argparse.Namespace) -> int:
    """List stored rows of an entity, as recorded topics that `try` reads."""
    with reachable_settings(options) as settings, stored_state(settings) as (plan, store):
        entity = chosen_entity(plan, options.entity)
        after = entity.key(options.after) if options.after else None
        page = page_of(store, entity.partitions(), after, options.limit)
        topics = former_topics(stored_boundaries(settings, plan))
    return _print_page([to_line(record) for record in recorded_rows(page.items, entity, topics)], page, "deleted")


@verb("keys", AUTHORS, PRODUCT, *_page_flags("keys"), settings=(*REGISTRY, *TABLE), usage="PRODUCT")
def listed_keys(options: argparse.Namespace) -> int:
    """List the keys of a product's documents."""
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
        warn(f"{read}, and there may be more: add --after {place}")
    elif missing:
        warn(read)
    return 0


@verb(
    "schema",
    AUTHORS,
    PRODUCT,
    one_of(
        flag("--for", "the mapping that `land` gives an index of OpenSearch", dest="index", choices=["opensearch"]),
        flag(
            "--format",
            "json: JSON Schema, avro: the schema that the job registers (default: the product's format)",
            choices=get_args(DocumentFormat),
        ),
    ),
    STORED_DEFINITIONS,
    settings=REGISTRY,
)
def schema(options: argparse.Namespace) -> int:
    """Print the schema of a product's documents."""
    plan = chosen_plan(options)
    product = product_of(plan, options.product).product
    write = avro_schema if (options.format or product.format) == "avro" else document_schema
    if options.index:
        write = index_mapping
    try:
        made = write(product, plan.declared_entities)
    except ValueError as error:
        raise StatestoreError(f"product {product.name}: {error}; {NAMES_CURE}") from None
    print(visible(json.dumps(made, indent=2, ensure_ascii=False)))
    return 0

"""`statestore explain`: shows a product's access paths, its SQL, its picture, or why one document is as it is."""

import argparse
import json
from collections import Counter
from dataclasses import asdict
from time import time

from processor.cli.arrival import add_time, arrivals
from processor.cli.chosen_document import add_key, requested_document
from processor.cli.chosen_plan import chosen_plan, stored_boundaries
from processor.cli.chosen_wait import chosen_wait
from processor.cli.options import (
    KAFKA,
    REGISTRY,
    TABLE,
    add_definitions,
    add_settings,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.document_text import add_pretty, document_text
from processor.engine.plan.planning import product_of
from processor.engine.protocol.gates import wait_json, wait_lines
from processor.engine.rounds.publish_stage import encoded_document
from processor.errors import StatestoreError
from processor.language.product.sql_printer import product_sql
from processor.text import visible, visible_line, visible_lines
from processor.tools.inspect.explain import explain, explanation_lines, mermaid_lines
from processor.tools.inspect.lineage import lineage, lineage_lines
from processor.tools.inspect.rows import former_topics
from processor.values import canonical_json


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "show a product's access paths, its SQL (--sql), or why a document is as it is (KEY)"
    parser = verbs.add_parser("explain", help=text, usage="%(prog)s [flags] PRODUCT [KEY]")
    parser.add_argument("product", metavar="PRODUCT")
    add_key(parser, required=False)
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--sql", action="store_true", help="show the one PostgreSQL query that the documents equal")
    form.add_argument("--mermaid", action="store_true", help="print the tree of joins as a Mermaid diagram")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_pretty(parser)
    add_time(parser)
    add_settings(parser, *REGISTRY, *TABLE, *KAFKA)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.key is not None:
        if options.definitions or options.sql or options.mermaid:
            raise StatestoreError("KEY names a document of the state: leave --definitions, --sql and --mermaid out")
        return _explain_document(options)
    plan = chosen_plan(options)
    product = product_of(plan, options.product)
    if options.sql:
        sql = product_sql(product.product, plan.declared_entities)
        print(json.dumps({"product": options.product, "sql": sql}) if options.json else visible(sql + ";"))
    elif options.mermaid:
        diagram = visible_lines(mermaid_lines(plan, product))
        print(json.dumps({"product": options.product, "mermaid": diagram}) if options.json else diagram)
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
        wait = chosen_wait(requested, body.value, settings)
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

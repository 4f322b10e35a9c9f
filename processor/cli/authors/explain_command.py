"""`statestore explain`: shows a product's access paths, its SQL, or one document with the rows that it is made of."""

import argparse
import json
from collections import Counter
from dataclasses import asdict

from processor.cli.chosen_document import add_key, requested_document
from processor.cli.chosen_plan import chosen_plan
from processor.cli.options import REGISTRY, TABLE, add_definitions, add_settings, reachable_settings
from processor.cli.printing.visible_text import visible, visible_line, visible_lines
from processor.errors import StatestoreError
from processor.inspect.access_paths import explain, explanation_lines
from processor.inspect.lineage import lineage, lineage_lines
from processor.plan.planning import product_of
from processor.product.sql_printer.product_query import product_sql
from processor.records import canonical_json
from processor.rounds.publish_part import encoded_document


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "explain", help="show a product's access paths, its SQL (--sql), or the rows of a document (KEY)"
    )
    parser.add_argument("product", metavar="PRODUCT")
    add_key(parser, required=False)
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    parser.add_argument("--sql", action="store_true", help="show the one PostgreSQL query that the documents equal")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser, *REGISTRY, *TABLE)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.key is not None:
        if options.definitions or options.sql:
            raise StatestoreError("KEY names a document of the state: leave --definitions and --sql out")
        return _explain_document(options)
    plan = chosen_plan(options)
    product = product_of(plan, options.product)
    if options.sql:
        sql = product_sql(product.product, {name: known.entity for name, known in plan.entities.items()})
        print(json.dumps({"product": options.product, "sql": sql}) if options.json else visible(sql + ";"))
        return 0
    explained = explain(plan, product)
    print(json.dumps(asdict(explained), indent=2) if options.json else visible_lines(explanation_lines(explained)))
    return 0


def _explain_document(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, requested_document(options, settings) as requested:
        plan, product, root, runner = requested
        (body,) = runner.run([encoded_document(plan, product, root, Counter())])
        (rows,) = runner.run([lineage(plan, product, root)])
    if body.value is None:
        raise StatestoreError(f"{options.product} has no document for {options.key}")
    if options.json:
        document = canonical_json.loads(body.value)
        print(visible_line(canonical_json.dumps({"document": document, "rows": [asdict(row) for row in rows]})))
    else:
        print(visible_lines([body.value.decode(), *lineage_lines(rows)]))
    return 0

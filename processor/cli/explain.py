"""`statestore explain`: a product as its SQL, as the tree of its access paths, or one document with the rows behind it."""

import argparse
import json
from collections import Counter
from dataclasses import asdict

from processor.batch import document_body
from processor.cli.get import add_key, asked_of
from processor.cli.options import add_definitions, add_settings, addressed
from processor.cli.plans import known_plan
from processor.errors import StatestoreError
from processor.explain import explain, lines
from processor.lineage import lineage
from processor.lineage import lines as lineage_lines
from processor.model import canonical_json
from processor.model.sql import product_sql
from processor.planning import product_of


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("explain", help="a product's access paths, its SQL (--sql), or what is behind a document")
    parser.add_argument("product")
    add_key(parser, required=False)
    add_definitions(parser, required=False, otherwise="what the registry holds")
    parser.add_argument("--sql", action="store_true", help="the one PostgreSQL query that the documents equal")
    parser.add_argument("--json", action="store_true")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.key is not None:
        if options.definitions or options.sql:
            raise StatestoreError("a KEY asks the state, by the registry: leave --definitions and --sql out")
        return _document(options)
    plan = known_plan(options)
    product = product_of(plan, options.product)
    if options.sql:
        sql = product_sql(product.product, {name: known.entity for name, known in plan.entities.items()})
        print(json.dumps({"product": options.product, "sql": sql}) if options.json else sql + ";")
        return 0
    explained = explain(plan, product)
    print(json.dumps(asdict(explained), indent=2) if options.json else "\n".join(lines(explained)))
    return 0


def _document(options: argparse.Namespace) -> int:
    with addressed(options) as settings:
        plan, product, root, lockstep = asked_of(options, settings)
        (body,) = lockstep.run([document_body(plan, product, root, Counter())])
        (behind,) = lockstep.run([lineage(plan, product, root)])
    if body.value is None:
        raise StatestoreError(f"{options.product} has no document for {options.key}")
    if options.json:
        document = canonical_json.loads(body.value)
        print(canonical_json.dumps({"document": document, "rows": [asdict(row) for row in behind]}))
    else:
        print("\n".join([body.value.decode(), *lineage_lines(behind)]))
    return 0

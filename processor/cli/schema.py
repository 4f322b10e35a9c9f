"""`statestore schema`: the JSON Schema of a product's documents."""

import argparse
import json

from processor.cli.options import add_definitions, add_settings
from processor.cli.plans import known_plan
from processor.model.json_schema import document_schema
from processor.planning import product_of


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("schema", help="the JSON Schema of a product's documents")
    parser.add_argument("product")
    add_definitions(parser, required=False, otherwise="what the registry holds")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    plan = known_plan(options)
    product = product_of(plan, options.product).product
    schema = document_schema(product, {name: known.entity for name, known in plan.entities.items()})
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0

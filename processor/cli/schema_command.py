"""`statestore schema`: prints the JSON Schema of a product's documents."""

import argparse
import json

from processor.cli.chosen_plan import chosen_plan
from processor.cli.options import REGISTRY, add_definitions, add_settings
from processor.cli.visible_text import visible
from processor.plan.planning import product_of
from processor.product.json_schema import document_schema


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("schema", help="print the JSON Schema of a product's documents")
    parser.add_argument("product", metavar="PRODUCT")
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    plan = chosen_plan(options)
    product = product_of(plan, options.product).product
    schema = document_schema(product, {name: known.entity for name, known in plan.entities.items()})
    print(visible(json.dumps(schema, indent=2, ensure_ascii=False)))
    return 0

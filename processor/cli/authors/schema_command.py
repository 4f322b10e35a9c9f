"""`statestore schema`: prints the JSON Schema or the Avro schema of a product's documents, or an index's mapping for them."""

import argparse
import json
from typing import get_args

from processor.cli.chosen_plan import chosen_plan
from processor.cli.options import REGISTRY, add_definitions, add_settings
from processor.engine.plan.planning import product_of
from processor.errors import StatestoreError
from processor.language.product.avro import NAMES_CURE, avro_schema
from processor.language.product.document_type import document_schema, index_mapping
from processor.language.product.product import DocumentFormat
from processor.text import visible


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("schema", help="print the schema of a product's documents")
    parser.add_argument("product", metavar="PRODUCT")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--for", dest="index", choices=["opensearch"], help="the mapping that `land` gives an index of OpenSearch"
    )
    kind.add_argument(
        "--format",
        choices=get_args(DocumentFormat),
        help="json: JSON Schema, avro: the schema that the job registers (default: the product's format)",
    )
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    plan = chosen_plan(options)
    product = product_of(plan, options.product).product
    write = avro_schema if (options.format or product.format) == "avro" else document_schema
    if options.index:
        write = index_mapping
    try:
        schema = write(product, plan.declared_entities)
    except ValueError as error:
        raise StatestoreError(f"product {product.name}: {error}; {NAMES_CURE}") from None
    print(visible(json.dumps(schema, indent=2, ensure_ascii=False)))
    return 0

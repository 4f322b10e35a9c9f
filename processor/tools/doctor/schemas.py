"""The schema registry of Avro and Protobuf, where the settings name one, and the products that need it."""

from collections.abc import Iterator

from processor.environment.settings.resolve_secrets import resolve_schema_registry
from processor.finding import Checks, Finding, failure, ok
from processor.job.kafka.schemas import avro_products, open_client
from processor.tools.doctor.registry import existing_registry
from processor.tools.doctor.surroundings import Surroundings

CHECKS = Checks()
SCHEMAS = "correct [schema_registry] in the settings file (docs/schema-registry.md), or start the registry"


@CHECKS.check("schemas", "the registry of Avro and Protobuf", cure=SCHEMAS)
def check_schema_registry(around: Surroundings) -> Iterator[Finding]:
    """Whether the registry takes the settings, and the packages of the formats are here."""
    access = resolve_schema_registry(around.settings.schema_registry)
    if not access:
        yield ok("the settings name none, so the job reads JSON without a registry")
        return
    client = open_client(access)
    try:
        yield ok(f"{dict(access)['url']} knows {', '.join(client.kinds())}")
    finally:
        client.close()


@CHECKS.check("avro products", "whether Avro documents have a registry", cure=SCHEMAS, needs=("definitions", "schemas"))
def check_avro_products(around: Surroundings) -> Iterator[Finding]:
    """Whether the products whose documents are Avro have a registry for their schemas."""
    existing_registry(around)
    products = avro_products(around.plan)
    if not products:
        yield ok("the documents of all products are JSON")
        return
    names = ", ".join(sorted(product.name for product in products))
    if around.settings.schema_registry:
        yield ok(f"the job registers the schemas of {names}")
    else:
        yield failure(
            f"the documents of {names} are Avro, and the settings name no schema registry: the job stops these products",
            "give [schema_registry] in the settings file (docs/schema-registry.md)",
        )

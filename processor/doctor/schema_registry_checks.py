"""The schema registry of Avro and Protobuf, where the settings name one."""

from collections.abc import Iterator

from processor.doctor.finding import Finding, ok
from processor.doctor.surroundings import Surroundings
from processor.job.schema_registry.open_schemas import open_client
from processor.settings.resolve_secrets import resolve_schema_registry


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

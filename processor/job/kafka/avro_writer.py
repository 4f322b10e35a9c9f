"""Writes bodies of Avro, by fastavro."""

from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_writer

from processor.values import canonical_json


@lru_cache(maxsize=1000)
def avro_writer(schema: str) -> Callable[[Any], bytes]:
    """The function that writes a body by the JSON text of a schema. It raises ValueError or TypeError for a value that does not
    fit."""
    parsed = parse_schema(canonical_json.loads(schema))

    def write(datum: Any) -> bytes:
        body = BytesIO()
        schemaless_writer(body, parsed, datum)
        return body.getvalue()

    return write

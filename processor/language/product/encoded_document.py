"""Encodes the document that a renderer makes of a root row, as the product's topic has it: JSON, or framed Avro."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from processor.language.product.avro import avro_datum, avro_schema_text
from processor.language.product.document import GONE, Match, Renderer
from processor.language.product.product import Product
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.framing import framed
from processor.values.reasons import Mismatch
from processor.values.record import Value

Encode = Callable[[Value], bytes]
"""Encodes a document. Raises ValueError or TypeError for one that the format does not hold."""


class EncodedDocument(NamedTuple):
    """A document as it goes out: the message's key and value; value None where there is no document. `misfit`: why Avro does not
    hold the document, without values of rows; then the value is JSON, and does not go out."""

    key: str
    value: bytes | None
    misfit: str = ""


class DocumentEncoder(NamedTuple):
    """Makes the documents of a product, and encodes them. `encode`: None for JSON."""

    renderer: Renderer
    encode: Encode | None = None

    def encoded(self, top: Match, key: str) -> EncodedDocument:
        """The document of a root row. `key`: of its message."""
        if self.encode is None:
            text = self.renderer.text(top)
            return EncodedDocument(key, None if text is GONE else text.encode())
        document = self.renderer.document(top)
        if document is GONE:
            return EncodedDocument(key, None)
        try:
            return EncodedDocument(key, self.encode(document))
        except (ValueError, TypeError) as error:
            misfit = error.plain if isinstance(error, Mismatch) else type(error).__name__
            return EncodedDocument(key, canonical_json.encode(document), misfit)


def framed_avro(
    product: Product,
    entities: Mapping[str, Entity],
    number: int,
    open_writer: Callable[[str], Callable[[Any], bytes]],
) -> Encode:
    """Avro behind the number of its schema. `open_writer`: makes the function that writes bodies by the text of a schema."""
    to_datum, write = avro_datum(product, entities).write, open_writer(avro_schema_text(product, entities))
    return lambda document: framed(number, write(to_datum(document)))


def json_of_avro(product: Product, entities: Mapping[str, Entity]) -> Encode:
    """JSON of the documents that Avro holds, for readers without a schema registry."""
    to_datum = avro_datum(product, entities).write

    def encode(document: Value) -> bytes:
        to_datum(document)
        return canonical_json.encode(document)

    return encode

"""Compares the steps with Postgres: the documents that `try` publishes, and the documents of the product's SQL."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from processor.inspect.oracle import oracle
from processor.product.product import Definitions
from processor.records import canonical_json
from processor.records.record import Record
from tests.integration.product.published import last_documents, plain

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Both = Callable[[Definitions, Rows], dict[str, Any]]


@pytest.fixture(scope="module")
def both(postgres_url: str) -> Both:
    """A function that answers the first product's documents by key, from Postgres, after it compared them with the steps'."""

    def answer(definitions: Definitions, rows: Rows) -> dict[str, Any]:
        (product, *_) = definitions.products.values()
        with oracle(postgres_url, f"both_{uuid.uuid4().hex}", definitions.entities) as tables:
            tables.load(rows)
            truth = tables.documents(product)
        assert documents(definitions, rows) == truth
        return truth

    return answer


def documents(definitions: Definitions, rows: Rows) -> dict[str, Any]:
    """The last documents of the first product, as the steps publish them."""
    (product, *_) = definitions.products
    records = (
        Record(topic=name, partition=0, offset=n, key=None, value=canonical_json.encode(plain(row)))
        for name, table in rows.items()
        for n, row in enumerate(table)
    )
    return last_documents(definitions, records)[product]

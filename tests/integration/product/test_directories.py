"""All products of a directory over one history equal Postgres: the products of each example, and a hundred generated ones."""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.definitions import generate_definitions
from benchmarks.steps import generate_records
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from tests.integration.conftest import SECRETS
from tests.integration.product.published import last_documents

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[3] / "examples").glob("*/topics.jsonl"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_documents_of_an_example_equal_those_of_postgres(example: Path, postgres_url: str) -> None:
    records = list(read_records(str(example / "topics.jsonl")))
    agree(postgres_url, load(read_directory(example)), records, size=2)


def test_the_documents_of_a_hundred_products_equal_those_of_postgres(postgres_url: str) -> None:
    agree(postgres_url, load(generate_definitions(100)), generate_records(600, 40), size=100)


def agree(url: str, definitions: Definitions, records: list[Record], size: int) -> None:
    """Asserts that every product's documents, published in batches of `size`, equal its SQL over the last rows."""
    published = last_documents(definitions, records, size)
    with oracle(url, f"directory_{uuid.uuid4().hex}", definitions.entities, SECRETS) as tables:
        tables.load({entity: rows(entity, records) for entity in definitions.entities})
        for product in definitions.products.values():
            answered = {
                key: canonical_json.loads(text) for key, text in tables.answer(product, 0)
            }  # a trial begins at 1970
            assert published[product.name] == answered, product.name


def rows(entity: str, records: Iterable[Record]) -> list[Any]:
    """The last row of each key."""
    last = {record.key: record.value for record in records if record.topic == entity}
    return [canonical_json.loads(value) for value in last.values() if value is not None]

"""All products of a directory over one history, against Postgres: those of each example, and a hundred generated ones."""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.definitions import generated
from benchmarks.steps import history
from processor.definitions.load import load, read_directory
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.product import Definitions
from processor.oracle import oracle
from processor.planning import plan_alone
from processor.recorded import read_records
from processor.settings import Settings
from processor.trial import Trial, batches

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[3] / "examples").glob("*/topics.jsonl"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_documents_of_an_example_are_what_postgres_says(example: Path, postgres_url: str) -> None:
    records = list(read_records(str(example / "topics.jsonl")))
    agree(postgres_url, load(read_directory(example)), records, size=2)


def test_the_documents_of_a_hundred_products_are_what_postgres_says(postgres_url: str) -> None:
    agree(postgres_url, load(generated(100)), history(600, 40), size=100)


def agree(url: str, definitions: Definitions, records: list[Record], size: int) -> None:
    """Every product's documents, published over batches of `size`, are those of its SQL over the last rows."""
    published = documents(definitions, records, size)
    with oracle(url, f"directory_{uuid.uuid4().hex}", definitions.entities) as tables:
        tables.load({entity: rows(entity, records) for entity in definitions.entities})
        for product in definitions.products.values():
            assert published[product.name] == tables.documents(product), product.name


def rows(entity: str, records: Iterable[Record]) -> list[Any]:
    """The last row of each key."""
    last = {record.key: record.value for record in records if record.topic == entity}
    return [canonical_json.loads(value) for value in last.values() if value is not None]


def documents(definitions: Definitions, records: list[Record], size: int) -> dict[str, dict[str, Any]]:
    """The last documents by product and key."""
    trial = Trial(plan=plan_alone(definitions, 20), settings=Settings())
    for chunk in batches(records, size):
        trial.batch(chunk)
        trial.settle()
    trial.finish()
    assert not trial.rejects.messages
    last: dict[str, dict[str, Any]] = {name: {} for name in definitions.products}
    for message in trial.published.messages:
        key, product = (message.key or b"").decode(), dict(message.headers)["statestore.product"]
        document = None if message.value is None else canonical_json.loads(message.value)
        last[(product or b"").decode()][key] = document
    return {
        product: {key: document for key, document in found.items() if document is not None}
        for product, found in last.items()
    }

"""Random products and histories: what the steps publish last is what Postgres answers over the last state of the tables,
and valid by the product's schema."""

import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from processor.definitions.describe import describe_product
from processor.definitions.load import load
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.json_schema import document_schema
from processor.model.product import Definitions
from processor.oracle import Oracle, oracle
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial, batches
from tests.integration.model.conftest import plain
from tests.integration.model.products import ENTITIES, draw_definitions, draw_history


@pytest.fixture(scope="module")
def tables(postgres_url: str) -> Iterator[Oracle]:
    entities = load({"entities.yaml": canonical_json.dumps(ENTITIES)}).entities
    with oracle(postgres_url, f"products_{uuid.uuid4().hex}", entities) as made:
        yield made


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_over_any_history_is_what_postgres_says(tables: Oracle, rng: Random) -> None:
    assert_equal(tables, rng)


def assert_equal(tables: Oracle, rng: Random) -> None:
    definitions = draw_definitions(rng)
    history = draw_history(rng, rng.choice([10, 25, 40]))
    last: dict[str, dict[str, Any]] = {entity: {} for entity in ENTITIES}
    records = []
    for offset, (entity, key, row) in enumerate(history):
        spelt = canonical_json.dumps(plain(key))
        last[entity].pop(spelt, None)
        if row is not None:
            last[entity][spelt] = row
        value = None if row is None else canonical_json.encode(plain(row))
        records.append(Record(topic=entity, partition=0, offset=offset, key=spelt.encode(), value=value))
    tables.load({entity: rows.values() for entity, rows in last.items()})
    truth = tables.documents(definitions.products["p"])
    schema = Draft202012Validator(document_schema(definitions.products["p"], definitions.entities))
    for document in truth.values():
        schema.validate(document)
    assert published(definitions, records, rng.choice([1, 7, None])) == truth, describe_product(
        definitions.products["p"]
    )
    valid = Draft202012Validator(document_schema(definitions.products["p"], definitions.entities))
    for document in truth.values():
        valid.validate(document)


def published(definitions: Definitions, records: list[Record], size: int | None) -> dict[str, Any]:
    """The documents that stand at the end; each root's first message is a document."""
    trial = Trial(plan=plan_alone(definitions, 20), settings=Settings())
    for batch in batches(records, size):
        trial.batch(batch)
    trial.finish()
    assert not trial.tally["corrections"]
    last: dict[str, bytes | None] = {}
    for message in trial.published.messages:
        key = (message.key or b"").decode()
        assert message.value is not None or key in last, "a tombstone for a root that never had a document"
        last[key] = message.value
    return {key: canonical_json.loads(value) for key, value in last.items() if value is not None}

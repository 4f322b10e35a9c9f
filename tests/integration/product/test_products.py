"""Random products and histories: the last published documents equal those of Postgres over the last state of the tables, and
are valid by the product's schema."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.document_type import document_schema
from processor.language.product.product import Definitions
from processor.tools.inspect.oracle import Oracle, oracle
from processor.values import canonical_json
from processor.values.record import Record
from tests.integration.product.products import (
    ENTITIES,
    NESTED,
    Row,
    draw_compared_definitions,
    draw_computed_definitions,
    draw_definitions,
    draw_history,
    draw_list_definitions,
    draw_tree_definitions,
    respell,
)
from tests.integration.product.published import last_documents, plain

History = Sequence[tuple[str, Mapping[str, Any], Row | None]]


@pytest.fixture(scope="module")
def tables(postgres_url: str) -> Iterator[Oracle]:
    entities = load({"entities.yaml": canonical_json.dumps(ENTITIES)}).entities
    with oracle(postgres_url, f"products_{uuid.uuid4().hex}", entities) as made:
        yield made


@pytest.mark.rest
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_over_any_history_ends_in_the_documents_of_postgres(tables: Oracle, rng: Random) -> None:
    assert_equal(tables, rng)


@pytest.mark.rest
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_over_columns_that_compare_in_their_own_way_ends_in_the_documents_of_postgres(
    tables: Oracle, rng: Random
) -> None:
    history = [
        (entity, respelled := respell(rng, key), row and respell(rng, row) | respelled)
        for entity, key, row in draw_history(rng, rng.choice([10, 25, 40]))
    ]
    compare_histories(tables, rng, draw_compared_definitions(rng), history)


@pytest.mark.rest
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_with_the_words_of_lists_ends_in_the_documents_of_postgres(tables: Oracle, rng: Random) -> None:
    compare_histories(tables, rng, draw_list_definitions(rng), draw_history(rng, rng.choice([10, 25, 40])))


@pytest.mark.rest
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_with_recursive_joins_ends_in_the_documents_of_postgres(tables: Oracle, rng: Random) -> None:
    compare_histories(tables, rng, draw_tree_definitions(rng), draw_history(rng, rng.choice([10, 25, 40])))


@pytest.mark.rest
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_product_with_computed_columns_and_expressions_in_joins_ends_in_the_documents_of_postgres(
    tables: Oracle, rng: Random
) -> None:
    history = [
        (entity, key, {**row, "x": rng.choice(NESTED)} if row and entity == "tag" else row)
        for entity, key, row in draw_history(rng, rng.choice([10, 25, 40]))
    ]
    compare_histories(tables, rng, draw_computed_definitions(rng), history)


def assert_equal(tables: Oracle, rng: Random) -> None:
    compare_histories(tables, rng, draw_definitions(rng), draw_history(rng, rng.choice([10, 25, 40])))


def compare_histories(tables: Oracle, rng: Random, definitions: Definitions, history: History) -> None:
    last: dict[str, dict[str, Any]] = {entity: {} for entity in ENTITIES}
    records = []
    for offset, (entity, key, row) in enumerate(history):
        message_key = canonical_json.dumps(plain(key))
        last[entity].pop(message_key, None)
        if row is not None:
            last[entity][message_key] = row
        value = None if row is None else canonical_json.encode(plain(row))
        records.append(Record(topic=entity, partition=0, offset=offset, key=message_key.encode(), value=value))
    tables.load({entity: rows.values() for entity, rows in last.items()})
    truth = tables.documents(definitions.products["p"])
    schema = Draft202012Validator(document_schema(definitions.products["p"], definitions.entities))
    for document in truth.values():
        schema.validate(document)
    assert last_documents(definitions, records, rng.choice([1, 7, None]))["p"] == truth, describe_product(
        definitions.products["p"]
    )
    valid = Draft202012Validator(document_schema(definitions.products["p"], definitions.entities))
    for document in truth.values():
        valid.validate(document)

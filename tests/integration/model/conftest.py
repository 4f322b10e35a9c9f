"""The steps against Postgres: what `try` publishes for some rows, and what the product's SQL answers over them."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from processor.model import canonical_json
from processor.model.change import Record
from processor.model.product import Definitions
from processor.oracle import oracle
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Both = Callable[[Definitions, Rows], dict[str, Any]]


@pytest.fixture(scope="module")
def both(postgres_url: str) -> Both:
    """The documents of the first product by key, which the steps and Postgres agree on."""

    def answer(definitions: Definitions, rows: Rows) -> dict[str, Any]:
        (product, *_) = definitions.products.values()
        with oracle(postgres_url, f"both_{uuid.uuid4().hex}", definitions.entities) as tables:
            tables.load(rows)
            truth = tables.documents(product)
        assert documents(definitions, rows) == truth
        return truth

    return answer


def documents(definitions: Definitions, rows: Rows) -> dict[str, Any]:
    """The documents that the steps publish last."""
    trial = Trial(plan=plan_alone(definitions, 20), settings=Settings())
    trial.batch(
        Record(topic=name, partition=0, offset=n, key=None, value=canonical_json.encode(plain(row)))
        for name, table in rows.items()
        for n, row in enumerate(table)
    )
    trial.finish()
    published = {(m.key or b"").decode(): m.value for m in trial.published.messages}
    assert not trial.rejects.messages
    return {key: canonical_json.loads(value) for key, value in published.items() if value is not None}


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON has it."""
    return {name: Decimal(repr(value)) if type(value) is float else value for name, value in row.items()}

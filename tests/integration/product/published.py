"""The documents that a consumer has after the steps published recorded changes."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.product.product import Definitions
from processor.values import canonical_json
from processor.values.record import Record


def last_documents(
    definitions: Definitions, records: Iterable[Record], size: int | None = None, lag: float = 0
) -> dict[str, dict[str, Any]]:
    """The last documents by product and message key, with `size` records in each batch. Checks: a root's first message is a
    document, no record is a dead letter, and without lag there is no correction."""
    trial = Trial(plan=plan_alone(definitions, 20), settings=Settings(), lag=lag)
    for chunk in batches(records, size):
        trial.batch(chunk)
        trial.background_work()
    trial.finish()
    assert trial.rejects.messages == []
    assert lag or not trial.tally["corrections"]
    last: dict[str, dict[str, bytes | None]] = {name: {} for name in definitions.products}
    for message in trial.published.messages:
        found, key = last[(dict(message.headers)["statestore.product"] or b"").decode()], (message.key or b"").decode()
        assert message.value is not None or key in found, "a tombstone for a root that never had a document"
        found[key] = message.value
    return {
        product: {key: canonical_json.loads(value) for key, value in found.items() if value is not None}
        for product, found in last.items()
    }


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with JSON's numbers: Decimal in place of float."""
    return {name: Decimal(repr(value)) if type(value) is float else value for name, value in row.items()}

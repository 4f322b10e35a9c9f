"""The rule for all mutated inputs, and what the verbs of authors do with definitions and records that are right."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from processor.cli.choices import empty_registry
from processor.cli.printing.plan import plan_lines
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.language.product.document_type import document_schema
from processor.language.product.product import Definitions
from processor.language.product.sql_printer import product_sql
from processor.tools.inspect.explain import explain, explanation_lines
from processor.tools.inspect.preview import preview
from processor.tools.inspect.prices import DEFAULT
from processor.values import canonical_json
from processor.values.record import Record
from registry.errors import RegistryError
from statestore.store import StoreError

SETTINGS = Settings()


class Finding(Exception):
    """An input that ends otherwise than the rule says."""


@contextmanager
def readable_errors(what: object) -> Iterator[None]:
    """Lets through only errors of statestore whose message has a first line. Every other error becomes a Finding."""
    try:
        yield
    except (StatestoreError, RegistryError, StoreError) as error:
        if not str(error).partition("\n")[0].strip():
            raise Finding(f"an error without a message: {error!r}, of {what!r}") from error
    except Finding:
        raise
    except BaseException as error:
        raise Finding(f"{type(error).__name__}: {error}, of {what!r}") from error


def use_definitions(loaded: Definitions, *, prices: bool) -> None:
    """Does with definitions what the verbs of authors do."""
    plan = plan_alone(loaded, SETTINGS.slots)
    for product in plan.products.values():
        list(explanation_lines(explain(plan, product)))
        product_sql(product.product, loaded.entities)
        json.dumps(document_schema(product.product, loaded.entities))
    found = preview(loaded, empty_registry(SETTINGS), frozenset(), SETTINGS if prices else None)
    list(plan_lines(found, DEFAULT, verbose=True))


def try_records(loaded: Definitions, given: list[Record], what: object) -> None:
    """Runs records through the steps. No product may stop, and every message must be JSON."""
    trial = Trial(plan=plan_alone(loaded, SETTINGS.slots), settings=replace(SETTINGS, max_reject_share=1.0))
    trial.batch(given)
    trial.finish()
    if trial.stopped:
        raise Finding(f"stopped: {trial.stopped}, of {what!r}")
    for message in trial.published.messages:
        if message.value is not None:
            canonical_json.loads(message.value)

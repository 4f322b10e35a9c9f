"""The document that a verb works with: PRODUCT and KEY name it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from processor.cli.chosen_plan import stored_state
from processor.cli.chosen_row import KEY_TEXT, typed_key
from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.plan.planning import product_of
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.settings import Settings
from processor.tools.inspect.verification import with_open_changes
from statestore import keys


def add_key(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds the argument KEY."""
    parser.add_argument("key", metavar="KEY", nargs=None if required else "?", help=f"the root's key: {KEY_TEXT}")


class RequestedDocument(NamedTuple):
    """The document that the user asks for: plan, product, and the root's encoded key. `runner`: lays the open changes over
    index answers, as a job does."""

    plan: Plan
    product: ProductPlan
    root: str
    runner: StepRunner


@contextmanager
def requested_document(options: argparse.Namespace, settings: Settings) -> Iterator[RequestedDocument]:
    """The document that PRODUCT and KEY name, inside the block. Raises StatestoreError if there is no such product, or KEY is not
    a key."""
    with stored_state(settings) as (plan, store):
        product = product_of(plan, options.product)
        root = keys.encode(typed_key(plan.entities[product.product.root], options.key)) or ""
        yield RequestedDocument(plan, product, root, with_open_changes(StepRunner(store=store)))

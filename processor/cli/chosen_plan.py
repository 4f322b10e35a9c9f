"""The plan that a verb works with: that of `--definitions`, or that of the registry; and the registry's table."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from processor.cli.options import load_definitions, load_settings, reachable_settings
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, plan_of
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from registry.model import EpochBoundary, Snapshot
from statestore.store import Store


def chosen_plan(options: argparse.Namespace) -> Plan:
    """The plan of `--definitions`, with the slots that a first `apply` would give; without the flag, the registry's plan."""
    if options.definitions:
        return plan_alone(load_definitions(options), load_settings(options).slots)
    with reachable_settings(options) as settings:
        return stored_plan(settings)


def empty_registry(settings: Settings) -> Snapshot:
    """The snapshot of a registry before the first apply."""
    return Snapshot(version=0, slots=settings.slots, entities=(), products=(), assignments=(), joins=())


def stored_plan(settings: Settings) -> Plan:
    """The plan of the definitions that the registry holds."""
    with open_registry(settings) as registry:
        return plan_of(registry.snapshot())


def stored_boundaries(settings: Settings, plan: Plan) -> tuple[EpochBoundary, ...]:
    """The boundaries of all topics that the entities of the plan ever read."""
    with open_registry(settings) as registry:
        return registry.epochs([], list(plan.entities))


@contextmanager
def stored_state(settings: Settings) -> Iterator[tuple[Plan, Store]]:
    """The plan of the registry, and the store of its table inside the block. Raises ForeignPart when the table is not that of the
    registry."""
    from processor.job.run.binding import readable_store

    with ExitStack() as stack:
        with open_registry(settings) as registry:
            plan = plan_of(registry.snapshot())
            store = stack.enter_context(readable_store(settings, registry))
        yield plan, store

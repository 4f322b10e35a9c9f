"""The plan that a verb speaks of: of definitions that it was given, else of those that the registry holds."""

import argparse

from processor.cli.options import addressed, definitions_of, settings_of
from processor.model.plan import Plan
from processor.planning import plan_alone, plan_of
from processor.settings import Settings


def known_plan(options: argparse.Namespace) -> Plan:
    """The plan of `--definitions`, slots given as a first `apply` would; else that of the registry."""
    if options.definitions:
        return plan_alone(definitions_of(options), settings_of(options).slots)
    with addressed(options) as settings:
        return stored_plan(settings)


def stored_plan(settings: Settings) -> Plan:
    """The plan of what the registry holds."""
    from registry.repository import Registry

    with Registry(settings.registry, settings.registry_schema) as registry:
        return plan_of(registry.snapshot())

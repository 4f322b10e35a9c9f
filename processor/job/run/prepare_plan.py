"""The plan of a run: that of the registry, after the definitions that the run brings."""

from processor.engine.plan.dead_letter_topic import check_dead_letter_topic
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings, owner_name
from processor.job.run.binding import check_new_registry
from processor.language.product.product import Definitions


def prepare_plan(settings: Settings, definitions: Definitions | None) -> Plan:
    """Applies the definitions, if any, and returns the plan of the registry."""
    with open_registry(settings) as registry:
        check_new_registry(settings, registry)
        registry.migrate(settings.slots)
        if definitions is not None:
            required, check = requirements_of(definitions), check_after(definitions, settings.dead_letter_topic)
            registry.apply(required, who=owner_name(), why="run", check=check)
        plan = plan_of(registry.snapshot())
    check_dead_letter_topic(plan, settings.dead_letter_topic)
    return plan

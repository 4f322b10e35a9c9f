"""The entity and the row that a verb works with: ENTITY and KEY name them."""

from processor.engine.plan.plan import EntityPlan, Plan
from processor.errors import StatestoreError
from processor.language.definitions.problems import suggest
from processor.language.product.document import read_root_key
from processor.values.record import Value

KEY_TEXT = 'JSON such as {"id": 7}, or the value of a single column'
"""How people write a key, for the help of verbs."""


def chosen_entity(plan: Plan, name: str) -> EntityPlan:
    """The entity with this name. Raises StatestoreError, with the nearest name, if there is none."""
    if name not in plan.entities:
        raise StatestoreError(f"there is no entity `{name}`; {suggest(name, plan.entities)}")
    return plan.entities[name]


def typed_key(entity: EntityPlan, text: str) -> tuple[Value, ...]:
    """The values of the primary key that the text names. Raises StatestoreError for a text that is no key."""
    try:
        return read_root_key(entity.entity, text)
    except ValueError as error:
        raise StatestoreError(str(error)) from None

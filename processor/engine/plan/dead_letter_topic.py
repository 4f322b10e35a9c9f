"""The topic for dead letters belongs to the job alone. A job that reads its dead letters as records never ends: each of them
becomes the next dead letter. (The registry checks that entities and products share no topic.)"""

from processor.engine.plan.plan import Plan
from processor.errors import PlanError

CURE = "set dead_letter_topic to a topic of its own"


def check_dead_letter_topic(plan: Plan, dead_letter_topic: str) -> None:
    """Raises PlanError when an entity reads the topic for dead letters, or a product publishes to it."""
    users = [(f"entity `{name}` reads", entity.entity.topic) for name, entity in plan.entities.items()]
    users += [(f"product `{name}` publishes to", product.product.topic) for name, product in plan.products.items()]
    for user, topic in users:
        if topic == dead_letter_topic:
            raise PlanError(f"{user} the topic `{topic}`, and the job keeps its dead letters there: {CURE}")

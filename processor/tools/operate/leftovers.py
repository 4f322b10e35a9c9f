"""What an erasure does not reach, and where: former topics, products that are gone, and the history of the registry.

Nobody writes to these places any more, or nobody may change them. So the certificate names them.
"""

from dataclasses import dataclass

from processor.engine.plan.plan import Plan
from processor.engine.plan.product_plan import LedgerPlace
from processor.engine.protocol.ledger import NO_DOCUMENT, group_key, read_entry
from processor.job.landing.landing_states import LandingState, landing_states
from processor.job.run.job import Job
from processor.tools.operate.letters_of_row import mentions_text
from processor.values.record import Value
from registry.edits.history import past_products
from registry.model import HistoryEntry, json_text
from statestore import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """`source_topics`: former topics of the entity. `joined`: the entities that join with it, each with its topic, empty where it
    has none. `document_topics`: (product, topic) where no product publishes any more. `ledgers`: products without a definition
    whose last document of the row is in the ledger. `versions`: the versions of the registry whose entries in the history have
    the key's text. `landings`: those that hold documents of these topics."""

    source_topics: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    document_topics: tuple[tuple[str, str], ...] = ()
    ledgers: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    landings: tuple[LandingState, ...] = ()


def find_leftovers(job: Job, entity: str, key: tuple[Value, ...]) -> Leftovers:
    """Asks the registry, the table, and the broker for the topics that still exist."""
    plan, history = job.driver.plan, job.registry.history()
    own = plan.entities[entity].entity.topic
    former = {one.topic for one in job.registry.epochs([], [entity])} - {own}
    past = past_products(history, entity)
    present = {product.product.topic for product in plan.products.values()}
    left = {(one.name, one.topic) for one in past if one.topic not in present}
    joined = {(name, plan.entities[name].entity.topic) for name in _joined(plan, entity)}
    asked = {*former, *(topic for _, topic in left | joined)}
    there = job.admin.topics(sorted(asked)) if asked else {}
    gone = sorted({one.name for one in past if one.root == entity} - plan.products.keys())
    landings = landing_states(job.registry.landings.all(), job.settings.bootstrap_servers, dict(job.settings.kafka))
    root = keys.encode(key) or ""
    numbers = job.registry.snapshot().numbers
    places = {name: LedgerPlace(entity, numbers[entity, name]) for name in gone}
    items = job.driver.store.get([group_key(place, root) for place in places.values()])
    shown = {name: read_entry(items.get(group_key(place, root)), place.number) for name, place in places.items()}
    return Leftovers(
        source_topics=tuple(sorted(former & there.keys())),
        joined=tuple((name, topic if topic in there else "") for name, topic in sorted(joined)),
        document_topics=tuple(sorted(one for one in left if one[1] in there)),
        ledgers=tuple(name for name, entry in shown.items() if entry.hash != NO_DOCUMENT),
        versions=tuple(sorted({entry.version for entry in history if _names_key(entry, key)})),
        landings=tuple(one for one in landings if one.topic in present | {topic for _, topic in left}),
    )


def _joined(plan: Plan, entity: str) -> set[str]:
    """The entities that join with this one; itself too, where it joins itself."""
    pairs = {(node.above, node.join.entity) for product in plan.products.values() for node in product.nodes}
    return {other for pair in pairs for one, other in (pair, pair[::-1]) if one == entity}


def _names_key(entry: HistoryEntry, key: tuple[Value, ...]) -> bool:
    return mentions_text(f"{entry.why or ''}\n{json_text([entry.old, entry.new])}", key)

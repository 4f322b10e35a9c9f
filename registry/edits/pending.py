"""The work that an edit leaves to the job, as lines for people: products that wait, slots on their way, pauses. Pure."""

from collections.abc import Iterator

from registry.edits.edit import served_joins
from registry.lifecycle import reads
from registry.model import Assignment, AssignmentState, ProductEntry, Snapshot


def pending_lines(snapshot: Snapshot) -> Iterator[str]:
    """The pauses, and the next work of the job, product by product and slot by slot."""
    if snapshot.paused:
        yield "all work: paused, the job reads no batches until `statestore resume`"
    for topic in snapshot.paused_topics:
        yield f"topic {topic}: paused, the job reads no records of it until `statestore resume --topic {topic}`"
    for product in snapshot.waiting:
        yield f"product {product.name}: version {product.version} waits for {', '.join(waits_for(snapshot, product))}"
    for product in snapshot.products:
        if product.paused:
            yield f"product {product.name}: paused, the job publishes nothing of it until `statestore resume`"
        if product.retracted:
            yield f"product {product.name}: the job replaces its documents by tombstones, then removes it"
    for one in snapshot.assignments:
        if not reads(one.state):
            yield f"entity {one.entity}: GSI_{one.slot} {'#'.join(one.columns)} is {one.state}: {_next(one)}"


def waits_for(snapshot: Snapshot, product: ProductEntry) -> list[str]:
    """The slots that a waiting product needs and that do not serve yet. Where all of them serve: the look at stored rows."""
    served = served_joins(snapshot.joins)
    needed = [snapshot.access(join) for join in product.joins if join not in served]
    paths = dict.fromkeys(path for access in needed for path in (access.down, access.up))
    slots = [
        f"GSI_{path.slot} of {path.entity} ({path.state})"
        for path in paths
        if isinstance(path, Assignment) and not reads(path.state)
    ]
    return slots or [f"the check of each row of {', '.join(sorted(product.entities()))}"]


def _next(one: Assignment) -> str:
    """The next step of an assignment that does not serve."""
    if one.state is AssignmentState.RETIRING:
        return "the job frees it once no product uses it"
    return "the job fills it in stored rows, then it serves"

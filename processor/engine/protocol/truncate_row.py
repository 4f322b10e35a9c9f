"""Deletes one stored row that is older than a truncate of its table.

    1. A row that is older becomes a delete marker with the truncate's version, under the version seen. The write keeps the
       previous keys, as a delete does. Refused: the same with the row that the refusal returned.
    2. The step touches again a marker that a truncate since `goal.since` has left: a crash may have swallowed its documents.
    3. A newer row stays, and so does a marker from before: its documents are published.

An older change of the row then finds the marker, and does not bring the row back.
"""

from processor.engine.plan.declared_columns import declared_row
from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import deleted_image
from processor.engine.plan.step import Step
from processor.engine.plan.touch import Touch
from processor.engine.protocol.walk import TruncateGoal
from statestore.errors import Terminal
from statestore.items import Row, written_row
from statestore.store import Done, Equals, Item, Refused, TooLarge
from statestore.writes import write_image


def truncate_row(item: Item, plan: EntityPlan, goal: TruncateGoal, *, expires_at: int) -> Step[Touch | None]:
    """Deletes the row that `item` holds; returns None for a row that stays as it is. `expires_at`: when DynamoDB may drop the
    marker, in seconds since 1970."""
    row: Row | None = declared_row(item, plan)
    while row is not None and row.version <= goal.version:
        if row.columns is None:
            pending = frozenset((p.slot, p.key) for p in row.pending)
            touched = Touch(plan.name, row, pending, None, "replayed")
            return touched if row.version >= goal.since else None
        image = deleted_image(plan, row.key, goal.version, expires_at)
        write = write_image(image, below=goal.version)._replace(when=Equals("_v", row.version))
        (answer,) = yield (write,)
        match answer:
            case Done():
                return Touch(plan.name, written_row(image, row), row.keys(), None, "applied")
            case Refused(current):
                row = declared_row(current, plan) if current is not None else None
            case TooLarge():
                raise Terminal(
                    f"{row.key.pk}: the delete marker of a row is larger than an item may be: please report this"
                )
    return None

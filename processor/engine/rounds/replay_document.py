"""The replay of a dead letter that takes the place of a document: has the document gone out since?

The replay publishes nothing: a change of the document does, and the next start of the job, if the document then fits its topic.
"""

from processor.engine.plan.plan import Plan
from processor.engine.plan.root_key import root_of
from processor.engine.plan.step import Step
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.protocol.replays import ReplayReport
from processor.values.record import Rejected


def replay_document(letter: Rejected, plan: Plan) -> Step[ReplayReport]:
    """`superseded` where the ledger has a later message of the root; `refused`, for the same reason, where it has none; `ignored`
    without the product."""
    record = letter.record
    for product in plan.products.values():
        root = root_of(plan.entities[product.product.root].entity, (record.key or b"").decode())
        if product.product.topic == record.topic and root is not None:
            (item,) = yield (group_key(product.ledger, root),)
            if read_entry(item, product.number).unfit:
                return ReplayReport(record=record, outcome="refused", reason=letter.reason)
            return ReplayReport(record=record, outcome="superseded")
    return ReplayReport(record=record, outcome="ignored")

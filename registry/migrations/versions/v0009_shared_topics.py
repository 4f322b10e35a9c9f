"""Entities that name their tables may share a topic, and each has its own boundaries of it."""

from alembic import op

from registry.migrations.first_rules import OWN_TOPIC
from registry.migrations.versions import v0008_computed_fields as earlier

revision = "0009_shared_topics"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)
CHANGES = {
    "CREATE FUNCTION": "CREATE OR REPLACE FUNCTION",
    "IF 1 < (SELECT count(*) FROM (": "IF (SELECT 1 < count(*) AND NOT bool_and(shares) FROM (",
    "SELECT 'entity', name FROM entities": "SELECT 'entity', name, definition ->> 'table' IS NOT NULL AS shares FROM entities",
    "UNION SELECT 'product', name FROM products": "UNION SELECT 'product', name, false FROM products",
    "UNION SELECT 'product', name FROM waiting_products": "UNION SELECT 'product', name, false FROM waiting_products",
    "no two entities or products have one topic, also while a product waits": (
        "only entities that each name a table have one topic, and no product, also while it waits"
    ),
}


def upgrade() -> None:
    op.drop_constraint("entities_topic_uq", "entities")
    op.drop_constraint("epochs_pk", "epochs")
    op.create_primary_key("epochs_pk", "epochs", ["topic", "topic_id", "partition", "from_offset", "epoch", "entity"])
    rule = OWN_TOPIC
    for before, after in CHANGES.items():
        assert before in rule, before
        rule = rule.replace(before, after)
    op.execute(rule)

"""Statistics of the state: of entities, and of what joins find. They are no edit: no history, no version."""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"


def upgrade() -> None:
    op.create_table(
        "entity_statistics",
        sa.Column("entity", sa.Text),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("mean_bytes", sa.Double, nullable=False, comment="of a sample's rows"),
        sa.Column("most_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("entity", name="entity_statistics_pk"),
        sa.ForeignKeyConstraint(["entity"], ["entities.name"], name="entity_statistics_entity_fk", ondelete="CASCADE"),
    )
    op.create_table(
        "join_statistics",
        sa.Column("join_id", sa.BigInteger, autoincrement=False),
        sa.Column("direction", sa.Text, comment="down: child rows are found; up: parent rows"),
        sa.Column("mean", sa.Double, nullable=False, comment="rows found for a row of the other side"),
        sa.Column("most", sa.BigInteger, nullable=False, comment="rows found for one value"),
        sa.Column("value", sa.Text, comment="the value with most rows; null: no row has one"),
        sa.PrimaryKeyConstraint("join_id", "direction", name="join_statistics_pk"),
        sa.ForeignKeyConstraint(["join_id"], ["joins.id"], name="join_statistics_join_id_fk", ondelete="CASCADE"),
        sa.CheckConstraint("direction IN ('down', 'up')", name="join_statistics_direction_ck"),
    )

"""The registry knows the landings: the tables and indexes elsewhere that hold documents of products."""

import sqlalchemy as sa
from alembic import op

revision = "0005_landings"
down_revision = "0004_compared_fields"
readable_by: tuple[str, ...] = ("0001_first_schema", "0002_entry_bytes", "0004_compared_fields")


def upgrade() -> None:
    now = sa.func.now()
    op.create_table(
        "landings",
        sa.Column("id", sa.Text, comment="random, also kept in the target"),
        sa.Column("product", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False, comment="the target's address, without user and password"),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.PrimaryKeyConstraint("id", name="landings_pk"),
        comment="the targets that hold documents of products; no edit",
    )

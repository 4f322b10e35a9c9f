"""A lease keeps what outlives a run of its job: how many runs failed, why the last one did, and when a batch ended last."""

import sqlalchemy as sa
from alembic import op

revision = "0007_past_runs"
down_revision = "0006_ends"
readable_by: tuple[str, ...] = (
    "0001_first_schema",
    "0002_entry_bytes",
    "0004_compared_fields",
    "0005_landings",
    "0006_ends",
)


def upgrade() -> None:
    comment = "what outlives a run: its failures, and the last batch; null: nothing yet"
    op.add_column("leases", sa.Column("past", sa.JSON, comment=comment))

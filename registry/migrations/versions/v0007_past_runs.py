"""A lease keeps what outlives a run of its job: how many runs failed, why the last one did, and when a batch ended last."""

import sqlalchemy as sa
from alembic import op

from registry.migrations.versions import v0006_ends as earlier

revision = "0007_past_runs"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)


def upgrade() -> None:
    comment = "what outlives a run: its failures, and the last batch; null: nothing yet"
    op.add_column("leases", sa.Column("past", sa.JSON, comment=comment))

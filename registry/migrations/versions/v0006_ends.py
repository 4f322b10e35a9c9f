"""A boundary of an epoch says whether its partition ended there. A boundary of an older release does not say it."""

import sqlalchemy as sa
from alembic import op

revision = "0006_ends"
down_revision = "0005_landings"
readable_by: tuple[str, ...] = ("0001_first_schema", "0002_entry_bytes", "0004_compared_fields", "0005_landings")


def upgrade() -> None:
    comment = "the partition ended there when the boundary was recorded"
    column = sa.Column("at_end", sa.Boolean, nullable=False, server_default=sa.false(), comment=comment)
    op.add_column("epochs", column)

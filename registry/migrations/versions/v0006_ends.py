"""A boundary of an epoch says whether its partition ended there. A boundary of an older release does not say it."""

import sqlalchemy as sa
from alembic import op

from registry.migrations.versions import v0005_landings as earlier

revision = "0006_ends"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)


def upgrade() -> None:
    comment = "the partition ended there when the boundary was recorded"
    column = sa.Column("at_end", sa.Boolean, nullable=False, server_default=sa.false(), comment=comment)
    op.add_column("epochs", column)

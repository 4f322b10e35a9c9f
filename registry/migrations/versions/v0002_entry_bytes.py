"""Statistics also hold the bytes of index entries and of undeclared columns. Null: an older release took them."""

import sqlalchemy as sa
from alembic import op

revision = "0002_entry_bytes"
down_revision = "0001_first_schema"
readable_by: tuple[str, ...] = ("0001_first_schema",)


def upgrade() -> None:
    for name, of in (
        ("entry_bytes", "of what an index shows of a row"),
        ("undeclared_bytes", "of the undeclared columns of a row"),
    ):
        op.add_column("entity_statistics", sa.Column(name, sa.Double, comment=of))

"""A field of a slot or a join may be an expression over columns, `=string {...}`. The release that writes it checks them."""

from alembic import op

from registry.migrations.first_rules import UNDECLARED
from registry.migrations.versions import v0007_past_runs as earlier
from registry.migrations.versions.v0004_compared_fields import CHANGES

revision = "0008_computed_fields"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)


def upgrade() -> None:
    rule = UNDECLARED
    for before, after in CHANGES.items():
        rule = rule.replace(before, after)
    op.execute(
        rule.replace("WHERE columns -> field", "WHERE field !~ '^=[a-z]+([+][a-z]+)* [{]' AND columns -> field", 1)
    )

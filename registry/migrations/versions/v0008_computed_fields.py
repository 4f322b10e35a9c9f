"""A field of a slot or a join may be an expression over columns, `=string {...}`. The release that writes it checks them."""

from alembic import op

from registry.migrations.first_rules import UNDECLARED
from registry.migrations.versions.v0004_compared_fields import CHANGES

revision = "0008_computed_fields"
down_revision = "0007_past_runs"
readable_by: tuple[str, ...] = (
    "0001_first_schema",
    "0002_entry_bytes",
    "0004_compared_fields",
    "0005_landings",
    "0006_ends",
    "0007_past_runs",
)


def upgrade() -> None:
    rule = UNDECLARED
    for before, after in CHANGES.items():
        rule = rule.replace(before, after)
    op.execute(
        rule.replace("WHERE columns -> field", "WHERE field !~ '^=[a-z]+([+][a-z]+)* [{]' AND columns -> field", 1)
    )

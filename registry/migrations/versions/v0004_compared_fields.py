"""A field of a slot or a join may say how its text compares, `code::ci`: its entity declares the column `code`."""

from alembic import op

from registry.migrations.first_rules import UNDECLARED

revision = "0004_compared_fields"
down_revision = "0003_gates"
readable_by: tuple[str, ...] = ("0001_first_schema", "0002_entry_bytes", "0003_gates")

CHANGES = {
    "CREATE VIEW": "CREATE OR REPLACE VIEW",
    "WHERE columns -> field IS NULL": (
        r"WHERE columns -> field IS NULL AND columns -> regexp_replace(field, '::(ci|trimmed|ci\+trimmed)$', '') IS NULL"
    ),
}
"""In the rule of the first schema."""


def upgrade() -> None:
    rule = UNDECLARED
    for before, after in CHANGES.items():
        rule = rule.replace(before, after)
    op.execute(rule)

"""A product may get another gate under its version: the gate says when its documents go out, and changes none of them."""

from alembic import op

from registry.migrations.first_rules import PRODUCT_STAYS
from registry.model import GATE

revision = "0003_gates"
down_revision = "0002_entry_bytes"
readable_by: tuple[str, ...] = ("0001_first_schema", "0002_entry_bytes")

CONTENT = f"""
CREATE FUNCTION content_of(definition json) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_object_agg(member.key, member.value ORDER BY member.place)
  FROM json_each(definition) WITH ORDINALITY AS member (key, value, place) WHERE member.key <> '{GATE}'
$$;
COMMENT ON FUNCTION content_of IS 'the definition of a product without its gate, its members in their order'
"""
CHANGES = {
    "CREATE FUNCTION": "CREATE OR REPLACE FUNCTION",
    "to_jsonb(NEW) - 'paused' <> to_jsonb(OLD) - 'paused'": (
        "to_jsonb(NEW) - '{paused,definition}'::text[] <> to_jsonb(OLD) - '{paused,definition}'::text[]"
    ),
    "same_content(OLD.definition, NEW.definition)": "same_content(content_of(OLD.definition), content_of(NEW.definition))",
}
"""In the rule of the first schema."""


def upgrade() -> None:
    op.execute(CONTENT)
    rule = PRODUCT_STAYS
    for before, after in CHANGES.items():
        rule = rule.replace(before, after)
    op.execute(rule)

"""Products may share a topic where the keys of their messages cannot meet: two constants under one name."""

from alembic import op

from registry.migrations.versions import v0010_letters as earlier

revision = "0011_products_of_a_topic"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)
CONSTANT = "^(''|-?[0-9])"
"""How the constant of a key begins in a definition. A column is a name, in double quotes where it looks like this."""
OWN_TOPIC = f"""
CREATE OR REPLACE FUNCTION own_topic() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (
    WITH owners AS (
      SELECT 'entity' AS kind, name, definition ->> 'table' IS NOT NULL AS shares, NULL::json AS key
        FROM entities WHERE topic = NEW.topic
      UNION ALL SELECT 'product', name, false, definition -> 'key' FROM products WHERE topic = NEW.topic
      UNION ALL SELECT 'product', name, false, definition -> 'key' FROM waiting_products WHERE topic = NEW.topic
    )
    SELECT FROM owners AS one JOIN owners AS other ON (one.kind, one.name) < (other.kind, other.name)
    WHERE NOT (one.shares AND other.shares) AND NOT EXISTS (
      SELECT FROM json_each_text(one.key) AS a JOIN json_each_text(other.key) AS b ON a.key = b.key AND a.value <> b.value
      WHERE a.value ~ '{CONSTANT}' AND b.value ~ '{CONSTANT}'
    )
  ) THEN
    RAISE EXCEPTION 'topic %: two entries have it', NEW.topic
      USING ERRCODE = '23000', HINT = 'only entities that each name a table, and products with other constants in their keys, '
        'have one topic, also while a product waits';
  END IF;
  RETURN NULL;
END $$
"""


def upgrade() -> None:
    op.drop_constraint("products_topic_uq", "products")
    op.execute(OWN_TOPIC)

"""Joins that edge rows answer: strong ones, and those by the elements of an array. No slot serves them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "v0003"
down_revision = "v0002"

UNSERVED = """
CREATE OR REPLACE VIEW unserved AS
SELECT product, join_id, direction, side.entity, side.columns, paths.slot, held.state
FROM product_joins
JOIN joins ON joins.id = join_id
CROSS JOIN LATERAL (VALUES ('down', child, child_columns), ('up', parent, parent_columns))
  AS side (direction, entity, columns)
JOIN entities ON entities.name = side.entity
LEFT JOIN access_paths AS paths USING (join_id, direction, entity)
LEFT JOIN assignments AS held ON held.entity = side.entity AND held.slot = paths.slot
WHERE paths.join_id IS NULL
  OR (paths.slot IS NULL AND paths.edges IS NULL AND NOT entities.key <@ side.columns)
  OR (paths.edges IS NOT NULL AND NOT (paths.edges <@ side.columns AND side.columns <@ paths.edges))
  OR (paths.slot IS NOT NULL AND NOT (held.state = 'serving' AND held.columns <@ side.columns));
COMMENT ON VIEW unserved IS 'joins of products that no key read, no edges and no serving slot answer: always empty'
"""


def upgrade() -> None:
    strong = sa.Column(
        "strong", sa.Boolean, nullable=False, server_default=sa.text("false"), comment="true: answered without slots"
    )
    op.add_column("joins", strong)
    op.drop_constraint("joins_child_child_columns_parent_parent_columns_uq", "joins")
    op.create_unique_constraint(
        "joins_child_child_columns_parent_parent_columns_strong_uq",
        "joins",
        ["child", "child_columns", "parent", "parent_columns", "strong"],
    )
    edges = "the fields of the side that is asked, where edge rows name its rows"
    op.add_column("access_paths", sa.Column("edges", ARRAY(sa.Text), comment=edges))
    op.alter_column("access_paths", "slot", comment="null: edges or, without them, a key read")
    op.create_check_constraint("access_paths_one_way_ck", "access_paths", "slot IS NULL OR edges IS NULL")
    op.execute(UNSERVED)

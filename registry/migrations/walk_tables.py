"""The tables of the first schema for products that wait, and for the walks over stored rows that these wait for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY


def create_walk_tables() -> None:
    """Creates the tables, and the row that says whether all work is paused."""
    op.create_table(
        "layouts",
        sa.Column("entity", sa.Text),
        sa.Column(
            "version", sa.BigInteger, nullable=False, comment="of the registry; a slot or edges became written then"
        ),
        sa.PrimaryKeyConstraint("entity", name="layouts_pk"),
        sa.ForeignKeyConstraint(["entity"], ["entities.name"], name="layouts_entity_fk", ondelete="CASCADE"),
        comment="kept by triggers",
    )
    _waiting()
    op.create_table(
        "work",
        sa.Column("one", sa.Boolean, server_default=sa.text("true"), comment="there is one row"),
        sa.Column(
            "paused",
            sa.Boolean,
            nullable=False,
            server_default=sa.text("false"),
            comment="true: jobs read no batches",
        ),
        sa.Column(
            "paused_topics",
            ARRAY(sa.Text),
            nullable=False,
            server_default=sa.text("'{}'"),
            comment="jobs read no records of them",
        ),
        sa.PrimaryKeyConstraint("one", name="work_pk"),
        sa.CheckConstraint("one", name="work_one_row_ck"),
    )
    op.execute("INSERT INTO work DEFAULT VALUES")
    op.create_table(
        "walk_progress",
        sa.Column("walk", sa.Text),
        sa.Column("rows", sa.BigInteger, nullable=False, comment="read so far"),
        sa.Column("written", sa.BigInteger, nullable=False),
        sa.Column("of", sa.BigInteger, nullable=False, comment="the rows that the job expects; 0: unknown"),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False, comment="since the walk began"),
        sa.PrimaryKeyConstraint("walk", name="walk_progress_pk"),
        comment="how far walks over stored rows are; no edit",
    )


def _waiting() -> None:
    op.create_table(
        "waiting_products",
        sa.Column("name", sa.Text),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False, comment="that it has when it goes live"),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.PrimaryKeyConstraint("name", name="waiting_products_pk"),
        sa.ForeignKeyConstraint(["root"], ["entities.name"], name="waiting_products_root_fk"),
        comment="products that go live once stored rows have all their slots and edges",
    )
    op.create_table(
        "waiting_joins",
        sa.Column("product", sa.Text),
        sa.Column("join_id", sa.BigInteger),
        sa.Column("position", sa.Integer, nullable=False, comment="parents first, as the definition is written"),
        sa.PrimaryKeyConstraint("product", "join_id", name="waiting_joins_pk"),
        sa.ForeignKeyConstraint(
            ["product"], ["waiting_products.name"], name="waiting_joins_product_fk", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["join_id"], ["joins.id"], name="waiting_joins_join_id_fk"),
    )
    op.create_table(
        "product_versions",
        sa.Column("product", sa.Text, comment="live, waiting or removed"),
        sa.Column("version", sa.Integer, nullable=False, comment="the highest so far; kept by triggers"),
        sa.PrimaryKeyConstraint("product", name="product_versions_pk"),
    )
    op.create_table(
        "ledger_numbers",
        sa.Column("root", sa.Text),
        sa.Column("product", sa.Text, comment="live, waiting or removed"),
        sa.Column(
            "number", sa.Integer, nullable=False, comment="of its ledger entries, in the order in which products came"
        ),
        sa.PrimaryKeyConstraint("root", "product", name="ledger_numbers_pk"),
        sa.UniqueConstraint("root", "number", name="ledger_numbers_root_number_uq"),
        comment="kept by triggers; a number is never given to another product",
    )

"""The registry's first schema: its tables, the function that one of their defaults calls, and its rules.

The functions take their search path from this session, which leads to the registry's schema. So they work from any psql session.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from registry.migrations.first_rules import FIRST_RULES

revision = "0001_first_schema"  # without the v: alembic would take v0001, of development, for a short form of this
down_revision = None
readable_by: tuple[str, ...] = ()
"""The last revisions of earlier releases that work with this schema too (`registry.repository.connection`)."""

EDIT_VERSION = """
CREATE FUNCTION edit_version() RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  this text := pg_current_xact_id() || '@' || extract(epoch FROM transaction_timestamp());
  found bigint;
BEGIN
  UPDATE meta SET version = version + 1, edited_in = this WHERE edited_in IS DISTINCT FROM this;
  SELECT version INTO STRICT found FROM meta;
  RETURN found;
END $$;
COMMENT ON FUNCTION edit_version IS
  'the version of this transaction''s edit; the first call raises it, and other edits wait';
"""


def upgrade() -> None:
    op.execute(EDIT_VERSION)
    _settings()
    _definitions()
    _products()
    _walks()
    _runs()
    _statistics()
    _requests()
    for statement in FIRST_RULES:
        op.execute(statement)


def _settings() -> None:
    op.create_table(
        "meta",
        sa.Column(
            "one",
            sa.Boolean,
            sa.CheckConstraint("one", name="meta_one_row_ck"),
            server_default=sa.text("true"),
            comment="there is one row",
        ),
        sa.Column(
            "version",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text("0"),
            comment="rises with each edit transaction",
        ),
        sa.Column("edited_in", sa.Text, comment="the transaction that raised the version last"),
        sa.Column(
            "identity",
            sa.Text,
            nullable=False,
            server_default=sa.text("gen_random_uuid()::text"),
            comment="random; the table and the checkpoint hold it too",
        ),
        sa.Column("job", sa.Text, comment="the job that runs by this registry; null: none ever ran"),
        sa.Column("table_name", sa.Text, comment="the table that the job writes; null: none"),
        sa.PrimaryKeyConstraint("one", name="meta_pk"),
    )
    op.create_table(
        "slots",
        sa.Column("slot", sa.Integer, autoincrement=False),
        sa.PrimaryKeyConstraint("slot", name="slots_pk"),
        sa.CheckConstraint("slot BETWEEN 1 AND 20", name="slots_of_dynamodb_ck"),
        comment="1..n: the table has GSI_1..GSI_n",
    )


def _definitions() -> None:
    op.create_table(
        "entities",
        sa.Column("name", sa.Text),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("key", ARRAY(sa.Text), nullable=False, comment="never changes: rows are stored under it"),
        sa.Column("shards", sa.Integer, nullable=False, comment="never changes: rows are stored under it"),
        sa.Column("columns", sa.JSON, nullable=False, comment="declared column: its type"),
        sa.Column(
            "dropped",
            sa.JSON,
            nullable=False,
            server_default=sa.text("'{}'"),
            comment="column of stored rows that is declared no more: its last type; kept by a trigger",
        ),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("created_version", sa.BigInteger, nullable=False, server_default=sa.text("edit_version()")),
        sa.PrimaryKeyConstraint("name", name="entities_pk"),
        sa.UniqueConstraint("topic", name="entities_topic_uq", deferrable=True, initially="DEFERRED"),
        sa.CheckConstraint("cardinality(key) > 0", name="entities_has_key_ck"),
        sa.CheckConstraint("shards > 0", name="entities_has_shards_ck"),
    )
    op.create_table(
        "assignments",
        sa.Column("entity", sa.Text),
        sa.Column("slot", sa.Integer, autoincrement=False),
        sa.Column(
            "columns", ARRAY(sa.Text), nullable=False, comment="in the order in which the slot's key encodes them"
        ),
        sa.Column("state", sa.Text, nullable=False, comment="an assignment that is free is no row"),
        sa.Column(
            "changed_version",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text("0"),
            comment="the registry version of its state; kept by a trigger",
        ),
        sa.PrimaryKeyConstraint("entity", "slot", name="assignments_pk"),
        sa.ForeignKeyConstraint(["entity"], ["entities.name"], name="assignments_entity_fk"),
        sa.ForeignKeyConstraint(["slot"], ["slots.slot"], name="assignments_slot_fk"),
        sa.CheckConstraint("cardinality(columns) > 0", name="assignments_has_columns_ck"),
        sa.CheckConstraint(
            "state IN ('planned', 'writing', 'backfilling', 'serving', 'retiring')", name="assignments_state_ck"
        ),
    )
    op.create_index(
        "assignments_columns_ix",
        "assignments",
        ["entity", "columns"],
        unique=True,
        postgresql_where=sa.text("state = 'serving'"),
    )


def _products() -> None:
    op.create_table(
        "joins",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True)),
        sa.Column("child", sa.Text, nullable=False),
        sa.Column("child_columns", ARRAY(sa.Text), nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("parent_columns", ARRAY(sa.Text), nullable=False),
        sa.Column(
            "strong",
            sa.Boolean,
            nullable=False,
            server_default=sa.text("false"),
            comment="true: no slot answers it",
        ),
        sa.PrimaryKeyConstraint("id", name="joins_pk"),
        sa.ForeignKeyConstraint(["child"], ["entities.name"], name="joins_child_fk"),
        sa.ForeignKeyConstraint(["parent"], ["entities.name"], name="joins_parent_fk"),
        sa.UniqueConstraint(
            "child",
            "child_columns",
            "parent",
            "parent_columns",
            "strong",
            name="joins_child_child_columns_parent_parent_columns_strong_uq",
        ),
        sa.CheckConstraint(
            "cardinality(child_columns) > 0 AND cardinality(child_columns) = cardinality(parent_columns)",
            name="joins_pairs_ck",
        ),
    )
    op.create_table(
        "access_paths",
        sa.Column("join_id", sa.BigInteger, autoincrement=False),
        sa.Column("direction", sa.Text, comment="down: queries read child rows; up: parent rows"),
        sa.Column("entity", sa.Text, nullable=False, comment="the side that queries read"),
        sa.Column("slot", sa.Integer, comment="null: edges or, without them, a key read"),
        sa.Column("edges", ARRAY(sa.Text), comment="the fields by which edges name the rows of that side"),
        sa.PrimaryKeyConstraint("join_id", "direction", name="access_paths_pk"),
        sa.ForeignKeyConstraint(["join_id"], ["joins.id"], name="access_paths_join_id_fk", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["entity"], ["entities.name"], name="access_paths_entity_fk"),
        sa.ForeignKeyConstraint(
            ["entity", "slot"],
            ["assignments.entity", "assignments.slot"],
            name="access_paths_entity_slot_fk",
            ondelete="RESTRICT",
        ),
        sa.CheckConstraint("direction IN ('down', 'up')", name="access_paths_direction_ck"),
        sa.CheckConstraint("slot IS NULL OR edges IS NULL", name="access_paths_one_way_ck"),
    )
    op.create_table(
        "products",
        sa.Column("name", sa.Text),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("retracted", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.PrimaryKeyConstraint("name", name="products_pk"),
        sa.UniqueConstraint("topic", name="products_topic_uq", deferrable=True, initially="DEFERRED"),
        sa.ForeignKeyConstraint(["root"], ["entities.name"], name="products_root_fk"),
        sa.CheckConstraint("version > 0", name="products_version_ck"),
    )
    op.create_table(
        "product_joins",
        sa.Column("product", sa.Text),
        sa.Column("join_id", sa.BigInteger),
        sa.Column("position", sa.Integer, nullable=False, comment="parents first, as the definition is written"),
        sa.PrimaryKeyConstraint("product", "join_id", name="product_joins_pk"),
        sa.ForeignKeyConstraint(["product"], ["products.name"], name="product_joins_product_fk", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["join_id"], ["joins.id"], name="product_joins_join_id_fk"),
    )


def _runs() -> None:
    op.create_table(
        "history",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True)),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("entry", sa.Text, nullable=False, comment="the table"),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("old", sa.JSON),
        sa.Column("new", sa.JSON),
        sa.PrimaryKeyConstraint("id", name="history_pk"),
        comment="written by triggers, so that edits made by psql are in it too",
    )
    op.create_table(
        "epochs",
        sa.Column("topic", sa.Text),
        sa.Column("topic_id", sa.Text),
        sa.Column("partition", sa.Integer, autoincrement=False),
        sa.Column("from_offset", sa.BigInteger, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, autoincrement=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column(
            "entity",
            sa.Text,
            nullable=False,
            server_default="",
            comment="the entity that read the topic then; empty: none",
        ),
        sa.PrimaryKeyConstraint("topic", "topic_id", "partition", "from_offset", "epoch", name="epochs_pk"),
    )
    op.create_table(
        "leases",
        sa.Column("job", sa.Text),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("owner", sa.Text, comment="null: released"),
        sa.Column("acquired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("renewed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "expires_after",
            sa.Double,
            nullable=False,
            comment="seconds without a renewal after which it may be taken",
        ),
        sa.Column("lanes", sa.Integer, nullable=False, comment="the highest number of any run"),
        sa.Column("applied_version", sa.BigInteger, comment="the last registry version that the job applied"),
        sa.Column("report", sa.JSON, comment="the state of the run, as it reported it last"),
        sa.Column("reported_at", sa.DateTime(timezone=True)),
        sa.Column("ended_run", sa.BigInteger, comment="the last run that published something, as reported last"),
        sa.Column("ended_round", sa.BigInteger, comment="its last round that published something and ended"),
        sa.Column("ended", sa.JSON, comment="how the last run ended; null: it lives, or ended without a word"),
        sa.PrimaryKeyConstraint("job", name="leases_pk"),
    )
    op.create_table(
        "attempts",
        sa.Column("job", sa.Text),
        sa.Column("lane", sa.Integer, autoincrement=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, comment="of the lane's task in this round, from 0"),
        sa.PrimaryKeyConstraint("job", "lane", name="attempts_pk"),
        sa.ForeignKeyConstraint(["job"], ["leases.job"], name="attempts_job_fk"),
    )


def _statistics() -> None:
    """Statistics of the state. They are no edit: no history, no version."""
    op.create_table(
        "entity_statistics",
        sa.Column("entity", sa.Text),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("mean_bytes", sa.Double, nullable=False, comment="of a sample's rows"),
        sa.Column("most_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("entity", name="entity_statistics_pk"),
        sa.ForeignKeyConstraint(["entity"], ["entities.name"], name="entity_statistics_entity_fk", ondelete="CASCADE"),
    )
    op.create_table(
        "join_statistics",
        sa.Column("join_id", sa.BigInteger, autoincrement=False),
        sa.Column("direction", sa.Text, comment="down: child rows are found; up: parent rows"),
        sa.Column("mean", sa.Double, nullable=False, comment="rows found for a row of the other side"),
        sa.Column("most", sa.BigInteger, nullable=False, comment="rows found for one value"),
        sa.Column("value", sa.Text, comment="the value with most rows; null: no row has one"),
        sa.PrimaryKeyConstraint("join_id", "direction", name="join_statistics_pk"),
        sa.ForeignKeyConstraint(["join_id"], ["joins.id"], name="join_statistics_join_id_fk", ondelete="CASCADE"),
        sa.CheckConstraint("direction IN ('down', 'up')", name="join_statistics_direction_ck"),
    )


def _walks() -> None:
    """Products that wait, the walks over stored rows that these wait for, and the row that says whether all work is paused."""
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


def _requests() -> None:
    """Which dead letters an operator asks the running job to replay."""
    op.create_table(
        "replay_requests",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True)),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False, server_default=sa.text("''"), comment="empty: not given"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'waiting'")),
        sa.PrimaryKeyConstraint("id", name="replay_requests_pk"),
        sa.CheckConstraint("state IN ('waiting', 'withdrawn', 'done')", name="replay_requests_state_ck"),
        comment="replays that operators ask the running job for; no edit",
    )
    op.create_table(
        "replay_letters",
        sa.Column("request", sa.BigInteger, autoincrement=False),
        sa.Column("topic", sa.Text, comment="of the record that the dead letter keeps"),
        sa.Column("partition", sa.Integer, autoincrement=False),
        sa.Column("offset", sa.BigInteger, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, autoincrement=False),
        sa.Column("outcome", sa.Text, comment="null: the job has not replayed the letter yet"),
        sa.Column("reason", sa.Text, comment="why the replay refused the letter, without values of the record"),
        sa.PrimaryKeyConstraint("request", "topic", "partition", "offset", "epoch", name="replay_letters_pk"),
        sa.ForeignKeyConstraint(
            ["request"], ["replay_requests.id"], name="replay_letters_request_fk", ondelete="CASCADE"
        ),
        comment="the dead letters of replay requests",
    )

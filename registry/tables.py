"""The registry's tables: its content, what jobs and landings leave, and the replay requests of operators. Only the migrations
have the triggers, the functions and the view `unserved`.

All names are without a schema: the search path of each connection leads to the schema of the settings.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

_TEXTS = ARRAY(Text, as_tuple=True)

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)

meta = Table(
    "meta",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true"), comment="there is one row"),
    Column("version", BigInteger, nullable=False, server_default=text("0"), comment="rises with each edit transaction"),
    Column("edited_in", Text, comment="the transaction that raised the version last"),
    Column(
        "identity",
        Text,
        nullable=False,
        server_default=text("gen_random_uuid()::text"),
        comment="random; the table and the checkpoint hold it too",
    ),
    Column("job", Text, comment="the job that runs by this registry; null: none ever ran"),
    Column("table_name", Text, comment="the table that the job writes; null: none"),
    CheckConstraint("one", name="meta_one_row_ck"),
)

slots = Table(
    "slots",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    CheckConstraint("slot BETWEEN 1 AND 20", name="slots_of_dynamodb_ck"),
    comment="1..n: the table has GSI_1..GSI_n",
)

entities = Table(
    "entities",
    metadata,
    Column("name", Text, primary_key=True),
    Column("topic", Text, nullable=False),
    Column("key", _TEXTS, nullable=False, comment="never changes: rows are stored under it"),
    Column("shards", Integer, nullable=False, comment="never changes: rows are stored under it"),
    Column("columns", JSON, nullable=False, comment="declared column: its type"),
    Column(
        "dropped",
        JSON,
        nullable=False,
        server_default=text("'{}'"),
        comment="column of stored rows that is declared no more: its last type; kept by a trigger",
    ),
    Column("definition", JSON, nullable=False),
    Column("created_version", BigInteger, nullable=False, server_default=text("edit_version()")),
    CheckConstraint("cardinality(key) > 0", name="entities_has_key_ck"),
    CheckConstraint("shards > 0", name="entities_has_shards_ck"),
)

layouts = Table(
    "layouts",
    metadata,
    Column("entity", Text, ForeignKey("entities.name", ondelete="CASCADE"), primary_key=True),
    Column("version", BigInteger, nullable=False, comment="of the registry; a slot or edges became written then"),
    comment="kept by triggers",
)

assignments = Table(
    "assignments",
    metadata,
    Column("entity", Text, ForeignKey("entities.name"), primary_key=True),
    Column("slot", Integer, ForeignKey("slots.slot"), primary_key=True, autoincrement=False),
    Column("columns", _TEXTS, nullable=False, comment="in the order in which the slot's key encodes them"),
    Column("state", Text, nullable=False, comment="an assignment that is free is no row"),
    Column(
        "changed_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="the registry version of its state; kept by a trigger",
    ),
    CheckConstraint("cardinality(columns) > 0", name="assignments_has_columns_ck"),
    CheckConstraint(
        "state IN ('planned', 'writing', 'backfilling', 'serving', 'retiring')", name="assignments_state_ck"
    ),
)
Index(
    "assignments_columns_ix",
    assignments.c.entity,
    assignments.c.columns,
    unique=True,
    postgresql_where=assignments.c.state == "serving",
)

joins = Table(
    "joins",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("child", Text, ForeignKey("entities.name"), nullable=False),
    Column("child_columns", _TEXTS, nullable=False),
    Column("parent", Text, ForeignKey("entities.name"), nullable=False),
    Column("parent_columns", _TEXTS, nullable=False),
    Column("strong", Boolean, nullable=False, server_default=text("false"), comment="true: no slot answers it"),
    UniqueConstraint("child", "child_columns", "parent", "parent_columns", "strong"),
    CheckConstraint(
        "cardinality(child_columns) > 0 AND cardinality(child_columns) = cardinality(parent_columns)",
        name="joins_pairs_ck",
    ),
)

access_paths = Table(
    "access_paths",
    metadata,
    Column("join_id", BigInteger, ForeignKey("joins.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("direction", Text, primary_key=True, comment="down: queries read child rows; up: parent rows"),
    Column("entity", Text, ForeignKey("entities.name"), nullable=False, comment="the side that queries read"),
    Column("slot", Integer, comment="null: edges or, without them, a key read"),
    Column("edges", _TEXTS, comment="the fields by which edges name the rows of that side"),
    ForeignKeyConstraint(["entity", "slot"], ["assignments.entity", "assignments.slot"], ondelete="RESTRICT"),
    CheckConstraint("direction IN ('down', 'up')", name="access_paths_direction_ck"),
    CheckConstraint("slot IS NULL OR edges IS NULL", name="access_paths_one_way_ck"),
)


def _product_columns(version: str | None = None) -> list[Column[Any]]:
    """The columns of a product, live or waiting. `version`: the comment of its version."""
    return [
        Column("name", Text, primary_key=True),
        Column("topic", Text, nullable=False),
        Column("root", Text, ForeignKey("entities.name"), nullable=False),
        Column("definition", JSON, nullable=False),
        Column("version", Integer, nullable=False, comment=version),
        Column("paused", Boolean, nullable=False, server_default=text("false")),
    ]


def _join_table(name: str, products: str) -> Table:
    """The table of the joins of these products."""
    return Table(
        name,
        metadata,
        Column("product", Text, ForeignKey(f"{products}.name", ondelete="CASCADE"), primary_key=True),
        Column("join_id", BigInteger, ForeignKey("joins.id"), primary_key=True),
        Column("position", Integer, nullable=False, comment="parents first, as the definition is written"),
    )


products = Table(
    "products",
    metadata,
    *_product_columns(),
    Column("retracted", Boolean, nullable=False, server_default=text("false")),
    CheckConstraint("version > 0", name="products_version_ck"),
)

product_joins = _join_table("product_joins", "products")
waiting_products = Table(
    "waiting_products",
    metadata,
    *_product_columns("that it has when it goes live"),
    comment="products that go live once stored rows have all their slots and edges",
)

waiting_joins = _join_table("waiting_joins", "waiting_products")

product_versions = Table(
    "product_versions",
    metadata,
    Column("product", Text, primary_key=True, comment="live, waiting or removed"),
    Column("version", Integer, nullable=False, comment="the highest so far; kept by triggers"),
)

ledger_numbers = Table(
    "ledger_numbers",
    metadata,
    Column("root", Text, primary_key=True),
    Column("product", Text, primary_key=True, comment="live, waiting or removed"),
    Column("number", Integer, nullable=False, comment="of its ledger entries, in the order in which products came"),
    UniqueConstraint("root", "number"),
    comment="kept by triggers; a number is never given to another product",
)

work = Table(
    "work",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true"), comment="there is one row"),
    Column("paused", Boolean, nullable=False, server_default=text("false"), comment="true: jobs read no batches"),
    Column(
        "paused_topics",
        _TEXTS,
        nullable=False,
        server_default=text("'{}'"),
        comment="jobs read no records of them",
    ),
    CheckConstraint("one", name="work_one_row_ck"),
)

history = Table(
    "history",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text),
    Column("entry", Text, nullable=False, comment="the table"),
    Column("operation", Text, nullable=False),
    Column("old", JSON),
    Column("new", JSON),
    comment="written by triggers, so that edits made by psql are in it too",
)


# What jobs and landings leave: leases, epochs, the progress of walks, statistics. They are no edits.

walk_progress = Table(
    "walk_progress",
    metadata,
    Column("walk", Text, primary_key=True),
    Column("rows", BigInteger, nullable=False, comment="read so far"),
    Column("written", BigInteger, nullable=False),
    Column("of", BigInteger, nullable=False, comment="the rows that the job expects; 0: unknown"),
    Column("done", Boolean, nullable=False),
    Column("seconds", Double, nullable=False, comment="since the walk began"),
    comment="how far walks over stored rows are; no edit",
)

epochs = Table(
    "epochs",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("topic_id", Text, primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("from_offset", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("recorded_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column(
        "entity",
        Text,
        primary_key=True,
        server_default="",
        comment="the entity that read the topic then; empty: none",
    ),
    Column(
        "at_end",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="the partition ended there when the boundary was recorded",
    ),
)

leases = Table(
    "leases",
    metadata,
    Column("job", Text, primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("owner", Text, comment="null: released"),
    Column("acquired_at", DateTime(timezone=True), nullable=False),
    Column("renewed_at", DateTime(timezone=True), nullable=False),
    Column("expires_after", Double, nullable=False, comment="seconds without a renewal after which it may be taken"),
    Column("lanes", Integer, nullable=False, comment="the highest number of any run"),
    Column("applied_version", BigInteger, comment="the last registry version that the job applied"),
    Column("report", JSON, comment="the state of the run, as it reported it last"),
    Column("reported_at", DateTime(timezone=True)),
    Column("ended_run", BigInteger, comment="the last run that published something, as reported last"),
    Column("ended_round", BigInteger, comment="its last round that published something and ended"),
    Column("ended", JSON, comment="how the last run ended; null: it lives, or ended without a word"),
    Column("past", JSON, comment="what outlives a run: its failures, and the last batch; null: nothing yet"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", Text, ForeignKey("leases.job"), primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False, comment="of the lane's task in this round, from 0"),
)

entity_statistics = Table(
    "entity_statistics",
    metadata,
    Column("entity", Text, ForeignKey("entities.name", ondelete="CASCADE"), primary_key=True),
    Column("taken_at", DateTime(timezone=True), nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("mean_bytes", Double, nullable=False, comment="of a sample's rows"),
    Column("most_bytes", BigInteger, nullable=False),
    Column("entry_bytes", Double, comment="of what an index shows of a row"),
    Column("undeclared_bytes", Double, comment="of the undeclared columns of a row"),
)

join_statistics = Table(
    "join_statistics",
    metadata,
    Column("join_id", BigInteger, ForeignKey("joins.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("direction", Text, primary_key=True, comment="down: child rows are found; up: parent rows"),
    Column("mean", Double, nullable=False, comment="rows found for a row of the other side"),
    Column("most", BigInteger, nullable=False, comment="rows found for one value"),
    Column("value", Text, comment="the value with most rows; null: no row has one"),
    CheckConstraint("direction IN ('down', 'up')", name="join_statistics_direction_ck"),
)

landings = Table(
    "landings",
    metadata,
    Column("id", Text, primary_key=True, comment="random, also kept in the target"),
    Column("product", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("place", Text, nullable=False, comment="the target's address, without user and password"),
    Column("made_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    comment="the targets that hold documents of products; no edit",
)


# The dead letters that an operator asks the running job to replay. They are no edit: no history, no version, except for repairs
# from the source.

replay_requests = Table(
    "replay_requests",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=text("''"), comment="empty: not given"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    Column("act", Text, nullable=False, server_default=text("'replay'"), comment="replay or drop"),
    Column("selection", Text, nullable=False, server_default=text("''"), comment="which letters, in words"),
    Column("ended_at", DateTime(timezone=True), comment="null: letters wait, or an older release ended it"),
    CheckConstraint("state IN ('waiting', 'withdrawn', 'done')", name="replay_requests_state_ck"),
    comment="replays that operators ask the running job for, and letters that they dropped; no edit",
)

replay_letters = Table(
    "replay_letters",
    metadata,
    Column(
        "request",
        BigInteger,
        ForeignKey("replay_requests.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("topic", Text, primary_key=True, comment="of the record that the dead letter keeps"),
    Column("partition", BigInteger, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("outcome", Text, comment="null: the job has not replayed the letter yet"),
    Column("reason", Text, comment="why the replay refused the letter, without values of the record"),
    comment="the dead letters of replay requests",
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("topic", Text, primary_key=True, comment="of the record that the dead letter keeps"),
    Column("partition", BigInteger, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("mark", Text, primary_key=True, comment="tells records of topics of one name apart"),
    Column("epoch", BigInteger, nullable=False, comment="the last one in which a job refused the record"),
    Column("code", Text, nullable=False),
    Column("column", Text, nullable=False, comment="that the reason names; empty: none"),
    Column("entity", Text, nullable=False, comment="empty: not known"),
    Column("first_seen", Double, nullable=False, comment="seconds since 1970"),
    Column("last_seen", Double, nullable=False, comment="seconds since 1970"),
    Column("outcome", Text, comment="null: the letter waits"),
    comment="the account of dead letters, without values of records; no edit",
)
Index(
    "dead_letters_waiting_ix",
    dead_letters.c.topic,
    dead_letters.c.code,
    dead_letters.c.column,
    postgresql_where=dead_letters.c.outcome.is_(None),
)

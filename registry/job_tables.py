"""The registry's tables of what jobs and landings leave: leases, epochs, the progress of walks, statistics. They are no edits."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Integer,
    Table,
    Text,
    func,
)

from registry.tables import metadata

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
        "entity", Text, nullable=False, server_default="", comment="the entity that read the topic then; empty: none"
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

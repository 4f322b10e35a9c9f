"""The registry's tables of replay requests: the dead letters that an operator asks the running job to replay. They are no edit:
no history, no version, except for repairs from the source."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Integer,
    Table,
    Text,
    func,
    text,
)

from registry.tables import metadata

replay_requests = Table(
    "replay_requests",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=text("''"), comment="empty: not given"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    CheckConstraint("state IN ('waiting', 'withdrawn', 'done')", name="replay_requests_state_ck"),
    comment="replays that operators ask the running job for; no edit",
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
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("outcome", Text, comment="null: the job has not replayed the letter yet"),
    Column("reason", Text, comment="why the replay refused the letter, without values of the record"),
    comment="the dead letters of replay requests",
)

"""The tables of the first schema for replay requests: which dead letters an operator asks the running job to replay."""

import sqlalchemy as sa
from alembic import op


def create_request_tables() -> None:
    """Creates the tables."""
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

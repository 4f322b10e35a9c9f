"""The registry accounts for the dead letters, each once, and remembers which letters a person chose, to replay or to drop them. A
place of a document has a hash in place of its partition, which may need 64 bits."""

import sqlalchemy as sa
from alembic import op

from registry.migrations.versions import v0009_shared_topics as earlier

revision = "0010_letters"
down_revision = earlier.revision
readable_by: tuple[str, ...] = (*earlier.readable_by, earlier.revision)


def upgrade() -> None:
    requests = "replay_requests"
    op.add_column(
        requests, sa.Column("act", sa.Text, nullable=False, server_default="replay", comment="replay or drop")
    )
    op.add_column(
        requests,
        sa.Column("selection", sa.Text, nullable=False, server_default="", comment="which letters, in words"),
    )
    ended = "null: letters wait, or an older release ended it"
    op.add_column(requests, sa.Column("ended_at", sa.DateTime(timezone=True), comment=ended))
    op.create_table_comment(
        requests, "replays that operators ask the running job for, and letters that they dropped; no edit"
    )
    op.alter_column("replay_letters", "partition", type_=sa.BigInteger)
    op.create_table(
        "dead_letters",
        sa.Column("topic", sa.Text, comment="of the record that the dead letter keeps"),
        sa.Column("partition", sa.BigInteger, autoincrement=False),
        sa.Column("offset", sa.BigInteger, autoincrement=False),
        sa.Column("mark", sa.Text, comment="tells records of topics of one name apart"),
        sa.Column("epoch", sa.BigInteger, nullable=False, comment="the last one in which a job refused the record"),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("column", sa.Text, nullable=False, comment="that the reason names; empty: none"),
        sa.Column("entity", sa.Text, nullable=False, comment="empty: not known"),
        sa.Column("first_seen", sa.Double, nullable=False, comment="seconds since 1970"),
        sa.Column("last_seen", sa.Double, nullable=False, comment="seconds since 1970"),
        sa.Column("outcome", sa.Text, comment="null: the letter waits"),
        sa.PrimaryKeyConstraint("topic", "partition", "offset", "mark", name="dead_letters_pk"),
        comment="the account of dead letters, without values of records; no edit",
    )
    op.create_index(
        "dead_letters_waiting_ix",
        "dead_letters",
        ["topic", "code", "column"],
        postgresql_where=sa.text("outcome IS NULL"),
    )

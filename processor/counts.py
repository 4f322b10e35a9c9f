"""The counters of a job: one name each for the rooms that count, and for the metrics, the log and the texts that read.

A tally is a `Counter` with these names. Tallies add up over tasks, rounds and a whole run, and the report of the job has them: so
a name is a text, and stays. The counters of histograms are in `rounds/round_counts.py`, those of a store
in `statestore/store.py`. A landing has its own.
"""

from typing import Final, Literal

Outcome = Literal["applied", "superseded", "ignored", "dead letters"]
"""What becomes of a record: each that the job reads counts in one of these."""
OUTCOMES: Final[tuple[Outcome, ...]] = ("applied", "superseded", "ignored", "dead letters")
Stage = Literal["write", "publish"]
STAGES: Final[tuple[Stage, ...]] = ("write", "publish")
BATCH: Final = "batch"
"""For the time of whole micro-batches, as the name of a stage."""


class Count:
    """The names. mypy refuses one that is not here."""

    READ: Final = "read"
    """Records."""
    APPLIED: Final = "applied"
    """Records whose change became a row, or emptied a table."""
    SUPERSEDED: Final = "superseded"
    """Records of which a newer change of the row came before, or in the same batch."""
    IGNORED: Final = "ignored"
    DEAD_LETTERS: Final = "dead letters"
    TRUNCATES: Final = "truncates"
    """Records that empty a table; they are applied, too."""

    PUBLISHED: Final = "published"
    """Documents and tombstones that went out, without CORRECTIONS."""
    CORRECTIONS: Final = "corrections"
    """Documents that went out because only settling found them."""
    UNCHANGED: Final = "unchanged"
    """Documents equal to the last message."""
    CONTENDED: Final = "contended"
    """Publications that go again: another publisher reserved meanwhile."""
    UNFIT: Final = "unfit"
    """Documents that do not fit their topic."""
    BACKLOG: Final = "backlog"
    """Roots that a round left to the backlog."""
    HELD: Final = "held"
    """Times that a round left a document to its gate."""
    RELEASED: Final = "released"
    """Documents that gates let go."""
    RELEASED_INCOMPLETE: Final = "released incomplete"
    """Of them, those that went out at `at_most`."""
    CUT: Final = "cut"
    """Lists in documents that are longer than their `limit`."""
    AMBIGUOUS: Final = "ambiguous"
    """Joins of `one` without `order_by` that found several rows."""
    CYCLES: Final = "cycles"
    """Rows that a recursive join left out, because they are above themselves."""
    UNREADABLE: Final = "unreadable"
    """Stored values that do not fit their columns."""

    REPLAYED: Final = "replayed"
    """Dead letters, whatever came of it."""
    SETTLED: Final = "settled"
    """Open changes."""
    FAN_OUT_PAGES: Final = "fan-out pages"
    """Pages that later rounds did."""
    WALKED: Final = "walked"
    """Stored rows that walks read."""
    FILLED: Final = "filled"
    """Of them, those that a walk wrote."""
    DELETED: Final = "deleted"
    """Stored rows that a truncate deleted."""
    BATCHES: Final = "batches"
    """Micro-batches that ended."""


IN_TOPIC: Final = " in "
"""Between an outcome and a topic: `applied in user`. No topic has a space."""
DEAD_LETTERS_OF: Final = "dead letters: "
"""Before the code of a reason."""
NULLED_OF: Final = "nulled: "
"""Before an entity and its column, `item.at`: values that the declared type cannot hold, and which are null."""
IGNORED_AS: Final = "ignored: "
"""Before the reason, alone and with its topic: `ignored: control in user`."""
REPLAYED_AS: Final = "replayed: "
"""Before the outcome of a replayed dead letter."""
MESSAGES_OF: Final = "messages of "
"""Before the name of a product."""
ASSEMBLED_OF: Final = "assembled of "
"""Before the name of a product: its documents that were made, also those equal to the last message."""
BYTES_OF: Final = "bytes of "
"""Before the name of a product: of the keys and values of its messages."""
WRITES_OF: Final = "ledger writes/1000 of "
"""Before the name of a product: its part of the writes to the ledger, in thousandths of a write."""
READS_OF: Final = "reads/1000 of "
"""Before the name of a product: its part of the reads for its documents, in thousandths of a read."""
RENDER_OF: Final = "render us of "
"""Before the name of a product: the time of rendering and encoding its documents, in microseconds."""
PRODUCT_WORK: Final = (MESSAGES_OF, ASSEMBLED_OF, BYTES_OF, WRITES_OF, READS_OF, RENDER_OF)
"""What counts by product."""
REQUEST: Final = "request "
"""Before the name of a request to the table."""
STAGE: Final = "ms "
"""Before a stage: its time in milliseconds."""

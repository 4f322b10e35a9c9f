"""The account of a round: each record that a batch reads is applied, superseded, ignored or a dead letter."""

from collections import Counter
from collections.abc import Mapping

from processor.errors import AccountError, TooManyRejects
from processor.settings import Settings

PARTS = ("applied", "superseded", "ignored", "dead letters")
IN_TOPIC = " in "
"""In the name of the counter of a part and a topic: `applied in user`. No topic has a space."""


def count_records(tally: Counter[str], part: str, topic: str, records: int = 1) -> None:
    """Counts records of a topic: in the part of the account, and in that of the topic."""
    tally[part] += records
    tally[f"{part}{IN_TOPIC}{topic}"] += records


def check_account(tally: Mapping[str, int], settings: Settings) -> None:
    """Raises AccountError when a record is not accounted for, TooManyRejects when the share of dead letters is above
    its limit."""
    read, dead = tally.get("read", 0), tally.get("dead letters", 0)
    parts = {part: tally.get(part, 0) for part in PARTS}
    if read != sum(parts.values()):
        counts = ", ".join(f"{n} {part}" for part, n in parts.items())
        raise AccountError(f"{read} records were read, but {counts}; the batch is not committed: please report this")
    if dead > settings.max_reject_free and dead > read * settings.max_reject_share:
        raise TooManyRejects(
            f"{dead} of {read} records of a batch are dead letters, more than max_reject_share = {settings.max_reject_share}; "
            f"their reasons are in the rejects file of `try`, or in topic {settings.rejects_topic} (`statestore rejects list`). "
            "Correct the source or the definitions, or raise the limit"
        )

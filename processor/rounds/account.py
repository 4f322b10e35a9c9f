"""The account of a round: each record that a batch reads is applied, superseded, ignored or a dead letter."""

from collections.abc import Mapping

from processor.errors import AccountError, TooManyRejects
from processor.settings import Settings

PARTS = ("applied", "superseded", "ignored", "dead letters")


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

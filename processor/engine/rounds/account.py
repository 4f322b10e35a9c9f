"""The account of a round: each record that a batch reads is applied, superseded, ignored or a dead letter."""

from collections import Counter
from collections.abc import Mapping

from processor.counts import DEAD_LETTERS_OF, IN_TOPIC, OUTCOMES, Count, Outcome
from processor.environment.settings.settings import BatchSettings
from processor.errors import AccountError, TooManyRejects

REASONS_SHOWN = 5
"""Reasons that the message of a stop names, the most frequent first."""


def count_records(tally: Counter[str], outcome: Outcome, topic: str, records: int = 1) -> None:
    """Counts records of a topic: by their outcome, and by outcome and topic."""
    tally[outcome] += records
    tally[f"{outcome}{IN_TOPIC}{topic}"] += records


def check_account(tally: Mapping[str, int], letters: Mapping[str, str], settings: BatchSettings) -> None:
    """Raises AccountError when a record is not accounted for, TooManyRejects when the share of dead letters is above
    its limit. `letters`: the code of a reason -> `PLACE: REASON` of one of its dead letters."""
    read, dead = tally.get(Count.READ, 0), tally.get(Count.DEAD_LETTERS, 0)
    counts = {outcome: tally.get(outcome, 0) for outcome in OUTCOMES}
    if read != sum(counts.values()):
        shown = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        raise AccountError(f"{read} records were read, but {shown}; the batch is not committed: please report this")
    if dead > settings.max_reject_free and dead > read * settings.max_reject_share:
        reasons = sorted(letters, key=lambda code: (-tally[f"{DEAD_LETTERS_OF}{code}"], code))
        shown = "; ".join(
            f"{tally[f'{DEAD_LETTERS_OF}{code}']} {code}, as {letters[code]}" for code in reasons[:REASONS_SHOWN]
        )
        more = f"; and {len(reasons) - REASONS_SHOWN} other reasons" if len(reasons) > REASONS_SHOWN else ""
        example = letters[reasons[0]].partition(":")[0]
        raise TooManyRejects(
            f"{dead} of {read} records of a batch are dead letters, more than max_reject_share = {settings.max_reject_share} "
            f"allows: {shown}{more}. The job does not commit the batch, and the next start reads it again. Look at one "
            f"(`statestore dead-letters show {example}`; of `try`: in its file of dead letters). Then correct the definitions "
            "(`statestore apply`) or the source, or raise max_reject_share"
        )

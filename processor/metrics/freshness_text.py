"""How old documents are when they are published, in words. Pure."""

from collections.abc import Mapping
from math import inf

from processor.rounds.freshness import BOUNDS, Freshness, read_freshness
from processor.wording.durations import DAY, MINUTE, duration_text


def freshness_text(tally: Mapping[str, int]) -> str:
    """The median and the 99th percentile of the ages of documents; of old records their mean age; empty without documents."""
    freshness = read_freshness(tally)
    if not freshness.count:
        return ""
    if freshness.bucket(0.5)[1] == inf:
        mean = freshness.seconds / freshness.count
        longest = f"freshness {age_text(freshness, 0.5)}"
        return f"freshness of old records: {duration_text(mean)} on average" if mean > DAY else longest
    return f"freshness p50 {age_text(freshness, 0.5)}, p99 {age_text(freshness, 0.99)}"


def age_text(freshness: Freshness, share: float) -> str:
    """The age that this share of the documents does not exceed: the bounds of its bucket, since nothing else is known of it."""
    lower, upper = freshness.bucket(share)
    if upper == inf:
        return f"over {duration_text(BOUNDS[-1])}"
    if not lower:
        return f"under {_seconds(upper)} s"
    if upper < MINUTE:
        return f"{_seconds(lower)} to {_seconds(upper)} s"
    return f"{duration_text(lower)} to {duration_text(upper)}"


def _seconds(bound: float) -> str:
    return f"{bound:.3g}"

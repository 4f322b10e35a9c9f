"""How old documents are when they are published, in words. Pure."""

from collections.abc import Mapping

from processor.rounds.freshness import BOUNDS, read_freshness
from processor.wording.durations import DAY, MINUTE, duration_text


def freshness_text(tally: Mapping[str, int]) -> str:
    """The median and the 99th percentile of the ages of documents; of old records their mean age; empty without documents."""
    freshness = read_freshness(tally)
    if not freshness.count:
        return ""
    p50, p99 = map(freshness.quantile, (0.5, 0.99))
    longest = f"over {duration_text(BOUNDS[-1])}"
    if p50 > BOUNDS[-1]:
        mean = freshness.seconds / freshness.count
        return f"freshness of old records: {duration_text(mean)} on average" if mean > DAY else f"freshness {longest}"
    return f"freshness p50 {_age(p50)}, p99 {_age(p99) if p99 <= BOUNDS[-1] else longest}"


def _age(seconds: float) -> str:
    """An age; below a minute to the hundredth of a second."""
    return f"{seconds:.2f} s" if seconds < MINUTE else duration_text(seconds)

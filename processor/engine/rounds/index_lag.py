"""The lag of an index, as answers showed it, as a histogram in a tally.

An answer lags if it lacks an open change, or shows its row too old. The age counts from the end of the round that wrote the row
(of an earlier run: from the start of this run) to the end of the round that got the answer. So an answer to the round that
wrote the row has age 0. The histogram counts only answers that lag, and a change counts once for each index and round.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

INDEX_LAG = "index lag "
LAG_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bound of each bucket, in seconds. The last bucket has no bound."""
LAG_BUCKETS = (*(f"{INDEX_LAG}<= {bound:g} s" for bound in LAG_BOUNDS), f"{INDEX_LAG}> {LAG_BOUNDS[-1]:g} s")
"""The counter of each bucket in a tally."""
LAG_SUM = f"{INDEX_LAG}ms"
"""The counter of all ages together, in milliseconds."""


def count_lags(ages: Iterable[float]) -> Counter[str]:
    """The counters of answers that lag by so many seconds."""
    ages = list(ages)
    tally = Counter(LAG_BUCKETS[bisect_left(LAG_BOUNDS, age)] for age in ages)
    if ages:
        tally[LAG_SUM] = round(1000 * sum(ages))
    return tally

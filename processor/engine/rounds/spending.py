"""What a store has spent so far, as counters of a tally: `request Query`, `retries Query`, `throttles Query` and `half units
Query`, for each name of DynamoDB's API. The difference of two moments goes from a task to the driver in the task's tally."""

from collections import Counter

from processor.counts import REQUEST
from statestore.store import Store


def spending(store: Store) -> Counter[str]:
    """The counts of a store's requests, and of what they cost."""
    return Counter({f"{REQUEST}{name}": n for name, n in store.requests.items()}) + store.spent

"""How many need each durable item: an item goes when nobody needs it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from statestore.keys import Key


@dataclass(slots=True)
class ItemUses:
    """`counts`: of each item, the roots, the barriers and the transactions that need it."""

    counts: Counter[Key] = field(default_factory=Counter)

    def use(self, item: Key, items: set[Key]) -> None:
        """Adds the item to those that somebody needs."""
        if item not in items:
            items.add(item)
            self.counts[item] += 1

    def free(self, items: Iterable[Key]) -> Iterator[Key]:
        """Takes the items that somebody needs no more. Yields those of which this was the last use."""
        for item in items:
            self.counts[item] -= 1
            if not self.counts[item]:
                del self.counts[item]
                yield item

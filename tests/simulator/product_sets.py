"""Simulates random sets of products: 1 to 40 of them over three roots, which operators add, change, move to other topics and
remove while the job runs. More than twenty products of one root fill two ledger groups.

The products of a root take their contents from one list, many of them share joins, and some show equal documents.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import processor.engine.plan.planning as planning
from processor.language.product.product import Definitions
from tests.simulator.edit_shapes import CONTENTS
from tests.simulator.topic_edits import TopicSimulation
from tests.simulator.without.switch import replacing

SIZES = (1, 2, 3, 4, 5, 8, 12, 25, 40)
"""How many products a run may have."""


def _remembering(load: Callable[[Mapping[str, str]], Definitions]) -> Callable[[Mapping[str, str]], Definitions]:
    """Loads the same texts once: a version of the registry is read several times in a run."""
    known = lru_cache(maxsize=100)(lambda texts: load(dict(texts)))
    return lambda texts: known(tuple(texts.items()))


@dataclass(kw_only=True)
class ProductSetSimulation(TopicSimulation):
    """A run with a random set of products. `most`: how many come with one edit at most."""

    most: int = 1

    def run(self) -> None:
        rng = Random(f"{self.seed} set")
        size = rng.choice(SIZES)
        weights = rng.choice(((1, 1, 1), (5, 1, 1), (1, 0, 0)))
        kinds = rng.choices(("profile", "fans", "labels"), weights, k=size)
        self.catalogue = {f"{kind}{n}": CONTENTS[kind] for n, kind in enumerate(kinds)}
        self.most = rng.choice((1, size, size))
        with replacing((planning, "load_stored", _remembering))():
            TopicSimulation.run(self)
        self.facts["two groups"] += max(self.world.registry.snapshot.numbers.values(), default=0) >= 20

    def _most_first(self) -> int:
        return self.most

    def _some_contents(self) -> dict[str, int]:
        names = self.rng.sample(sorted(self.catalogue), self.rng.randint(1, self.most))
        return {name: self.rng.randrange(len(self.catalogue[name])) for name in names}

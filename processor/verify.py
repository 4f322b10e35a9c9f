"""Compares what was published with what the state says now: last message of each root against the document assembled anew.

    1. the last message of every key in the product's topic, by its hash; a sample of them, if asked
    2. the same documents assembled from the state, open changes laid over index answers
    3. those that differ are looked at again W later, topic and state alike: a job may have been between the two

Promises: what is told differs in value (numbers by value), at one moment each of topic and state. Does not find a root
that was never published; beside a running job, a document that it rewrites all the time, or that a large fan-out has yet
to reach, may be told although it will be right.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from processor.batch import CHUNK, document_body
from processor.lockstep import Lockstep
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.ledger import hash_of
from processor.model.open_changes import PARTITION, OpenChanges, read_durable
from processor.model.plan import Plan, ProductPlan
from processor.model.root_key import read_root_key
from statestore import keys
from statestore.store import Store

Topic = Callable[[], Iterable[Record]]
"""Reads the product's topic from its beginning to its end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A document that differs. `key`: of the message; `root`: the same as the table spells it, None where it is no key of the
    root; values None: no document."""

    product: str
    key: str
    root: str | None
    published: bytes | None
    state: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How many documents were compared, and those that differ, by key."""

    compared: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Compares documents of a plan. `wait`: sleeps for W."""

    plan: Plan
    lockstep: Lockstep
    wait: Callable[[], None]

    def verify(self, product: ProductPlan, topic: Topic, sample: int | None, random: Random) -> Verified:
        """Compares all documents of a product, or `sample` of them."""
        hashes = {_key(record): hash_of(record.value) for record in topic()}
        chosen = sorted(hashes) if sample is None or sample >= len(hashes) else random.sample(sorted(hashes), sample)
        suspects = {key for key, value in self._states(product, chosen) if hashes[key] != hash_of(value)}
        suspects |= {key for key in chosen if self._root(product, key) is None}
        return Verified(
            compared=len(chosen), differences=tuple(self._again(product, topic, suspects)) if suspects else ()
        )

    def _again(self, product: ProductPlan, topic: Topic, suspects: Collection[str]) -> Iterator[Difference]:
        self.wait()
        again = replace(self, lockstep=overlaid(self.lockstep))
        published = {key: record.value for record in topic() if (key := _key(record)) in suspects}
        states = dict(again._states(product, sorted(suspects)))
        for key in sorted(suspects):
            if key not in states or not _equal(published.get(key), states[key]):
                yield Difference(
                    product=product.product.name,
                    key=key,
                    root=self._root(product, key),
                    published=published.get(key),
                    state=states.get(key),
                )

    def _states(self, product: ProductPlan, wanted: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """The documents of these message keys as the state has them; a key that is none of the root's is left out."""
        roots = iter([(key, root) for key in wanted if (root := self._root(product, key)) is not None])
        while chunk := list(islice(roots, CHUNK)):
            bodies = self.lockstep.run(document_body(self.plan, product, root, Counter()) for _, root in chunk)
            yield from zip((key for key, _ in chunk), (body.value for body in bodies), strict=True)

    def _root(self, product: ProductPlan, key: str) -> str | None:
        """The root of a message's key; None where it is none."""
        try:
            if not isinstance(canonical_json.loads(key), dict):
                return None
            return keys.spell(read_root_key(self.plan.entities[product.product.root].entity, key))
        except ValueError:
            return None


def overlaid(lockstep: Lockstep) -> Lockstep:
    """The same with the open changes, as they are durable now, laid over index answers."""
    return replace(lockstep, open=(open_changes(lockstep.store).places,))


def open_changes(store: Store) -> OpenChanges:
    """The open changes that the table holds, with their rows as they stand."""
    items = store.partition(PARTITION)
    changes = OpenChanges(wait=0, settle=0)
    changes.reloaded(
        items, store.get({entry.key for item in items for entry in read_durable(item)}) if items else {}, 0
    )
    return changes


def _key(record: Record) -> str:
    return (record.key or b"").decode(errors="replace")


def _equal(published: bytes | None, state: bytes | None) -> bool:
    try:
        return canonical_json.same(
            *(None if value is None else canonical_json.loads(value) for value in (published, state))
        )
    except ValueError:
        return False

"""Compares what was published with what the state says now: last message of each root against the document assembled anew,
and, if asked, against what the product's SQL answers over the state's rows (`processor.mirror`).

    1. with SQL, all its documents, by their hashes: a root that was never published is found here
    2. the last message of every key in the product's topic, by its hash
    3. of these keys, or of a sample of them, the documents assembled from the state, open changes laid over index answers
    4. those that differ are looked at again W later, topic, state and SQL alike: a job may have been between them

Promises: what is told differs in value (numbers by value; from SQL, timestamps in microseconds and no undeclared columns), at
one moment each of topic and state, while SQL's rows are read. Does not find a root that was never published, unless SQL is
asked; beside a running job, a document that it rewrites all the time, or that a large fan-out has yet to reach, may be told
although it will be right.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from processor.batch import CHUNK, document_body
from processor.lockstep import Lockstep
from processor.mirror import Mirror
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.comparable import comparable
from processor.model.json_schema import Schema, document_schema
from processor.model.ledger import NO_DOCUMENT, hash_of
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
    root; values None: no document. `stale`: published and state differ, so that publishing anew helps; `refuted`: state and SQL
    do, so that it does not."""

    product: str
    key: str
    root: str | None
    published: bytes | None
    state: bytes | None
    sql: bytes | None = None
    stale: bool = True
    refuted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How many documents were compared, and those that differ, by key."""

    compared: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Compares documents of a plan. `wait`: sleeps for W. `mirror`: asks SQL; None: SQL is not asked."""

    plan: Plan
    lockstep: Lockstep
    wait: Callable[[], None]
    mirror: Mirror | None = None

    def verify(self, product: ProductPlan, topic: Topic, sample: int | None, random: Random) -> Verified:
        """Compares all documents of a product, or `sample` of them."""
        schema = self._schema(product)
        answers = {key: hash_of(_comparable(text, schema)) for key, text in self._answers(product)}
        published = {_key(record): hash_of(record.value) for record in topic()}
        found = sorted(published.keys() | answers.keys())
        chosen = found if sample is None or sample >= len(found) else random.sample(found, sample)
        suspects = {key for key in chosen if self._root(product, key) is None}
        for key, state in self._states(product, chosen):
            if published.get(key, NO_DOCUMENT) != hash_of(state) or (
                self.mirror and answers.get(key, NO_DOCUMENT) != hash_of(_comparable(state, schema))
            ):
                suspects.add(key)
        return Verified(
            compared=len(chosen), differences=tuple(self._again(product, topic, suspects)) if suspects else ()
        )

    def _again(self, product: ProductPlan, topic: Topic, suspects: Collection[str]) -> Iterator[Difference]:
        self.wait()
        if self.mirror:
            self.mirror.forget()
        schema = self._schema(product)
        answers = {key: text for key, text in self._answers(product) if key in suspects}
        again = replace(self, lockstep=overlaid(self.lockstep))
        published = {key: record.value for record in topic() if (key := _key(record)) in suspects}
        states = dict(again._states(product, sorted(suspects)))
        for key in sorted(suspects):
            state, answer = states.get(key), answers.get(key)
            stale = key not in states or not _equal(published.get(key), state)
            refuted = self.mirror is not None and not _equal(*(_comparable(v, schema) for v in (state, answer)))
            if stale or refuted:
                yield Difference(
                    product=product.product.name,
                    key=key,
                    root=self._root(product, key),
                    published=published.get(key),
                    state=state,
                    sql=answer,
                    stale=stale,
                    refuted=refuted,
                )

    def _answers(self, product: ProductPlan) -> Iterator[tuple[str, bytes]]:
        """The documents of SQL by message key; none where it is not asked."""
        if self.mirror:
            for key, text in self.mirror.documents(product.product):
                yield key, text.encode()

    def _schema(self, product: ProductPlan) -> Schema:
        return document_schema(product.product, {name: entity.entity for name, entity in self.plan.entities.items()})

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


def _comparable(document: bytes | None, schema: Schema) -> bytes | None:
    """The document as it compares with SQL's; what is no JSON stays as it is."""
    try:
        return document and canonical_json.encode(comparable(canonical_json.loads(document), schema))
    except ValueError:
        return document


def _equal(one: bytes | None, other: bytes | None) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return canonical_json.same(canonical_json.loads(one), canonical_json.loads(other))
    except ValueError:
        return False

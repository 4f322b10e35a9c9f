"""Gives a state another registry, another table, or the definitions of an earlier version.

**Rebuild** makes a new registry take over the table of a lost one: the definitions come from files, and the rows stay. The rows
hold numbers of the lost registry: the epoch in each version, and the layout. Both must continue above those numbers. Else changes
look older than the rows, and fills leave the slots of the lost registry in place. The notes of erased rows hold epochs, too. They
also hold the topics' incarnations and offsets, which identify the old records under the new epochs.

    1. read the highest epoch and layout of the rows of each entity
    2. raise the version of the new registry above each layout, and apply the definitions
    3. record an epoch above those of rows and erasures for each topic, from its first offset
    4. forget the progress in the table, and last its identity

The first run then needs a new checkpoint: it reads all topics again.

**Copy** copies the state of a stopped job into another store, and binds the registry to the copy.

    1. check that the source is the table of the registry, and that the target is empty or an earlier copy of this table
    2. take the lease, so that no job starts meanwhile, and both tables, so that Postgres refuses writes of an earlier run
    3. note in the target that the copy is not finished
    4. copy and compare all items
    5. write the identity into the target, then bind the registry to it: the source is foreign from now on

A rebuild or a copy that broke off can be repeated. Until the end of a copy the job continues with the source.

**Undo** puts back the definitions and the pauses as they were before a version of the registry: first as a plan, then as new
edits.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from processor.engine.plan.planning import check_after, plan_of, requirements_of, stored_definition
from processor.engine.protocol.epochs import entities_of, topic_readers
from processor.engine.protocol.erasures import PARTITION as ERASED
from processor.engine.protocol.erasures import read_erasure
from processor.engine.protocol.identity import IDENTITY, identity_in, replace_identity, unfinished
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.errors import BoundaryError, OwnedByAnother, StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.run.binding import Parts, forget_progress, messages_in
from processor.job.run.lease import LeaseRenewal, lease_check, take_table
from processor.job.run.topics import boundaries_of
from processor.language.definitions.load import ENTITIES, load_stored
from processor.language.product.product import Definitions
from processor.values import canonical_json
from registry.edits import operations
from registry.edits.apply import apply
from registry.edits.edit import Edit, Signature, edited
from registry.edits.history import NoUndo, Reversal, reverse
from registry.model import Applied, Snapshot
from registry.repository import Registry
from registry.repository.registry import Check
from statestore.copy_items import CopyCounts, CopyStep, ReportStep, copy_items
from statestore.items import decode_version, read_row
from statestore.keys import partitions
from statestore.store import Store

if TYPE_CHECKING:
    from registry.repository import Registry


class StoredEntity(NamedTuple):
    """The rows of an entity in a table: how many, and their highest epoch and layout."""

    rows: int = 0
    epoch: int = 0
    layout: int = 0


def rebuild_registry(
    settings: Settings,
    definitions: Definitions,
    registry: Registry,
    store: Store,
    *,
    who: str,
    check: Check,
    report: Callable[[str], object],
) -> Applied:
    """Makes the registry that of the table. `check`: as for `Registry.apply`.

    Raises:
        OwnedByAnother: there is no table, or a job has run with the registry, or the registry has definitions already.
        BoundaryError: an entity whose rows are in the table, or may be erased, has no topic.
    """
    table = store.describe()
    if table is None:
        raise OwnedByAnother(f"there is no table {settings.table}: give the table of the lost registry (--table)")
    registry.migrate(table.slots)
    if registry.binding().job:
        raise OwnedByAnother(
            f"a job has run with the registry {settings.registry_schema}: give a new --registry-schema"
        )
    stored = {name: read_entity(store, name, entity.shards) for name, entity in definitions.entities.items()}
    for name, found in stored.items():
        report(f"{name}: {found.rows:,} rows, epochs up to {found.epoch}, layouts up to {found.layout}")
    highest = max((found.layout for found in stored.values()), default=0)
    registry.raise_version(highest)
    applied = registry.apply(requirements_of(definitions), who=who, why="the registry was lost", check=check)
    if any(0 < entity.layout <= highest for entity in registry.snapshot().entities):
        raise OwnedByAnother(
            f"the registry {settings.registry_schema} has definitions: drop this schema, "
            "as no job has run by it, and give this again, or give a new --registry-schema"
        )
    _record_epochs(settings, definitions, registry, store, stored)
    forget_progress(plan_of(registry.snapshot()), store, messages_in(settings))
    return applied


def read_entity(store: Store, name: str, shards: int) -> StoredEntity:
    """Reads all rows of an entity, a page at a time."""
    found = StoredEntity()
    for pk in partitions(name, shards):
        for row in map(read_row, store.items(pk)):
            epoch, _, _ = decode_version(row.version)
            found = StoredEntity(found.rows + 1, max(found.epoch, epoch), max(found.layout, row.layout))
    return found


def _record_epochs(
    settings: Settings, definitions: Definitions, registry: Registry, store: Store, stored: dict[str, StoredEntity]
) -> None:
    """Begins an epoch above that of the rows, and of all erasures, at the first offset of each topic. An erasure does not say of
    which entity it is."""
    erased = max((read_erasure(item).epoch for item in store.partition(ERASED)), default=0)
    entities = {name: entity.topic for name, entity in definitions.entities.items()}
    named = {topic for name, topic in entities.items() if stored[name].rows or erased}
    readers = {topic: reader for topic, reader in topic_readers(entities).items() if topic in named}
    topics = Admin(settings.bootstrap_servers, dict(settings.kafka)).topics(sorted(readers))
    for topic, reader in readers.items():
        sharing = entities_of(reader)
        if topic not in topics:
            found = "has rows" if any(stored[one].rows for one in sharing) else "may have rows that were erased"
            raise BoundaryError(f"entity {reader} {found}, and there is no topic {topic}: create it first")
        if not registry.epochs([topic], sharing):
            epoch = max(erased, *(stored[one].epoch for one in sharing)) + 1
            begins = dict.fromkeys(range(topics[topic].partitions), 0)
            registry.add_epochs([b for one in sharing for b in boundaries_of(topic, topics[topic], one, epoch, begins)])


def copy_state(source: Settings, target: Settings, registry: Registry, *, owner: str, report: ReportStep) -> CopyCounts:
    """Copies the table of `source` to that of `target`. `owner`: of the lease; `report` gets each step.

    Raises LeaseHeld while a job lives, OwnedByAnother for a table that does not belong to the registry, StatestoreError where
    there is nothing to copy, the errors of both stores, and Fenced when a job takes over.
    """
    if source.place == target.place:
        raise StatestoreError(
            f"--to is {target.place}, like --from: the registry tells tables apart by store and name. Give another table name"
        )
    with closing(open_store(source)) as former, closing(open_store(target)) as new:
        binding = registry.binding()
        if not binding.table:
            raise StatestoreError("no job has run with this registry: there is nothing to copy")
        parts = Parts(settings=source, registry=registry, store=former)
        parts.check()
        check_target(target, new, binding.identity)
        lease = registry.take_lease(
            source.job, owner, source.lanes, take_over=False, expires_after=source.lease_seconds
        )
        renewal = LeaseRenewal(source, lease)
        renewal.start()

        def go_on(step: CopyStep) -> None:
            renewal.check()
            report(step)

        try:
            parts.check()  # another copy may have ended before the lease
            new.create(registry.snapshot().slots)
            for store in (former, new):
                take_table(registry, lease, store)
            new.write(replace_identity(unfinished(binding.identity)))
            counts = copy_items(former, new, without=IDENTITY, report=go_on)
            lease_check(registry, lease)()
            new.write(replace_identity(binding.identity, new.created))
            registry.bind(replace(binding, table=target.place))
            return counts
        finally:
            renewal.stop()
            registry.give_back(lease)


def check_target(target: Settings, store: Store, identity: str) -> None:
    """Raises OwnedByAnother for a table with items, unless it is an earlier copy, or the former table, of the same registry."""
    if store.describe() is None:
        return
    found = identity_in(store.get([IDENTITY]).get(IDENTITY))
    if found not in (identity, unfinished(identity)) and store.scan(None, 1).items:
        raise OwnedByAnother(
            f"the table {target.place} is foreign: it holds items of something else. Give an empty table, or a new name"
        )


UndoStep = Callable[[Snapshot], Edit]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """The effect of an undo. `stored`, `after`: the registry before and after it; `changes`: the lines of its edits; `kept`:
    entities that stay as they are, since other products and stored rows may need them; `removed`: products that go, with their
    documents. `texts`: the files of the definitions to
    apply, empty for none; `steps`: the edits after that."""

    stored: Snapshot
    after: Snapshot
    changes: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]
    texts: Mapping[str, str]
    steps: tuple[UndoStep, ...]


def plan_undo(registry: "Registry", version: int) -> UndoPlan:
    """Plans the undo of a version. Raises NoUndo for one that cannot be undone."""
    stored, has_run = registry.snapshot_for_apply()
    reversal = reverse(stored, registry.history(), version)
    kept = tuple(sorted({*reversal.added, *(has_run & reversal.entities.keys())}))
    texts = _texts(stored, reversal, {name for name in reversal.entities if name not in has_run})
    steps = tuple(_steps(reversal))
    if not (texts or steps):
        raise NoUndo(version, f"a job has run with {' and '.join(kept)}, and its stored rows keep the change")
    applies = [lambda snapshot: apply(snapshot, requirements_of(load_stored(texts)), has_run)] if texts else []
    after, changes = stored, list[str]()
    for step in (*applies, *steps):
        change = step(after)
        changes += change.changes
        after = edited(after, change)
    return UndoPlan(
        stored=stored,
        after=after,
        changes=tuple(changes),
        kept=kept,
        removed=reversal.removed,
        texts=texts,
        steps=steps,
    )


def undo(registry: "Registry", plan: UndoPlan, dead_letter_topic: str, by: Signature) -> Applied:
    """Makes the edits of a plan. Raises StatestoreError where another edit came first."""
    first = [_apply(registry, plan, dead_letter_topic, by)] if plan.texts else []
    steps: tuple[UndoStep, ...] = plan.steps
    if not first:
        steps = (partial(_first, plan.stored.version, plan.steps[0]), *plan.steps[1:])
    made = first + [registry.operate(by, step) for step in steps]
    changes = tuple(change for applied in made for change in applied.changes)
    return Applied(version=registry.snapshot().version, changes=changes)


def _texts(stored: Snapshot, reversal: Reversal, back: set[str]) -> dict[str, str]:
    """The files of the definitions to apply: all entities, those of `back` as they were, and the products as they were. Empty
    when there is nothing to apply."""
    if not (back or reversal.products):
        return {}
    entities = {one.name: one.definition for one in stored.entities} | {name: reversal.entities[name] for name in back}
    products = {
        f"products/{name}.json": stored_definition(definition) for name, definition in reversal.products.items()
    }
    return {file: canonical_json.dumps(content) for file, content in {ENTITIES: entities, **products}.items()}


def _apply(registry: "Registry", plan: UndoPlan, dead_letter_topic: str, by: Signature) -> Applied:
    definitions = load_stored(dict(plan.texts))
    runs = check_after(definitions, dead_letter_topic)

    def check(before: Snapshot, after: Snapshot) -> None:
        _check_version(before, plan.stored.version)
        runs(before, after)

    return registry.apply(requirements_of(definitions), who=by.who, why=by.why, check=check)


def _first(version: int, step: UndoStep, stored: Snapshot) -> Edit:
    _check_version(stored, version)
    return step(stored)


def _check_version(stored: Snapshot, version: int) -> None:
    if stored.version > version:
        raise StatestoreError("another edit came first: give the command again")


def _steps(reversal: Reversal) -> Iterator[UndoStep]:
    """Removes the products that the version added, with their documents, and reverses pauses."""
    for name in reversal.removed:
        yield partial(operations.remove, name=name, tombstones=True)
    for product, paused in reversal.paused.items():
        yield partial(operations.pause, name=product, paused=paused)
    for topic, paused in reversal.topics.items():
        yield partial(operations.pause_topic, topic=topic, paused=paused)

"""Puts back the definitions and the pauses as they were before a version of the registry: first as a plan, then as new edits."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from processor.engine.plan.planning import check_after, requirements_of, stored_definition
from processor.errors import StatestoreError
from processor.language.definitions.load import ENTITIES, load_stored
from processor.values import canonical_json
from registry.edits import operations
from registry.edits.apply import apply
from registry.edits.edit import Edit, Signature, edited
from registry.edits.history import NoUndo, Reversal, reverse
from registry.model import Applied, Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry

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

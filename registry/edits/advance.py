"""The next steps of the running job: the edit by which assignments, waiting products and retracted products go on. Pure.

1. A new slot becomes written, and the job fills it in stored rows. A slot that is full serves.
2. A waiting product goes live once all its slots serve, and each row of its entities has them.
3. A retracted product goes once all its documents are tombstones, and a retiring slot once nothing refers to it.

Each step is one registry version, which the job applies before the next step (`registry.model.NEXT`).
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from registry.edits.edit import Edit, edited, finish, served_joins
from registry.model import AssignedPath, Assignment, AssignmentState, Index, JoinAccess, Snapshot, reads

WHY = "the job's next step"
"""The reason of these edits in the history."""
_State = AssignmentState


def advance(stored: Snapshot, *, proven: Collection[str], published: Collection[str]) -> Edit:
    """The next step of each assignment and product that may take one.

    Args:
        stored: the registry, which the job has applied.
        proven: the entities of which each row has the layout of `stored`, and is open or shown by the indexes.
        published: the live products of which the job has published every root since their version began.
    """
    used = {path for access in stored.joins for path in access.paths()}
    stepped = tuple(_next_states(stored, proven))
    change = Edit(
        assignments=stepped,
        freed=tuple(one for one in stored.assignments if one.state is _State.RETIRING and one not in used),
        joins=tuple(_moved(stored, stepped)),
    )
    served = served_joins(edited(stored, finish(stored, change)).joins)
    live = tuple(one for one in stored.waiting if one.entities() <= {*proven} and served.issuperset(one.joins))
    names = [one.name for one in live]
    gone = [one.name for one in stored.products if one.retracted and one.name in published and one.name not in names]
    return finish(stored, replace(change, products=live, withdrawn=tuple(names), removed=tuple(gone)))


def completed(stored: Snapshot) -> Snapshot:
    """The registry after all next steps that walks make possible: nothing waits."""
    entities = [one.name for one in stored.entities]
    while (change := advance(stored, proven=entities, published=())).changes:
        stored = edited(stored, change)
    return stored


def _next_states(stored: Snapshot, proven: Collection[str]) -> Iterator[Assignment]:
    """The assignments that change their state. Of several with the same columns one serves: the next one takes its place."""
    serving = {one.index: one for one in stored.assignments if reads(one.state)}
    replaced: set[Index] = set()
    for one in stored.assignments:
        match one.state:
            case _State.PLANNED:
                yield replace(one, state=_State.WRITING)
            case _State.WRITING:
                yield replace(one, state=_State.BACKFILLING)
            case _State.BACKFILLING if one.entity in proven and one.index not in replaced:
                replaced.add(one.index)
                if former := serving.get(one.index):
                    yield replace(former, state=_State.RETIRING)
                yield replace(one, state=_State.SERVING)


def _moved(stored: Snapshot, stepped: Collection[Assignment]) -> Iterator[JoinAccess[AssignedPath]]:
    """The joins with the slots that begin to serve in place of slots that retire."""
    serving = {one.index: one for one in stepped if reads(one.state)}
    retiring = {(one.entity, one.slot) for one in stepped if one.state is _State.RETIRING}

    def now(path: AssignedPath) -> AssignedPath:
        if isinstance(path, Assignment) and (path.entity, path.slot) in retiring:
            return serving[path.index]
        return path

    for access in stored.joins:
        yield access.map(now)

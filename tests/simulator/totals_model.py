"""An exhaustive model of totals: one row, whose versions move it between values, and the totals of these values.

A run writes the versions in batches. It may crash before or after each request, and a run that crashed may go on as a zombie
during the next one. A walk fills the row meanwhile. Each write reads the row first, and this read may be old. The model visits
every interleaving, and looks at each end: the total of a value must be the number of rows that have it.

    python -m tests.simulator.totals_model      prints each weakening with its states and its wrong ends

`Weakened` names the protections that a run may lack. Not in it: several rows and shards (a total is a sum: rows are independent),
and documents: docs/correctness.md has that argument.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

HISTORY: Final = ("a", "b", None, "a")
"""The value of the row at each version, None where it is deleted. Version 0 is before the first."""


class Weakened(NamedTuple):
    """The protections that are off."""

    apart: bool = False
    """The totals are written after the row, not in its transaction."""
    new_only: bool = False
    """The write adds the new contribution, and does not take the former one back."""
    blind_fill: bool = False
    """The walk writes whatever the row is now."""
    keeps_old_value: bool = False
    """The contribution in the row is a number alone, so it is taken back from the new value."""
    replay_adds: bool = False
    """A write that finds its own version adds again."""
    not_seen: bool = False
    """The write has no condition on the version that its task saw."""


class Actor(NamedTuple):
    """A run, or the walk (`fills`). `at`: the version that it writes next; `seen`: the row that it read; `later`: values to add
    in a second request."""

    at: int
    fills: bool = False
    seen: "Row | None" = None
    later: tuple[tuple[str, int], ...] = ()


class Row(NamedTuple):
    """The row. `counted`: the value under which it is counted, None for none."""

    version: int
    counted: str | None


class State(NamedTuple):
    """All that there is. `former`: the states of the row before, which an old read may show."""

    row: Row
    former: tuple[Row, ...]
    totals: tuple[tuple[str, int], ...]
    actors: tuple[Actor, ...]
    crashes: int


def _added(totals: tuple[tuple[str, int], ...], adds: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    found = dict(totals)
    for value, number in adds:
        found[value] = found.get(value, 0) + number
    return tuple(sorted(found.items()))


def _delta(before: str | None, now: str | None, weak: Weakened) -> tuple[tuple[str, int], ...]:
    adds = [] if now is None else [(now, 1)]
    if before is not None and not weak.new_only:
        adds.append((now or before if weak.keeps_old_value else before, -1))
    return tuple(adds)


def _steps(state: State, n: int, weak: Weakened) -> Iterator[State]:
    actor = state.actors[n]

    def then(actor: Actor, **changed: object) -> State:
        others = tuple(actor if i == n else one for i, one in enumerate(state.actors))
        return state._replace(actors=others, **changed)  # type: ignore[arg-type]

    if actor.later:
        yield then(actor._replace(later=()), totals=_added(state.totals, actor.later))
    elif actor.at >= len(HISTORY):
        return
    elif actor.seen is None:
        for row in {state.row, *state.former}:
            yield then(actor._replace(seen=row))
    else:
        seen, held = actor.seen, state.row
        wanted = held.version if actor.fills else actor.at
        done = actor._replace(at=len(HISTORY) if actor.fills else actor.at + 1, seen=None)
        again = weak.replay_adds and not actor.fills and held.version == wanted
        if actor.fills:
            wanted = seen.version
        elif held.version >= wanted and not again:
            yield then(done)
            return
        blind = weak.blind_fill if actor.fills else weak.not_seen
        if held != seen and not blind and not again:
            yield then(actor._replace(seen=held))  # refused: the answer has the row
            return
        value = HISTORY[wanted] if wanted else "a"
        adds = _delta(seen.counted, value, weak)
        row, former = Row(wanted, value), tuple({*state.former, held})
        if weak.apart:
            yield then(done._replace(later=adds), row=row, former=former)
        else:
            yield then(done, row=row, former=former, totals=_added(state.totals, adds))


def _crashes(state: State, n: int) -> Iterator[State]:
    """A crash that ends the process, and one after which the former run continues as a zombie."""
    actor = state.actors[n]
    if state.crashes and not actor.fills:
        again = Actor(at=1)
        rest = tuple(one for i, one in enumerate(state.actors) if i != n)
        yield state._replace(actors=(*rest, again), crashes=state.crashes - 1)
        yield state._replace(actors=(*state.actors, again), crashes=state.crashes - 1)


AS_IT_IS: Final = Weakened()


def wrong_ends(weak: Weakened = AS_IT_IS, crashes: int = 2) -> tuple[int, int, int]:
    """The states, the ends, and how many of them are wrong. The row is there before, and not counted."""
    start = State(Row(0, None), (), (), (Actor(at=1), Actor(at=0, fills=True)), crashes)
    known, waiting, ends, wrong = {start}, deque([start]), 0, 0
    while waiting:
        state = waiting.popleft()
        following = [s for n in range(len(state.actors)) for s in _steps(state, n, weak)]
        if not following:
            ends += 1
            has = {value: int(HISTORY[state.row.version] == value) for value in ("a", "b")}
            wrong += any(dict(state.totals).get(value, 0) != number for value, number in has.items())
        for one in (*following, *(s for n in range(len(state.actors)) for s in _crashes(state, n))):
            if one not in known:
                known.add(one)
                waiting.append(one)
    return len(known), ends, wrong


if __name__ == "__main__":
    for weak in (Weakened(), *(Weakened(**{name: True}) for name in Weakened._fields)):
        off = [name for name, value in weak._asdict().items() if value]
        print(f"{', '.join(off) or 'as it is':20s} %d states, %d ends, %d wrong" % wrong_ends(weak))

"""The replay requests of operators: which dead letters the running job is to replay, and the outcome of each.

An outcome never changes: the first one counts. A request is done when each of its letters has an outcome.
"""

from collections.abc import Collection

from sqlalchemy import Connection, and_, exists, func, insert, select, tuple_, update

from registry.model import Lease
from registry.replay_request import LetterOutcome, LetterPosition, ReplayRequest, WaitingLetters
from registry.repository.lease_store import check_held
from registry.tables import replay_letters, replay_requests

_PLACE = tuple(replay_letters.c[name] for name in LetterPosition._fields)
_WAITS = replay_letters.c.outcome.is_(None)


def add(connection: Connection, places: Collection[LetterPosition], who: str, why: str) -> int:
    """Stores a request; returns its number."""
    new = insert(replay_requests).values(who=who, why=why).returning(replay_requests.c.id)
    number: int = connection.execute(new).scalar_one()
    connection.execute(insert(replay_letters), [{"request": number, **place._asdict()} for place in places])
    return number


def withdraw(connection: Connection, number: int) -> bool:
    """Withdraws a request; returns False where none of this number waits."""
    waits = and_(replay_requests.c.id == number, replay_requests.c.state == "waiting")
    return connection.execute(update(replay_requests).where(waits).values(state="withdrawn")).rowcount > 0


def next_letters(connection: Connection, most: int) -> WaitingLetters | None:
    """The letters without an outcome of the oldest request that waits, in their order; at most so many."""
    waiting = select(func.min(replay_requests.c.id)).where(replay_requests.c.state == "waiting")
    number: int | None = connection.scalar(waiting)
    if number is None:
        return None
    letters = select(*_PLACE).where(replay_letters.c.request == number, _WAITS).order_by(*_PLACE).limit(most)
    return WaitingLetters(number, tuple(LetterPosition(*row) for row in connection.execute(letters)))


def note(connection: Connection, lease: Lease, number: int, outcomes: Collection[LetterOutcome]) -> None:
    """Notes outcomes, and ends the request when no letter waits. Raises LeaseLost when another run took the lease."""
    check_held(connection, lease)
    for place, outcome, reason in outcomes:
        letter = and_(replay_letters.c.request == number, tuple_(*_PLACE) == tuple_(*place), _WAITS)
        connection.execute(update(replay_letters).where(letter).values(outcome=outcome, reason=reason))
    waits = exists().where(replay_letters.c.request == number, _WAITS)
    ended = and_(replay_requests.c.id == number, replay_requests.c.state == "waiting", ~waits)
    connection.execute(update(replay_requests).where(ended).values(state="done"))


def read(connection: Connection, number: int | None = None) -> tuple[ReplayRequest, ...]:
    """The requests that wait, the oldest first; or the one of this number, in any state."""
    which = replay_requests.c.state == "waiting" if number is None else replay_requests.c.id == number
    counts = (func.count(replay_letters.c.topic), func.count(replay_letters.c.outcome))
    found = select(replay_requests, counts[0].label("letters"), counts[1].label("ended")).where(which)
    joined = found.outerjoin_from(replay_requests, replay_letters).group_by(replay_requests.c.id)
    rows = connection.execute(joined.order_by(replay_requests.c.id)).mappings()
    return tuple(ReplayRequest(number=row["id"], **{k: v for k, v in row.items() if k != "id"}) for row in rows)


def outcomes(connection: Connection, number: int) -> tuple[LetterOutcome, ...]:
    """The letters of a request that have an outcome, in their order."""
    found = select(*_PLACE, replay_letters.c.outcome, replay_letters.c.reason)
    rows = connection.execute(found.where(replay_letters.c.request == number, ~_WAITS).order_by(*_PLACE))
    return tuple(LetterOutcome(LetterPosition(*row[:4]), row[4], row[5] or "") for row in rows)

"""The replay requests of operators: which dead letters the running job is to replay, and the outcome of each.

An outcome never changes: the first one counts. A request is done when each of its letters has an outcome.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, and_, exists, func, insert, select, tuple_, update

from registry.model import Lease, LetterOutcome, LetterPosition, ReplayRequest, WaitingLetters
from registry.repository.connection import Database
from registry.repository.leases import check_held
from registry.repository.rows import lock, sign
from registry.tables import replay_letters, replay_requests

_PLACE = tuple(replay_letters.c[name] for name in LetterPosition._fields)
_WAITS = replay_letters.c.outcome.is_(None)


class RequestedReplays:
    """The replay requests; each method is one transaction. They are no edit, and the version stays, except for repairs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, places: Collection[LetterPosition], *, who: str, why: str = "") -> int:
        """Asks the running job, or the next one, to replay these dead letters. Returns the number of the request."""
        with self._database.transaction() as connection:
            return _add(connection, places, who, why)

    def repair(self, places: Collection[LetterPosition], *, who: str, why: str) -> int:
        """Asks for the replay of repairs from the source: an edit, whose reason the history keeps. Returns the number."""
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            return _add(connection, places, who, why)

    def withdraw(self, number: int) -> bool:
        """Withdraws a request: the job ends the portion that it has begun, and takes no more. Returns False where none of this
        number waits."""
        waits = and_(replay_requests.c.id == number, replay_requests.c.state == "waiting")
        with self._database.transaction() as connection:
            return connection.execute(update(replay_requests).where(waits).values(state="withdrawn")).rowcount > 0

    def next_letters(self, most: int) -> WaitingLetters | None:
        """The letters without an outcome of the oldest request that waits, in their order, at most `most` of them; None without
        a request."""
        oldest = select(func.min(replay_requests.c.id)).where(replay_requests.c.state == "waiting")
        with self._database.reading() as connection:
            number: int | None = connection.scalar(oldest)
            if number is None:
                return None
            letters = select(*_PLACE).where(replay_letters.c.request == number, _WAITS).order_by(*_PLACE).limit(most)
            return WaitingLetters(number, tuple(LetterPosition(*row) for row in connection.execute(letters)))

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None:
        """Notes how replays ended; the first outcome of a letter counts. Ends the request when no letter waits. Raises LeaseLost
        when another run has taken over."""
        with self._database.transaction() as connection:
            check_held(connection, lease)
            for place, outcome, reason in outcomes:
                letter = and_(replay_letters.c.request == request, tuple_(*_PLACE) == tuple_(*place), _WAITS)
                connection.execute(update(replay_letters).where(letter).values(outcome=outcome, reason=reason))
            waits = exists().where(replay_letters.c.request == request, _WAITS)
            ended = and_(replay_requests.c.id == request, replay_requests.c.state == "waiting", ~waits)
            connection.execute(update(replay_requests).where(ended).values(state="done"))

    def waiting(self) -> tuple[ReplayRequest, ...]:
        """The requests that wait, the oldest first."""
        return self._found(replay_requests.c.state == "waiting")

    def find(self, number: int) -> ReplayRequest | None:
        """The request of this number, in any state."""
        return next(iter(self._found(replay_requests.c.id == number)), None)

    def outcomes(self, number: int) -> tuple[LetterOutcome, ...]:
        """The outcomes that the job has noted for a request, in the order of its letters."""
        letters = select(*_PLACE, replay_letters.c.outcome, replay_letters.c.reason)
        noted = letters.where(replay_letters.c.request == number, ~_WAITS).order_by(*_PLACE)
        with self._database.reading() as connection:
            rows = connection.execute(noted)
            return tuple(LetterOutcome(LetterPosition(*row[:4]), row[4], row[5] or "") for row in rows)

    def _found(self, which: ColumnElement[bool]) -> tuple[ReplayRequest, ...]:
        counts = (func.count(replay_letters.c.topic), func.count(replay_letters.c.outcome))
        found = select(replay_requests, counts[0].label("letters"), counts[1].label("ended")).where(which)
        joined = found.outerjoin_from(replay_requests, replay_letters).group_by(replay_requests.c.id)
        with self._database.reading() as connection:
            rows = connection.execute(joined.order_by(replay_requests.c.id)).mappings()
            return tuple(ReplayRequest(number=row["id"], **{k: v for k, v in row.items() if k != "id"}) for row in rows)


def _add(connection: Connection, places: Collection[LetterPosition], who: str, why: str) -> int:
    """Stores a request; returns its number."""
    new = insert(replay_requests).values(who=who, why=why).returning(replay_requests.c.id)
    number: int = connection.execute(new).scalar_one()
    connection.execute(insert(replay_letters), [{"request": number, **place._asdict()} for place in places])
    return number

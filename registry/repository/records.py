"""The records that jobs, operators and landings leave in the registry, outside its content: the statistics of the state, the
replay requests of operators, and the landings. Each method of these classes is one transaction.

Only a repair from the source is an edit; other records leave the version as it is. The statistics are always one whole set, the
last one. A replay request names the dead letters that the running job is to replay. It is done when each of its letters has an
outcome; the first outcome of a letter counts.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from registry.model import (
    EntityStatistics,
    JoinStatistics,
    KnownLanding,
    Lease,
    LetterOutcome,
    LetterPosition,
    ReplayRequest,
    Statistics,
    WaitingLetters,
)
from registry.repository.connection import Database
from registry.repository.leases import check_held
from registry.repository.rows import begin_edit, join_ids
from registry.tables import entity_statistics, join_statistics, landings, replay_letters, replay_requests

_LOCK = text("LOCK TABLE entity_statistics IN EXCLUSIVE MODE")
"""A second writer waits."""


@dataclass(eq=False)
class KeptStatistics:
    """The last statistics of the state."""

    _database: Database

    def last(self) -> Statistics | None:
        """The last statistics, in the order of their names; None before the first."""
        with self._database.reading() as connection:
            rows = list(connection.execute(select(entity_statistics).order_by("entity")).mappings())
            if not rows:
                return None
            specs = {number: join for join, number in join_ids(connection).items()}
            found = [
                JoinStatistics(
                    join=specs[row["join_id"]],
                    direction=row["direction"],
                    mean=row["mean"],
                    most=row["most"],
                    value=row["value"],
                )
                for row in connection.execute(select(join_statistics)).mappings()
            ]
        return Statistics(
            taken_at=rows[0]["taken_at"].astimezone(UTC),
            entities=tuple(
                EntityStatistics(**{name: value for name, value in row.items() if name != "taken_at"}) for row in rows
            ),
            joins=tuple(sorted(found, key=lambda one: (str(one.join), one.direction))),
        )

    def keep(self, taken: Statistics) -> None:
        """Replaces the last statistics. Leaves out joins that the registry no longer has."""
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            connection.execute(delete(entity_statistics))
            connection.execute(delete(join_statistics))
            for entity in taken.entities:
                connection.execute(insert(entity_statistics).values(taken_at=taken.taken_at, **asdict(entity)))
            ids = join_ids(connection)
            for one in (one for one in taken.joins if one.join in ids):
                found = {"direction": one.direction, "mean": one.mean, "most": one.most, "value": one.value}
                connection.execute(insert(join_statistics).values(join_id=ids[one.join], **found))

    def forget(self, values: Collection[str]) -> int:
        """Takes these encoded join keys out of the statistics; the counts stay. Returns how many joins had one of them."""
        named = join_statistics.c.value.in_(values)
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            return connection.execute(update(join_statistics).where(named).values(value=None)).rowcount


_PLACE = tuple(replay_letters.c[name] for name in LetterPosition._fields)
_WAITS = replay_letters.c.outcome.is_(None)


@dataclass(eq=False)
class RequestedReplays:
    """The replay requests."""

    _database: Database

    def ask(self, places: Collection[LetterPosition], *, who: str, why: str = "") -> int:
        """Asks the running job, or the next one, to replay these dead letters. Returns the number of the request."""
        with self._database.transaction() as connection:
            return _add(connection, places, who, why)

    def repair(self, places: Collection[LetterPosition], *, who: str, why: str) -> int:
        """Asks for the replay of repairs from the source: an edit, whose reason the history keeps. Returns the number."""
        with self._database.transaction() as connection:
            begin_edit(connection, who, why)
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


@dataclass(eq=False)
class Landings:
    """The landings that the registry knows: each target that holds documents of a product, until an operator removes it."""

    _database: Database

    def note(self, id_: str, *, product: str, topic: str, place: str) -> None:
        """Notes that a process of this landing runs now."""
        given = {"product": product, "topic": topic, "place": place}
        seen = insert(landings).values(id=id_, **given)
        with self._database.transaction() as connection:
            connection.execute(seen.on_conflict_do_update(index_elements=["id"], set_={**given, "seen_at": func.now()}))

    def all(self) -> tuple[KnownLanding, ...]:
        """The landings, in the order in which they were made. A registry that an earlier release migrated knows none."""
        with self._database.reading() as connection:
            if connection.scalar(text("SELECT to_regclass('landings') IS NULL")):
                return ()
            found = connection.execute(select(landings).order_by(landings.c.made_at, landings.c.id)).mappings()
            return tuple(KnownLanding(**row) for row in found)

    def remove(self, id_: str) -> bool:
        """Forgets a landing. Returns False where there is none of this id."""
        with self._database.transaction() as connection:
            return connection.execute(delete(landings).where(landings.c.id == id_)).rowcount > 0

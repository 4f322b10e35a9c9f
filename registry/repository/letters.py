"""Dead letters in the registry: the requests of operators to replay them, and the account of all letters. Each method is one
transaction.

A replay request names the dead letters that the running job is to replay. It is done when each of its letters has an outcome; the
first outcome of a letter counts. Only a repair from the source is an edit; other requests leave the version as it is.

The account has a row for each record that a job refused, however often, and says whether the letter waits. The job writes it
before the batch of a letter ends, so a count needs no look at the topic. A letter that the topic lost by its retention waits in
the account until `dead-letters list` finds that it is gone.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from registry.model import (
    DROPPED,
    GONE,
    REFUSED,
    KeptLetter,
    Lease,
    LetterFilter,
    LetterOutcome,
    LetterPosition,
    ReplayRequest,
    WaitingGroup,
    WaitingLetters,
)
from registry.repository.connection import Database
from registry.repository.leases import check_held
from registry.repository.rows import begin_edit
from registry.tables import dead_letters, replay_letters, replay_requests

SURE_SECONDS = 600.0
"""A letter is in its topic after this time: clocks differ, and a transaction may be open."""
_PLACE = tuple(replay_letters.c[name] for name in LetterPosition._fields)
_WAITS = replay_letters.c.outcome.is_(None)


@dataclass(eq=False)
class RequestedReplays:
    """The replay requests."""

    _database: Database

    def ask(self, places: Collection[LetterPosition], *, who: str, why: str = "", selection: str = "") -> int:
        """Asks the running job, or the next one, to replay these dead letters. Returns the number of the request."""
        with self._database.transaction() as connection:
            return _add(connection, places, who, why, selection)

    def note_drop(self, places: Collection[LetterPosition], *, who: str, why: str, selection: str = "") -> int:
        """Notes that a person dropped these letters, as a request that is done. The table must have the drops before."""
        with self._database.transaction() as connection:
            ended = {"state": "done", "ended_at": func.now(), "act": "drop"}
            number = _add(connection, places, who, why, selection, ended, {"outcome": DROPPED})
            _end_in_account(connection, [LetterOutcome(place, DROPPED) for place in places])
            return number

    def repair(self, places: Collection[LetterPosition], *, who: str, why: str) -> int:
        """Asks for the replay of repairs from the source: an edit, whose reason the history keeps. Returns the number."""
        with self._database.transaction() as connection:
            begin_edit(connection, who, why)
            return _add(connection, places, who, why, "rows that differ from the source")

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
            _end_letters(connection, request, outcomes)

    def recent(self, most: int = 5) -> tuple[ReplayRequest, ...]:
        """The last requests that ended, the latest first, with how many of their letters have which outcome."""
        last = select(replay_requests.c.id).where(replay_requests.c.state != "waiting")
        found = self._found(replay_requests.c.id.in_(last.order_by(replay_requests.c.id.desc()).limit(most)))
        numbers = [one.number for one in found]
        counted = select(replay_letters.c.request, replay_letters.c.outcome, func.count())
        counted = counted.where(replay_letters.c.request.in_(numbers), ~_WAITS)
        counts: dict[int, dict[str, int]] = {number: {} for number in numbers}
        with self._database.reading() as connection:
            for number, outcome, count in connection.execute(counted.group_by(*counted.selected_columns[:2])):
                counts[number][outcome] = count
        return tuple(replace(one, outcomes=counts[one.number]) for one in reversed(found))

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


def _add(
    connection: Connection,
    places: Collection[LetterPosition],
    who: str,
    why: str,
    selection: str,
    more: Mapping[str, Any] = MappingProxyType({}),
    each: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Stores a request; returns its number. `more`: further columns of the request, `each`: those of its letters."""
    new = insert(replay_requests).values(who=who, why=why, selection=selection, **more)
    number: int = connection.execute(new.returning(replay_requests.c.id)).scalar_one()
    connection.execute(insert(replay_letters), [{"request": number, **place._asdict(), **each} for place in places])
    return number


def _end_letters(connection: Connection, request: int, outcomes: Collection[LetterOutcome]) -> None:
    """Notes the outcomes of letters of a request, and ends it when no letter waits."""
    for place, outcome, reason in outcomes:
        letter = and_(replay_letters.c.request == request, tuple_(*_PLACE) == tuple_(*place), _WAITS)
        connection.execute(update(replay_letters).where(letter).values(outcome=outcome, reason=reason))
    waits = exists().where(replay_letters.c.request == request, _WAITS)
    ended = and_(replay_requests.c.id == request, replay_requests.c.state == "waiting", ~waits)
    connection.execute(update(replay_requests).where(ended).values(state="done", ended_at=func.now()))
    _end_in_account(connection, outcomes)


def _end_in_account(connection: Connection, outcomes: Collection[LetterOutcome]) -> None:
    """Ends letters in the account. A letter that was refused again waits, unless its topic has lost it."""
    ended = [
        {f"of_{name}": value for name, value in {**place._asdict(), "outcome": outcome}.items()}
        for place, outcome, reason in outcomes
        if outcome != REFUSED or reason == GONE
    ]
    if ended:
        is_place = (dead_letters.c[name] == bindparam(f"of_{name}") for name in LetterPosition._fields)
        letter = update(dead_letters).where(*is_place, dead_letters.c.outcome.is_(None))
        connection.execute(letter.values(outcome=bindparam("of_outcome")), ended)


_ACCOUNT_PLACE = tuple(dead_letters.c[name] for name in LetterPosition._fields)
_ACCOUNT_KEY = ("topic", "partition", "offset", "mark")


@dataclass(eq=False)
class AccountedLetters:
    """The account of dead letters. A registry that an earlier release migrated has none."""

    _database: Database

    def keep(self, letters: Collection[KeptLetter], lease: Lease | None = None) -> None:
        """Accounts for letters of a job, which has this lease, or of a verb. A record that a job refused before stays one
        letter. It waits again if the job read it in a later epoch, unless a person dropped it."""
        with self._database.transaction() as connection:
            if lease is not None:
                check_held(connection, lease)
            _keep(connection, letters)

    def settle(self, found: Mapping[KeptLetter, str], since: float) -> None:
        """Brings the account to what the whole topic says. `found`: each letter with its outcome, empty while it waits; `since`:
        when the reading began. A later letter stays as it is."""
        key = [dead_letters.c[name] for name in _ACCOUNT_KEY]
        there = {(*one.place[:3], one.mark): outcome or None for one, outcome in found.items()}
        with self._database.transaction() as connection:
            rows = connection.execute(select(*key, dead_letters.c.outcome, dead_letters.c.last_seen)).all()
            known = {tuple(row[:4]): row.outcome for row in rows}
            _keep(connection, [one for one in found if (*one.place[:3], one.mark) not in known])
            gone = {tuple(row[:4]) for row in rows if row.outcome is None and row.last_seen < since - SURE_SECONDS}
            back = {at: None for at, outcome in known.items() if outcome == "gone" and at in there}
            ended = {at: outcome for at, outcome in there.items() if outcome and known.get(at) is None}
            for at, outcome in {**dict.fromkeys(gone - there.keys(), "gone"), **back, **ended}.items():
                row = tuple_(*key) == tuple_(*at)
                connection.execute(update(dead_letters).where(row).values(outcome=outcome or null()))

    def forget(self, places: Collection[LetterPosition]) -> None:
        """Takes the letters of an erased row out of the account, in whatever epoch the job refused them."""
        with self._database.transaction() as connection:
            for place in places:
                at = and_(*(dead_letters.c[name] == getattr(place, name) for name in LetterPosition._fields[:3]))
                connection.execute(delete(dead_letters).where(at))

    def is_empty(self) -> bool:
        """Whether the account has never had a letter."""
        with self._database.reading() as connection:
            return not _has_account(connection) or not connection.scalar(select(exists().select_from(dead_letters)))

    def waiting(self) -> tuple[WaitingGroup, ...]:
        """The groups of letters that wait, the largest first."""
        group = (dead_letters.c.topic, dead_letters.c.code, dead_letters.c.column)
        times = (func.min(dead_letters.c.first_seen), func.max(dead_letters.c.last_seen))
        counted = select(*group, func.count().label("letters"), *times).where(dead_letters.c.outcome.is_(None))
        with self._database.reading() as connection:
            if not _has_account(connection):
                return ()
            rows = connection.execute(counted.group_by(*group).order_by(text("letters DESC"), *group))
            return tuple(WaitingGroup(*row) for row in rows)

    def places(self, chosen: LetterFilter) -> tuple[LetterPosition, ...]:
        """The places of the letters that wait and that the filter selects, in their order."""
        with self._database.reading() as connection:
            if not _has_account(connection):
                return ()
            found = select(*_ACCOUNT_PLACE).where(dead_letters.c.outcome.is_(None), *_conditions(chosen))
            return tuple(LetterPosition(*row) for row in connection.execute(found.order_by(*_ACCOUNT_PLACE)))


def _conditions(chosen: LetterFilter) -> Iterator[ColumnElement[bool]]:
    for name in ("topic", "code", "column", "entity"):
        if (value := getattr(chosen, name)) is not None:
            yield dead_letters.c[name] == value
    if chosen.since is not None:
        yield dead_letters.c.first_seen >= chosen.since
    if chosen.until is not None:
        yield dead_letters.c.first_seen < chosen.until


def _has_account(connection: Connection) -> bool:
    return not connection.scalar(text("SELECT to_regclass('dead_letters') IS NULL"))


def _keep(connection: Connection, letters: Collection[KeptLetter]) -> None:
    if not letters:
        return
    new = insert(dead_letters)
    given, later = new.excluded, new.excluded.epoch > dead_letters.c.epoch
    again = and_(later, or_(dead_letters.c.outcome.is_(None), dead_letters.c.outcome != DROPPED))
    changed = {
        "epoch": func.greatest(given.epoch, dead_letters.c.epoch),
        **{name: given[name] for name in ("code", "column", "entity")},
        "first_seen": func.least(given.first_seen, dead_letters.c.first_seen),
        "last_seen": func.greatest(given.last_seen, dead_letters.c.last_seen),
        "outcome": case((again, null()), else_=dead_letters.c.outcome),
    }
    rows = [
        {**one.place._asdict(), "mark": one.mark, "code": one.code, "column": one.column, "entity": one.entity}
        | {"first_seen": one.at, "last_seen": one.at}
        for one in letters
    ]
    connection.execute(new.on_conflict_do_update(index_elements=_ACCOUNT_KEY, set_=changed), rows)

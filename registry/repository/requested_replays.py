"""The replays that operators ask the running job for."""

from collections.abc import Collection

from registry.model import Lease
from registry.replay_request import LetterOutcome, LetterPosition, ReplayRequest, WaitingLetters
from registry.repository import request_store as requests
from registry.repository.connection import Database
from registry.repository.rows import lock, sign


class RequestedReplays:
    """The replay requests; each method is one transaction. They are no edit, and the version stays, except for repairs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, places: Collection[LetterPosition], *, who: str, why: str = "") -> int:
        """Asks the running job, or the next one, to replay these dead letters. Returns the number of the request."""
        with self._database.transaction() as connection:
            return requests.add(connection, places, who, why)

    def repair(self, places: Collection[LetterPosition], *, who: str, why: str) -> int:
        """Asks for the replay of repairs from the source: an edit, whose reason the history keeps. Returns the number."""
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            return requests.add(connection, places, who, why)

    def withdraw(self, number: int) -> bool:
        """Withdraws a request: the job ends the portion that it has begun, and takes no more. Returns False where none of this
        number waits."""
        with self._database.transaction() as connection:
            return requests.withdraw(connection, number)

    def next_letters(self, most: int) -> WaitingLetters | None:
        """The next letters of the oldest request that waits, at most so many; None without one."""
        with self._database.reading() as connection:
            return requests.next_letters(connection, most)

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None:
        """Notes how replays ended; the first outcome of a letter counts. Raises LeaseLost when another run has taken over."""
        with self._database.transaction() as connection:
            requests.note(connection, lease, request, outcomes)

    def waiting(self) -> tuple[ReplayRequest, ...]:
        """The requests that wait, the oldest first."""
        with self._database.reading() as connection:
            return requests.read(connection)

    def find(self, number: int) -> ReplayRequest | None:
        """The request of this number, in any state."""
        with self._database.reading() as connection:
            return next(iter(requests.read(connection, number)), None)

    def outcomes(self, number: int) -> tuple[LetterOutcome, ...]:
        """The outcomes that the job has noted for a request."""
        with self._database.reading() as connection:
            return requests.outcomes(connection, number)

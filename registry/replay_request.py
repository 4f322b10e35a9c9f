"""A replay request: an operator asks the running job to replay dead letters, and the job notes the outcome of each."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from registry.model import Lease

RequestState = Literal["waiting", "withdrawn", "done"]


class LetterPosition(NamedTuple):
    """The position of the record that a dead letter keeps."""

    topic: str
    partition: int
    offset: int
    epoch: int


class LetterOutcome(NamedTuple):
    """How the replay of a dead letter ended; `reason`: why the job refused it, without values of the record."""

    place: LetterPosition
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request. `letters`: how many dead letters it names; `ended`: how many of these have an outcome."""

    number: int
    who: str
    why: str
    at: datetime
    state: RequestState
    letters: int
    ended: int


class WaitingLetters(NamedTuple):
    """The next dead letters of the oldest request that waits."""

    request: int
    places: tuple[LetterPosition, ...]


class ReplayRequests(Protocol):
    """The requests in the registry, as the job uses them."""

    def next_letters(self, most: int) -> WaitingLetters | None: ...

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None: ...

"""A double of the registry: its content, the generations of the lease, and the attempts of tasks."""

from collections.abc import Callable, Collection

from registry.edits.edit import Edit, edited
from registry.edits.operations import advance
from registry.errors import LeaseLost, SnapshotOutdated
from registry.model import Lease, LetterOutcome, LetterPosition, Snapshot, WaitingLetters


class Registry:
    """The content of the registry, the generations of the lease, and the attempts of the tasks of each lane. `slots`: of the
    table. `applied_version`: of the last run. `has_run`: the entities with which a job has run. `requests`: of replays;
    `when_noted`: called with each outcome."""

    def __init__(self, slots: int) -> None:
        self.generation = 0
        self.snapshot = Snapshot(version=0, slots=slots, entities=(), products=(), assignments=(), joins=())
        self.applied_version = 0
        self.has_run: frozenset[str] = frozenset()
        self.requests: list[dict[LetterPosition, str | None]] = []
        self.when_noted: Callable[[LetterOutcome], None] = lambda _: None
        self._attempts: dict[int, tuple[int, int, int]] = {}

    def take(self, lanes: int) -> Lease:
        self.generation += 1
        return Lease(job="job", generation=self.generation, owner=f"run {self.generation}", lanes=lanes)

    def holds(self, lease: Lease) -> bool:
        return lease.generation == self.generation

    def edit(self, change: Callable[[Snapshot], Edit]) -> tuple[str, ...]:
        """An edit of an operator; returns its lines."""
        done = change(self.snapshot)
        self.snapshot = edited(self.snapshot, done)
        return done.changes

    def applied(self, lease: Lease, version: int) -> None:
        if self.snapshot.version == 0:
            return
        self._check(lease)
        if version != self.snapshot.version:
            raise SnapshotOutdated
        self.applied_version = version
        self.has_run |= {entity.name for entity in self.snapshot.entities}

    def advance(self, lease: Lease, version: int, *, proven: Collection[str], published: Collection[str]) -> None:
        self._check(lease)
        if not version == self.snapshot.version == self.applied_version:
            raise SnapshotOutdated
        self.edit(lambda stored: advance(stored, proven=proven, published=published))

    def request_replay(self, places: Collection[LetterPosition]) -> None:
        """A request of an operator: the letters, each with its outcome, None while it waits."""
        self.requests.append(dict.fromkeys(places))

    def next_letters(self, most: int) -> WaitingLetters | None:
        for number, letters in enumerate(self.requests):
            if waiting := [place for place, outcome in letters.items() if outcome is None]:
                return WaitingLetters(number, tuple(waiting[:most]))
        return None

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None:
        self._check(lease)
        for outcome in outcomes:
            if self.requests[request][outcome.place] is None:
                self.requests[request][outcome.place] = outcome.outcome
                self.when_noted(outcome)

    def _check(self, lease: Lease) -> None:
        if not self.holds(lease):
            raise LeaseLost

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> int | None:
        generation, number, attempt = self._attempts.get(lane, (0, 0, 0))
        if not self.holds(lease) or (generation, number) > (lease.generation, round_):
            return None
        again = (generation, number) == (lease.generation, round_)
        self._attempts[lane] = (lease.generation, round_, attempt + 1 if again else 0)
        return self._attempts[lane][2]

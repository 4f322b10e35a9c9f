"""A double of the registry: the generations of the lease, and the attempts of tasks."""

from registry.model import Lease


class Registry:
    """The generations of the lease, and the attempts of the tasks of each lane."""

    def __init__(self) -> None:
        self.generation = 0
        self._attempts: dict[int, tuple[int, int, int]] = {}

    def take(self, lanes: int) -> Lease:
        self.generation += 1
        return Lease(job="job", generation=self.generation, owner=f"run {self.generation}", lanes=lanes)

    def holds(self, lease: Lease) -> bool:
        return lease.generation == self.generation

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> int | None:
        generation, number, attempt = self._attempts.get(lane, (0, 0, 0))
        if not self.holds(lease) or (generation, number) > (lease.generation, round_):
            return None
        again = (generation, number) == (lease.generation, round_)
        self._attempts[lane] = (lease.generation, round_, attempt + 1 if again else 0)
        return self._attempts[lane][2]

"""The registry's double: the lease's generations, and the attempts of tasks."""

from registry.model import Lease


class Registry:
    """The lease's generations and the attempts of tasks."""

    def __init__(self) -> None:
        self.generation = 0
        self._attempts: dict[int, tuple[int, int, int]] = {}

    def take(self, slots: int) -> Lease:
        self.generation += 1
        return Lease(job="job", generation=self.generation, owner=f"run {self.generation}", publish_slots=slots)

    def holds(self, lease: Lease) -> bool:
        return lease.generation == self.generation

    def begin_attempt(self, lease: Lease, slot: int, round_: int) -> int | None:
        generation, number, attempt = self._attempts.get(slot, (0, 0, 0))
        if not self.holds(lease) or (generation, number) > (lease.generation, round_):
            return None
        again = (generation, number) == (lease.generation, round_)
        self._attempts[slot] = (lease.generation, round_, attempt + 1 if again else 0)
        return self._attempts[slot][2]

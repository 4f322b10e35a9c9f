"""The fence of a consistent store: it refuses the writes of every run before the one that took it last."""

from dataclasses import dataclass

from statestore.store import FencedWrite


@dataclass(slots=True)
class WriteFence:
    """The fence of a table. `run`: the number of the run that took it last; 0 for none."""

    run: int = 0

    def take(self, run: int) -> None:
        """From now on the table refuses the writes of the runs before this one."""
        self.run = max(run, self.run)

    def check(self, run: int) -> None:
        """Raises FencedWrite if the table refuses the writes of this run."""
        if run < self.run:
            raise FencedWrite(f"run {run} wrote after run {self.run} had taken over")

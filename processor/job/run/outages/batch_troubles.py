"""What the batches of a job say of the parts that they need: a batch that ends well ends troubles, a throttled one begins one."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from processor.engine.rounds.events import Troubles
from processor.job.run.outages.outside_parts import SCHEMA_REGISTRY, STORE, strain

STRAINED_SHARE = 16
"""After a failure of the store, a round has this part of the records of a batch."""
CALM_SECONDS = 30.0
"""A run that has no batch to do for so long has no trouble with the parts of a batch."""


@dataclass(slots=True, kw_only=True)
class BatchTroubles:
    """The troubles of a job's batches. `calm_since`: when the job began, or its last batch ended."""

    troubles: Troubles
    calm_since: float = 0.0

    def begin(self) -> None:
        """The job is ready to take batches."""
        self.calm_since = monotonic()

    def note(self, tally: Mapping[str, int]) -> None:
        """Notes the end of a batch with these counts. A batch needs every part."""
        self.calm_since, strained = monotonic(), strain(tally)
        for trouble in self.troubles.now:
            if trouble.part != STORE or strained is None:
                self.troubles.end(trouble.part)
        if strained is not None:
            self.troubles.begin(STORE, *strained)

    def note_calm(self) -> None:
        """Ends the troubles with the parts of a batch after a time without batches."""
        if self.troubles.now and monotonic() - self.calm_since > CALM_SECONDS:
            self.troubles.end(STORE)
            self.troubles.end(SCHEMA_REGISTRY)

    def most_records(self, batch_size: int) -> int:
        """The most records of a round: fewer after a failure of the store, which may have too much to do."""
        strained = any(trouble.part == STORE for trouble in self.troubles.now)
        return max(1, batch_size // STRAINED_SHARE) if strained else batch_size

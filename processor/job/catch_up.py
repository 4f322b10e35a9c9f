"""Catching up: a job that is far behind its topics writes rows first, and publishes each root once when it has caught up.

An initial snapshot, or a long stop, would otherwise publish the same growing documents again and again. The driver holds all
products meanwhile (`processor.progress.walks`). After `catch_up_seconds` the job publishes them although it is still behind.
Then it does not hold them again before it has caught up.
"""

from dataclasses import dataclass

from processor.job.kafka.admin import Admin
from processor.job.source import OffsetRanges
from processor.rounds.driver import Driver
from processor.rounds.job_event import JobEvent


@dataclass(slots=True, kw_only=True)
class CatchUp:
    """How far the job is behind. `since`: when it began to hold the products, on the job's clock; None while it publishes.
    `late`: it was behind for too long, and publishes until it has caught up."""

    driver: Driver
    admin: Admin
    since: float | None = None
    late: bool = False

    def look(self, batch: OffsetRanges) -> None:
        """Holds or releases the products before a batch. Asks the broker only for a batch that is half full, or while it holds
        them."""
        settings, now = self.driver.settings, self.driver.clock.now()
        records = sum(end - start for start, end in batch.ranges.values())
        full = settings.catch_up_records > 0 and records >= settings.batch_size / 2
        behind = self._behind(batch) if full or self.since is not None else 0
        if self.since is None:
            self.late = self.late and behind > 0
            if behind > settings.catch_up_records and not self.late:
                self.since = now
                text = (
                    f"{behind:,} records behind: rows first, and all documents when the job has caught up, at the latest in "
                    f"{settings.catch_up_seconds} s"
                )
                self.driver.report(JobEvent(what="rows first", text=text, fields={"records": behind}))
                self.driver.hold()
            return
        self.late = now - self.since >= settings.catch_up_seconds
        if behind == 0 or self.late:
            self.since = None
            text = f"{behind:,} records behind: all documents now"
            self.driver.report(JobEvent(what="all documents", text=text, fields={"records": behind}))
            self.driver.release()

    def _behind(self, batch: OffsetRanges) -> int:
        """The records behind the end of the batch, in the topics of the batch."""
        ends = {
            (topic, partition): end
            for topic in sorted({topic for topic, _ in batch.ranges})
            for partition, end in self.admin.ends(topic).items()
        }
        return sum(max(0, ends.get(at, end) - end) for at, (_, end) in batch.ranges.items())

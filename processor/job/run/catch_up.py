"""Catching up: a job that is far behind its topics writes rows first, and publishes each root once when it has caught up.

An initial snapshot, or a long stop, would otherwise publish the same growing documents again and again. A job with a new
checkpoint over stored rows would publish earlier states of its documents. The driver holds all products meanwhile
(`processor.engine.protocol.walks`). After `catch_up_seconds` the job publishes them although it is still behind.
Then it does not hold them again before it has caught up.

A hold makes the publications begin again at the first root. So the job does not hold the products again before those that it
released have published every root. Else a source that writes a lot again and again would keep the last roots waiting for ever.
"""

from collections.abc import Collection
from dataclasses import dataclass

from processor.engine.rounds.driver import Driver
from processor.engine.rounds.job_event import JobEvent
from processor.job.kafka.admin import Admin
from processor.job.run.source import OffsetRanges


@dataclass(slots=True, kw_only=True)
class CatchUp:
    """How far the job is behind. `since`: when it began to hold the products, on the job's clock; None while it publishes.
    `late`: it was behind for too long, and publishes until it has caught up. `released`: it publishes products that it held, and
    some roots remain."""

    driver: Driver
    admin: Admin
    since: float | None = None
    late: bool = False
    released: bool = False

    def begin_again(self, topics: Collection[str]) -> None:
        """Holds the products of a job that reads these topics from their beginning, if rows are stored and records wait."""
        rows = (pk for entity in self.driver.plan.entities.values() for pk in entity.partitions())
        if (
            self.since is None
            and self.driver.settings.catch_up_records
            and any(self.driver.store.page(pk, None, 1).items for pk in rows)
            and any(end for topic in topics for end in self.admin.ends(topic).values())
        ):
            self._hold("a new checkpoint over stored rows")

    def look(self, batch: OffsetRanges) -> None:
        """Holds or releases the products before a batch. Asks the broker only for a batch that is half full, or while it holds
        them."""
        settings, now = self.driver.settings, self.driver.clock.now()
        records = batch.size
        full = settings.catch_up_records > 0 and records >= settings.batch_size / 2
        behind = self._behind(batch) if full or self.since is not None else 0
        if self.since is None:
            self.late = self.late and behind > 0
            self.released = self.released and self.driver.publishes
            if behind > settings.catch_up_records and not (self.late or self.released):
                self._hold(f"{behind:,} records behind", records=behind)
            return
        self.late = now - self.since >= settings.catch_up_seconds
        if behind == 0 or self.late:
            self.since, self.released = None, True
            text = f"{behind:,} records behind: all documents now"
            self.driver.report(JobEvent(what="all documents", text=text, fields={"records": behind}))
            self.driver.end_hold()

    def _hold(self, why: str, **fields: int) -> None:
        self.since = self.driver.clock.now()
        text = (
            f"{why}: rows first, and all documents when the job has caught up, at the latest in "
            f"{self.driver.settings.catch_up_seconds} s"
        )
        self.driver.report(JobEvent(what="rows first", text=text, fields=fields))
        self.driver.hold()

    def _behind(self, batch: OffsetRanges) -> int:
        """The records behind the end of the batch, in the topics of the batch."""
        ends = {
            (topic, partition): end
            for topic in sorted({topic for topic, _ in batch.ranges})
            for partition, end in self.admin.ends(topic).items()
        }
        return sum(max(0, ends.get(at, end) - end) for at, end in batch.ends.items())

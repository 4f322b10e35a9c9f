"""Waits until the pipeline, from the source's log to the table, has passed the source's position of now.

    1. the source has sent its log up to its position to the connector: by the replication slots of PostgreSQL, by the threads
       that send the binary log of MySQL and MariaDB
    2. the connector has produced it: the slot's confirmed position says so at once; without that sign, after `lag` seconds more
    3. the job has read each topic of the entities up to the end that it had then

Does not: prove a position that nobody shows. Then a line says what is missing, and the comparison goes on after the patience.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from processor.source.session import SourceSession


LOOK_SECONDS: Final = 0.5
PATIENCE: Final = 20.0
"""So many times the lag each of the waits may take."""
_POSITION: Final = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text
"""
_SLOTS: Final = """
    SELECT coalesce(bool_and(s.confirmed_flush_lsn >= CAST(:at AS pg_lsn)), false),
           coalesce(bool_and(greatest(r.sent_lsn, s.confirmed_flush_lsn) >= CAST(:at AS pg_lsn)), false), count(*)
    FROM pg_replication_slots s LEFT JOIN pg_stat_replication r ON r.pid = s.active_pid
    WHERE s.slot_type = 'logical' AND s.database = current_database() AND s.active
      AND CAST(:slot AS text) IN ('', s.slot_name::text)
"""
_THREADS: Final = """
    SELECT coalesce(min(state LIKE '%sent all binlog%'), 0), count(*) FROM information_schema.processlist
    WHERE command LIKE 'Binlog Dump%'
"""
Positions = Mapping[str, int]
"""`topic/partition` -> offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePassage:
    """`ends`: where the topics of the entities end; `read`: where the job reads on, None where none runs; `warn`: gets a line
    about what nobody shows. `slot`: the connector's replication slot, empty for all that are active. `lag`: in seconds."""

    session: "SourceSession"
    ends: Callable[[], Positions]
    read: Callable[[], Positions | None]
    warn: Callable[[str], object]
    slot: str = ""
    lag: float = 10.0

    def wait(self) -> None:
        """Waits."""
        if self.read() is None:
            self.warn("no job runs: rows that the source changed since its last run differ, too")
            return
        if not (self._mysql_sent() if self.session.mysql else self._postgres_confirmed()):
            self._until(lambda: False, self.lag)
        ends = self.ends()
        if not self._until(lambda: self._has_read(ends), PATIENCE * self.lag):
            self.warn("the job has not read its topics up to the end of now: differences may be changes on their way")

    def _postgres_confirmed(self) -> bool:
        """Whether the connector has confirmed the position: what it produced. Returns False where the slot shows only that it got
        the log, or nothing."""
        self.session.begin_snapshot()
        ((at,),) = self.session.read_rows(_POSITION)
        given = {"at": at, "slot": self.slot}

        def look() -> tuple[bool, bool, int]:
            self.session.begin_snapshot()
            ((confirmed, sent, slots),) = self.session.read_rows(_SLOTS, given)
            return bool(confirmed), bool(sent), int(slots)

        if not look()[2]:
            self.warn("no logical replication slot of this database is active: nobody shows how far the connector is")
            return False
        if not self._until(lambda: any(look()[:2]), PATIENCE * self.lag):
            self.warn("the connector has not read the log up to the position of now")
        return self._until(lambda: look()[0], self.lag)

    def _mysql_sent(self) -> bool:
        """False: MySQL shows what it sent, and never what the connector produced."""

        def look() -> tuple[bool, int]:
            ((sent, threads),) = self.session.read_rows(_THREADS)
            return bool(sent), int(threads)

        if not look()[1]:
            self.warn("no thread that sends the binary log is in sight (PROCESS privilege): nobody shows the connector")
        elif not self._until(lambda: look()[0], PATIENCE * self.lag):
            self.warn("the connector has not read the binary log up to the position of now")
        return False

    def _has_read(self, ends: Positions) -> bool:
        read = self.read()
        return read is None or all(read.get(place, 0) >= end for place, end in ends.items())

    @staticmethod
    def _until(is_true: Callable[[], bool], seconds: float) -> bool:
        end = monotonic() + seconds
        while not is_true():
            if monotonic() >= end:
                return False
            sleep(min(LOOK_SECONDS, max(0.0, end - monotonic())))
        return True

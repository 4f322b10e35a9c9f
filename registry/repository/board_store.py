"""What an operator looks at: the history of edits, the jobs, and how far the walks of the job are."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text

from registry.job_status import JobStatus, RunEnd
from registry.model import HistoryEntry, Progress
from registry.repository.lease_store import is_alive
from registry.tables import history as history_table
from registry.tables import leases, walk_progress


def history(connection: Connection, limit: int | None) -> tuple[HistoryEntry, ...]:
    """The last entries of the history, the newest first; all of them for None."""
    columns = [column for column in history_table.c if column.name != "id"]
    rows = connection.execute(select(*columns).order_by(history_table.c.id.desc()).limit(limit))
    return tuple(HistoryEntry(**row) for row in rows.mappings())


def jobs(connection: Connection) -> tuple[JobStatus, ...]:
    """The jobs that ever ran by this registry, by name."""
    columns = (leases.c.job, leases.c.owner, leases.c.generation, leases.c.applied_version, leases.c.renewed_at)
    age = func.extract("epoch", func.clock_timestamp() - leases.c.reported_at).label("report_age")
    reported = (leases.c.acquired_at, leases.c.report, age, leases.c.ended)
    rows = connection.execute(select(*columns, *reported, is_alive().label("alive")).order_by("job"))
    return tuple(_status(dict(row)) for row in rows.mappings())


def _status(row: dict[str, Any]) -> JobStatus:
    age, ended = row.pop("report_age"), row.pop("ended")
    end = None if ended is None else RunEnd(**ended | {"at": datetime.fromisoformat(ended["at"])})
    return JobStatus(**row, report_age=None if age is None else float(age), ended=end)


def keep_progress(connection: Connection, lines: Collection[Progress]) -> None:
    """Replaces the progress of all walks."""
    connection.execute(text("LOCK TABLE walk_progress IN EXCLUSIVE MODE"))  # a second writer waits
    connection.execute(delete(walk_progress))
    for line in lines:
        values = {"rows": line.rows, "written": line.written, "of": line.of}
        connection.execute(insert(walk_progress).values(walk=line.walk, done=line.done, seconds=line.seconds, **values))


def progress(connection: Connection) -> tuple[Progress, ...]:
    """The progress of the walks, by name."""
    rows = connection.execute(select(walk_progress).order_by("walk"))
    return tuple(Progress(**row) for row in rows.mappings())

"""Leases of jobs, and what the registry keeps of their runs. One run of a job lives at a time, and each has a higher generation
than the run before.

Only the clock of Postgres counts. A run keeps an expired lease until another run takes it: the generation is the fence.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    Boolean,
    ColumnElement,
    Connection,
    DateTime,
    and_,
    case,
    cast,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from registry.errors import LeaseHeld, LeaseLost, SnapshotOutdated
from registry.model import How, JobStatus, Lease, PastRuns, RunEnd, RunMark
from registry.repository.connection import Database
from registry.repository.rows import announce
from registry.tables import attempts, leases, meta

DIED: Final = "it sent no more heartbeats and noted no end, as after `kill -9`, or without memory: its log may say more"
_PAST: Final = literal_column("to_jsonb(leases) -> 'past'", JSON).label("past")
_KEEPS_PAST: Final = literal_column("to_jsonb(leases) ? 'past'", Boolean).label("keeps_past")
"""Of the row as JSON: a registry of an older release has no column `past`."""


class Leases:
    """The leases of the registry's jobs; each method is one transaction, and no edit: the version stays. `Registry` inherits
    them."""

    _database: Database

    def jobs(self) -> tuple[JobStatus, ...]:
        """The jobs that ever ran by this registry, by name, and who runs them now."""
        columns = (leases.c.job, leases.c.owner, leases.c.generation, leases.c.applied_version, leases.c.renewed_at)
        age = func.extract("epoch", func.clock_timestamp() - leases.c.reported_at).label("report_age")
        reported = (leases.c.acquired_at, leases.c.report, age, leases.c.ended, _PAST)
        found = select(*columns, *reported, _is_alive().label("alive")).order_by("job")
        with self._database.reading() as connection:
            return tuple(_status(dict(row)) for row in connection.execute(found).mappings())

    def take_lease(self, job: str, owner: str, lanes: int, *, take_over: bool, expires_after: float) -> Lease:
        """Takes a job's lease for a run: a new generation, which fences all before it.

        Args:
            owner: the name of this run, for people and for `LeaseHeld`; the same owner may always take the lease again.
            lanes: the number of lanes of this run; the returned lease has the highest number of any run.
            take_over: take the lease from an owner that is alive.
            expires_after: seconds without `renew` after which other owners may take the lease.

        Raises:
            LeaseHeld: another owner holds the lease and renewed it in time, and the caller does not take over.
        """
        now = func.clock_timestamp()
        new = insert(leases).values(
            job=job,
            generation=1,
            owner=owner,
            acquired_at=now,
            renewed_at=now,
            expires_after=expires_after,
            lanes=lanes,
        )
        put = new.on_conflict_do_update(
            index_elements=["job"],
            set_={
                "generation": leases.c.generation + 1,
                "owner": new.excluded.owner,
                "acquired_at": now,
                "renewed_at": now,
                "expires_after": new.excluded.expires_after,
                "lanes": func.greatest(leases.c.lanes, new.excluded.lanes),
                "report": null(),
                "reported_at": null(),
            },
            where=None if take_over else _may_be_taken(owner),
        )
        with self._database.transaction() as connection:
            past = _past_at_start(connection, job, owner)
            charts = connection.scalar(select(leases.c.report["charts"]).where(leases.c.job == job))
            taken = connection.execute(put.returning(leases.c.generation, leases.c.lanes, _KEEPS_PAST)).one_or_none()
            if taken is None:
                raise _held_error(connection, job)
            kept = past if taken.keeps_past else None
            run = {"job": job, "generation": taken.generation, "owner": owner, "lanes": taken.lanes}
            lease = Lease(**run, past=kept, charts=charts)
            if taken.keeps_past:
                _change(connection, lease, {"past": asdict(past.with_start())})
        return lease

    def renew(self, lease: Lease) -> None:
        """Records that the run is alive. Raises LeaseLost when another run has taken over."""
        with self._database.transaction() as connection:
            _change(connection, lease, {"renewed_at": func.clock_timestamp()})

    def holds(self, lease: Lease) -> bool:
        """True while no other run has taken the lease, and this run has not released it."""
        with self._database.reading() as connection:
            return _holds(connection, lease)

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> int | None:
        """Counts the attempts of a lane's task in a round, from 0. None when the lease is lost, or when the run has begun a later
        round: a task of the earlier round would count from 0 again, and its number would be that of the acknowledged attempt.

        So a retried task has another number than the task before it, also across retries of a whole stage.
        """
        new = insert(attempts).values(job=lease.job, lane=lane, generation=lease.generation, round=round_, attempt=0)
        again = and_(attempts.c.generation == new.excluded.generation, attempts.c.round == new.excluded.round)
        run = tuple_(attempts.c.generation, attempts.c.round)
        counted = new.on_conflict_do_update(
            index_elements=["job", "lane"],
            set_={
                "generation": new.excluded.generation,
                "round": new.excluded.round,
                "attempt": case((again, attempts.c.attempt + 1), else_=0),
            },
            where=run <= tuple_(new.excluded.generation, new.excluded.round),
        )
        with self._database.transaction() as connection:
            if not _holds(connection, lease):
                return None
            return connection.execute(counted.returning(attempts.c.attempt)).scalar_one_or_none()

    def give_back(self, lease: Lease) -> None:
        """Gives the lease back, if this run still has it. A lost lease stays with its owner."""
        with self._database.transaction() as connection:
            connection.execute(update(leases).where(_is(lease)).values(owner=None))

    def applied(self, lease: Lease, version: int) -> None:
        """Records that the job works by this version of the registry, before the job's first write by it.

        Edits wait until the record is there: so an edit either sees the record, or makes this call fail.

        Raises:
            SnapshotOutdated: an edit changed the registry meanwhile: take a new snapshot and record that.
            LeaseLost: another run has taken over.
        """
        with self._database.transaction() as connection:
            current = connection.execute(select(meta.c.version).with_for_update(read=True)).scalar_one()
            if version != current:
                raise SnapshotOutdated(
                    f"job {lease.job} has read registry version {version}, it is {current} now: read it again"
                )
            _change(connection, lease, {"applied_version": version})

    def rename_job(self, job: str, *, take_over: bool) -> None:
        """Binds the registry to a job of another name, whose generations go on above those of every earlier job. The runs of
        the earlier jobs lose their leases.

        Raises:
            LeaseHeld: a run of an earlier job is alive, and the caller does not take over.
        """
        earlier, now = leases.c.job != job, func.clock_timestamp()
        with self._database.transaction() as connection:
            announce(connection)
            alive = connection.execute(select(leases.c.job, leases.c.owner).where(earlier, _is_alive())).first()
            if alive is not None and not take_over:
                raise LeaseHeld(
                    f"job {alive.job} runs already: {alive.owner}; stop it, wait, or give `--take-over`, which fences it"
                )
            highest, lanes = connection.execute(select(func.max(leases.c.generation), func.max(leases.c.lanes))).one()
            connection.execute(update(leases).where(earlier).values(owner=None, generation=leases.c.generation + 1))
            new = insert(leases).values(
                job=job,
                generation=(highest or 0) + 1,
                acquired_at=now,
                renewed_at=now,
                expires_after=0,
                lanes=lanes or 1,
            )
            risen = {"generation": func.greatest(leases.c.generation, new.excluded.generation)}
            connection.execute(new.on_conflict_do_update(index_elements=["job"], set_=risen))
            connection.execute(update(meta).values(job=job))

    def lanes_of_other_jobs(self, job: str) -> dict[str, int]:
        """The other jobs that ever ran by this registry, and the highest number of lanes of each."""
        with self._database.reading() as connection:
            rows = connection.execute(select(leases.c.job, leases.c.lanes).where(leases.c.job != job))
            return {row.job: row.lanes for row in rows}


class Runs:
    """What the registry keeps of the runs of jobs: how they are, and how they ended. Each method is one transaction, and no edit:
    the version stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep_report(
        self, lease: Lease, report: Mapping[str, Any], ended: int | None = None, *, worked_at: float | None = None
    ) -> None:
        """Replaces the report of the run, which `Registry.jobs` shows. `ended`: its last round that published something and
        ended; `worked_at`: when the run last worked, None before that. Raises LeaseLost when another run has taken over."""
        mark: dict[str, Any] = {} if ended is None else {"ended_run": lease.generation, "ended_round": ended}
        if worked_at is not None and lease.past is not None:
            mark["past"] = asdict(lease.past.with_start().with_work(worked_at))
        with self._database.transaction() as connection:
            _change(connection, lease, {"report": report, "reported_at": func.clock_timestamp(), **mark})

    def forget_roots(self) -> None:
        """Takes the names of roots out of the reports of all jobs: a report may stay when its job ended."""
        kept = literal_column("(report::jsonb - 'costly_roots')::json", JSON)
        with self._database.transaction() as connection:
            connection.execute(update(leases).where(leases.c.report.is_not(None)).values(report=kept))

    def mark(self) -> RunMark:
        """What the registry knows of the runs of its jobs."""
        ended = select(leases.c.ended_run, leases.c.ended_round).where(leases.c.ended_run.is_not(None))
        with self._database.reading() as connection:
            generation = connection.scalar(select(func.max(leases.c.generation)))
            last = connection.execute(ended.order_by(leases.c.ended_run.desc()).limit(1)).first()
            return RunMark(generation or 0, *(last or (0, -1)))

    def begin(self, lease: Lease) -> None:
        """Forgets the end that was noted before this run took its lease: the job runs again."""
        noted = cast(leases.c.ended["at"].as_string(), DateTime(timezone=True))
        before = update(leases).where(_is(lease), noted < leases.c.acquired_at)
        with self._database.transaction() as connection:
            connection.execute(before.values(ended=null()))

    def end(self, job: str, owner: str, how: How, text: str = "") -> None:
        """Notes how a run of the job, or its start, ended, for `Registry.jobs`, and gives its lease back. `text`: the message of
        its error. A job that never ran has no lease, and gets no note.

        The lease of another run stays as it is. Only a run that lost its lease leaves its note there, unless there is one.
        """
        of_job = update(leases).where(leases.c.job == job)
        with self._database.transaction() as connection:
            now = connection.execute(select(func.clock_timestamp())).scalar_one()
            ended = {"how": how, "owner": owner, "text": text, "at": now.isoformat()}
            if how == "lost":
                connection.execute(of_job.where(leases.c.ended.is_(null())).values(ended=ended))
            else:
                mine = or_(leases.c.owner.is_(None), leases.c.owner == owner)
                values = {"ended": ended, "owner": None}
                found = select(_PAST).where(leases.c.job == job, mine, _KEEPS_PAST).with_for_update()
                if how == "failed" and (row := connection.execute(found).one_or_none()):
                    values["past"] = asdict(PastRuns.of(row.past).with_failure(now.timestamp(), text))
                connection.execute(of_job.where(mine).values(values))


def check_held(connection: Connection, lease: Lease) -> None:
    """Raises LeaseLost when another run took the lease. No run takes it before this transaction ends."""
    if connection.scalar(select(leases.c.job).where(_is(lease)).with_for_update(read=True)) is None:
        raise _lost_error(lease)


def check_applied(connection: Connection, lease: Lease, version: int) -> None:
    """Checks that the registry has this version, and that the run applied it. Names the run to the rules of the database
    (`registry.migrations.first_rules`) for this transaction. The caller's transaction locks the registry.

    Raises:
        SnapshotOutdated: one of the two has another version.
        LeaseLost: another run took the lease.
    """
    run = connection.execute(select(leases.c.applied_version).where(_is(lease))).one_or_none()
    if run is None:
        raise _lost_error(lease)
    current = connection.execute(select(meta.c.version)).scalar_one()
    if not version == current == run.applied_version:
        raise SnapshotOutdated(
            f"job {lease.job} asks for the next step of registry version {version}, it has applied {run.applied_version}, and "
            f"the registry is at {current}: read it again"
        )
    connection.execute(select(func.set_config("statestore.run", f"{lease.job}#{lease.generation}", True)))


def _is_alive() -> ColumnElement[bool]:
    """Whether a run holds the lease and renewed it in time."""
    return leases.c.owner.is_not(None) & (_expires() >= func.clock_timestamp())


def _past_at_start(connection: Connection, job: str, owner: str) -> PastRuns:
    """What the runs before left to a run that takes the lease. A run that still has the lease died, unless it is alive and the
    new run takes over from it. Locks the row."""
    alive = (_is_alive() & (leases.c.owner != owner)).label("alive")
    found = select(_PAST, leases.c.owner, func.extract("epoch", leases.c.renewed_at).label("at"), alive)
    before = connection.execute(found.where(leases.c.job == job).with_for_update()).one_or_none()
    if before is None:
        return PastRuns()
    past = PastRuns.of(before.past)
    died = before.owner is not None and not before.alive
    return past.with_failure(float(before.at), f"{before.owner} died: {DIED}") if died else past


def _status(row: dict[str, Any]) -> JobStatus:
    age, ended, past = row.pop("report_age"), row.pop("ended"), PastRuns.of(row.pop("past"))
    end = None if ended is None else RunEnd(**ended | {"at": datetime.fromisoformat(ended["at"])})
    return JobStatus(**row, report_age=None if age is None else float(age), ended=end, past=past)


def _holds(connection: Connection, lease: Lease) -> bool:
    return connection.scalar(select(leases.c.job).where(_is(lease))) is not None


def _change(connection: Connection, lease: Lease, values: dict[str, Any]) -> None:
    changed = connection.execute(update(leases).where(_is(lease)).values(values).returning(leases.c.job))
    if changed.one_or_none() is None:
        raise _lost_error(lease)


def _lost_error(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"job {lease.job}: {lease.owner} no longer holds the lease (generation {lease.generation}): another "
        "run has taken it, or this run released it; this run must stop"
    )


def _is(lease: Lease) -> ColumnElement[bool]:
    return and_(leases.c.job == lease.job, leases.c.generation == lease.generation, leases.c.owner == lease.owner)


def _may_be_taken(owner: str) -> ColumnElement[bool]:
    return or_(leases.c.owner.is_(None), leases.c.owner == owner, _expires() < func.clock_timestamp())


def _expires() -> ColumnElement[datetime]:
    expires: ColumnElement[datetime] = leases.c.renewed_at + func.make_interval(
        0, 0, 0, 0, 0, 0, leases.c.expires_after
    )
    return expires


def _held_error(connection: Connection, job: str) -> LeaseHeld:
    lease = connection.execute(select(leases).where(leases.c.job == job)).one()
    return LeaseHeld(
        f"job {job} runs already: {lease.owner} (generation {lease.generation}), alive at "
        f"{lease.renewed_at:%Y-%m-%d %H:%M:%S%z}, expires {lease.expires_after:g} s after that; stop it, wait, or "
        "give `--take-over`, which fences it"
    )

"""The doorway to the registry: one object, each method one transaction."""

from collections.abc import Callable, Collection, Iterable
from copy import copy
from types import TracebackType
from typing import Concatenate, ParamSpec, Self

from sqlalchemy import text

from registry.edits.advance import WHY, advance
from registry.edits.apply import apply
from registry.edits.edit import Edit, Signature, edited
from registry.edits.operations import ProductPaused
from registry.job_status import JobStatus
from registry.migrations.roles import role_statements
from registry.model import (
    Applied,
    Binding,
    EpochBoundary,
    HistoryEntry,
    Lease,
    Progress,
    Requirements,
    Snapshot,
)
from registry.pauses import last_pause
from registry.registry_state import RegistryState
from registry.repository import board_store as boards
from registry.repository import epoch_store as epochs
from registry.repository import identity_store as identities
from registry.repository import lease_store as leases
from registry.repository.connection import Database, addresses_of
from registry.repository.kept_statistics import KeptStatistics
from registry.repository.landing_notes import LandingNotes
from registry.repository.requested_replays import RequestedReplays
from registry.repository.rows import announce, has_run, lock, read, sign, write
from registry.repository.run_notes import RunNotes
from registry.repository.schema import look, may_edit, migrate

P = ParamSpec("P")
Check = Callable[[Snapshot, Snapshot], object]
"""The caller's own check of the registry before and after an edit. Raises an error for content that its jobs could not run."""


def no_check(_before: Snapshot, _after: Snapshot) -> None:
    """The check of a caller who runs no jobs."""


class Registry:
    """A registry in one schema of a Postgres database. Safe to share between threads, not across a fork.

    Every method may raise RegistryUnreachable and UnknownRevision, and every method but `migrate` RegistryMissing. Methods
    that write raise RegistryBusy when another edit stays open for 30 s.

    runs: what it notes of the runs of jobs. statistics: of the state, the last ones. replays: that operators ask the job for.
    landings: the targets that hold documents.
    """

    def __init__(self, url: str, schema: str = "statestore") -> None:
        """Connects with the first request.

        Raises:
            RegistryError: `url` is no Postgres URL, or `schema` no lower-case identifier.
        """
        self._work_over(Database(url, schema))

    def _work_over(self, database: Database) -> None:
        self._database = database
        self.runs = RunNotes(database)
        self.statistics = KeptStatistics(database)
        self.replays = RequestedReplays(database)
        self.landings = LandingNotes(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def acting_as(self, role: str) -> Self:
        """This registry over the same connections, with the rights of `reader`, `job` or `operator` alone: the database refuses
        the rest. Its methods raise RoleNotGranted where the user of the connection may not act so."""
        other = copy(self)
        other._work_over(self._database.acting_as(role))
        return other

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        self._database.engine.dispose()

    def migrate(self, slots: int) -> None:
        """Creates the schema and its tables, or brings them to this release. `slots`: of a new registry. The second call changes
        nothing. Raises UnknownRevision for a schema that another release migrated."""
        with self._database.transaction(migrates=True) as connection:
            migrate(connection, self._database.schema, slots)

    def create_roles(self) -> None:
        """Creates the roles of the schema (`registry.migrations.roles`), or brings their rights to this release.
        Only the owner of the schema may do it, with the right to create roles."""
        with self._database.transaction() as connection:
            for statement in role_statements(self._database.schema):
                connection.execute(text(statement))

    def addresses(self) -> list[tuple[str, int]]:
        """The hosts of Postgres with their ports; a host that begins with `/` is the folder of a socket."""
        return addresses_of(self._database.url)

    def state(self) -> RegistryState:
        """The schema and the user's rights there, also where there is no registry, or one of another release."""
        with self._database.transaction(migrates=True) as connection:
            return look(connection, self._database.schema)

    def may_edit(self) -> bool:
        """Whether the role of the connection may make the edits of an operator. The database decides again at each edit."""
        with self._database.reading() as connection:
            return may_edit(connection, self._database.schema)

    def snapshot(self) -> Snapshot:
        """The whole registry at one version."""
        with self._database.reading() as connection:
            return read(connection)

    def snapshot_for_apply(self) -> tuple[Snapshot, frozenset[str]]:
        """The whole registry at one version, and the entities with which some job has run: the two inputs of an apply."""
        with self._database.reading() as connection:
            return read(connection), has_run(connection)

    def apply(self, required: Requirements, *, who: str, why: str, check: Check = no_check) -> Applied:
        """Stores the differences in one transaction, while every other edit waits. Without a difference it writes nothing.

        Entities and products that `required` does not name stay as they are. Joins that no product uses any more go.

        Args:
            who, why: for the history.
            check: gets the registry as it is, and as the apply would leave it, before the apply writes. Its error ends the apply.

        Raises:
            Malformed, DefinitionChanged, NoSlot, TopicTaken and others: see `registry.edits.apply.apply`.
            RegistryRefused: a constraint of the database.
        """
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            stored = read(connection)
            change = apply(stored, required, has_run(connection))
            check(stored, edited(stored, change))
            return Applied(version=write(connection, change), changes=change.changes)

    def operate(
        self, by: Signature, operation: Callable[Concatenate[Snapshot, P], Edit], *given: P.args, **named: P.kwargs
    ) -> Applied:
        """Makes an edit of an operator (`registry.edits.operations`) in one transaction, while every other edit waits.

        Raises:
            RegistryRefused: a constraint of the database, such as a living job that has not applied the last step of a slot.
            NoProduct, NoAssignment and others: see the operation. ProductPaused names the pause.
        """
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, *by)
            try:
                change = operation(read(connection), *given, **named)
            except ProductPaused as error:
                pause = last_pause(boards.history(connection, None), error.name)
                raise ProductPaused(error.name, pause) from None
            return Applied(version=write(connection, change), changes=change.changes)

    def advance(self, lease: Lease, version: int, *, proven: Collection[str], published: Collection[str]) -> Applied:
        """Takes the next steps that `registry.edits.advance` allows, in one transaction. Without a step it writes nothing.

        Args:
            lease: of the run that takes the steps, and that has applied `version`.
            proven, published: see `registry.edits.advance.advance`.

        Raises:
            SnapshotOutdated: the registry has another version, or the run has not applied it.
            LeaseLost: another run has taken over.
        """
        with self._database.transaction() as connection:
            lock(connection)
            leases.check_applied(connection, lease, version)
            sign(connection, lease.owner, WHY)
            change = advance(read(connection), proven=proven, published=published)
            return Applied(version=write(connection, change), changes=change.changes)

    def history(self, limit: int | None = None) -> tuple[HistoryEntry, ...]:
        """The last entries of the history, the newest first; all of them without a limit."""
        with self._database.reading() as connection:
            return boards.history(connection, limit)

    def jobs(self) -> tuple[JobStatus, ...]:
        """The jobs that ever ran by this registry, and who runs them now."""
        with self._database.reading() as connection:
            return boards.jobs(connection)

    def keep_progress(self, lines: Collection[Progress]) -> None:
        """Replaces the progress of all walks. This is no edit: the version stays."""
        with self._database.transaction() as connection:
            boards.keep_progress(connection, lines)

    def progress(self) -> tuple[Progress, ...]:
        """How far each walk is, by name."""
        with self._database.reading() as connection:
            return boards.progress(connection)

    def binding(self) -> Binding:
        """The registry's identity, and the job and the table that it is bound to."""
        with self._database.reading() as connection:
            return identities.read(connection)

    def bind(self, binding: Binding) -> None:
        """Binds the registry to a job and a table, if it still has this identity."""
        with self._database.transaction() as connection:
            announce(connection)
            identities.bind(connection, binding)

    def raise_version(self, least: int) -> None:
        """Raises the version to `least`, by one in each transaction. The content stays."""
        version = self.snapshot().version
        while version < least:
            with self._database.transaction() as connection:
                announce(connection)
                version = identities.raise_version(connection)

    def unbind_table(self) -> None:
        """Gives the registry a new identity, bound to no table."""
        with self._database.transaction() as connection:
            announce(connection)
            identities.unbind_table(connection)

    def rename_job(self, job: str, *, take_over: bool) -> None:
        """Binds the registry to a job of another name, which fences the runs of the earlier one. Raises LeaseHeld when one of
        these is alive, unless the caller takes over."""
        with self._database.transaction() as connection:
            announce(connection)
            identities.rename_job(connection, job, take_over=take_over)

    def lanes_of_other_jobs(self, job: str) -> dict[str, int]:
        """The other jobs that ever ran by this registry, and the highest number of lanes of each."""
        with self._database.reading() as connection:
            return identities.lanes_of_other_jobs(connection, job)

    def take_lease(self, job: str, owner: str, lanes: int, *, take_over: bool, expires_after: float) -> Lease:
        """Takes a job's lease for a run: a new generation, which fences all before it.

        Args:
            owner: the name of this run, for people and for `LeaseHeld`; the same owner may always take the lease again.
            lanes: the number of lanes of this run; the returned lease has the highest number of any run.
            take_over: take the lease from an owner that is alive.
            expires_after: seconds without `renew` after which other owners may take the lease.

        Raises:
            LeaseHeld: another owner is alive.
        """
        wanted = Lease(job=job, generation=0, owner=owner, lanes=lanes)
        with self._database.transaction() as connection:
            return leases.take(connection, wanted, take_over=take_over, expires_after=expires_after)

    def renew(self, lease: Lease) -> None:
        """Records that the run is alive. Raises LeaseLost when another run has taken over."""
        with self._database.transaction() as connection:
            leases.renew(connection, lease)

    def holds(self, lease: Lease) -> bool:
        """True while no other run has taken the lease, and this run has not released it."""
        with self._database.reading() as connection:
            return leases.holds(connection, lease)

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> int | None:
        """Counts the attempts of a lane's task in a round, from 0; None when the lease is lost, or the run has begun a later
        round."""
        with self._database.transaction() as connection:
            return leases.begin_attempt(connection, lease, lane, round_)

    def give_back(self, lease: Lease) -> None:
        """Gives the lease back, if this run still has it."""
        with self._database.transaction() as connection:
            leases.give_back(connection, lease)

    def applied(self, lease: Lease, version: int) -> None:
        """Records that the job works by this version, before the job's first write by it.

        Raises:
            SnapshotOutdated: an edit changed the registry meanwhile: take a new snapshot and record that.
            LeaseLost: another run has taken over.
        """
        with self._database.transaction() as connection:
            leases.applied(connection, lease, version)

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> tuple[EpochBoundary, ...]:
        """The recorded boundaries of these topics, and of every topic that these entities ever read, in order."""
        with self._database.reading() as connection:
            return epochs.read(connection, topics, entities)

    def record_epochs(self, boundaries: Iterable[EpochBoundary], *, who: str, why: str) -> None:
        """Adds the boundaries that an operator records: an edit, which the history shows. Errors as of `add_epochs`."""
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            epochs.add(connection, boundaries)

    def add_epochs(self, boundaries: Iterable[EpochBoundary]) -> None:
        """Records boundaries, all or none. The same boundary again changes nothing. Raises EpochConflict when the registry has a
        higher epoch for one."""
        with self._database.transaction() as connection:
            epochs.add(connection, boundaries)

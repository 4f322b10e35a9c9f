"""The doorway to the registry: one object, each method one transaction."""

from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Self

from registry.edit import edit
from registry.model import Applied, EpochBoundary, Lease, Plan, Snapshot
from registry.repository import epochs, leases, statistics
from registry.repository.connection import Database
from registry.repository.migrate import migrate
from registry.repository.read import has_run, read
from registry.repository.write import lock, sign, write
from registry.statistics import Statistics


class Registry:
    """A registry in one schema of a Postgres database. Safe to share between threads, not across a fork.

    Every method may raise RegistryUnreachable and, all but `migrate`, RegistryMissing; those that write, RegistryBusy
    when another edit is held open for 30 s.
    """

    def __init__(self, url: str, schema: str = "statestore") -> None:
        """Connects with the first request.

        Raises:
            RegistryError: `url` is no Postgres URL, or `schema` no lower-case identifier.
        """
        self._database = Database(url, schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        self._database.engine.dispose()

    def migrate(self, slots: int) -> None:
        """Makes the schema and its tables, or brings them to this release. Does nothing the second time.

        Raises:
            SlotsDiffer: the registry was made with another number of slots.
            RegistryTooNew: the schema is of a later release.
        """
        with self._database.transaction() as connection:
            migrate(connection, self._database.schema, slots)

    def snapshot(self) -> Snapshot:
        """The whole registry at one version."""
        with self._database.reading() as connection:
            return read(connection)

    def standing(self) -> tuple[Snapshot, frozenset[str]]:
        """The whole registry at one version, and the entities that some job has run with: what an apply would start
        from."""
        with self._database.reading() as connection:
            return read(connection), has_run(connection)

    def apply(self, plan: Plan, *, who: str, why: str) -> Applied:
        """Stores what differs, in one transaction that no other edit can interleave with; nothing, when nothing
        differs.

        Entities and products that the plan does not name stay as they are; joins that no product uses any more go.

        Args:
            who, why: for the history.

        Raises:
            Malformed, DefinitionChanged, NeedsBackfill, NoSlot: see `registry.edit.edit`.
            RegistryRefused: a constraint of the database, such as two entities on one topic.
        """
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            change = edit(read(connection), plan, has_run(connection))
            return Applied(version=write(connection, change), changes=change.says)

    def take_lease(self, job: str, owner: str, publish_slots: int, *, take_over: bool, expires_after: float) -> Lease:
        """Takes a job's lease for a run: a new generation, which fences all before it.

        Args:
            owner: names this run for people and for `LeaseHeld`; the same owner may always take it again.
            publish_slots: how many this run uses; the lease returned says the most that any run has used.
            take_over: take it from an owner that is alive.
            expires_after: seconds without `renew` after which others may take it.

        Raises:
            LeaseHeld: another owner is alive.
        """
        wanted = Lease(job=job, generation=0, owner=owner, publish_slots=publish_slots)
        with self._database.transaction() as connection:
            return leases.take(connection, wanted, take_over=take_over, expires_after=expires_after)

    def renew(self, lease: Lease) -> None:
        """Says that the run is alive. Raises LeaseLost when another has taken over."""
        with self._database.transaction() as connection:
            leases.renew(connection, lease)

    def holds(self, lease: Lease) -> bool:
        """True while nobody has taken the lease over, and it was not released."""
        with self._database.reading() as connection:
            return leases.holds(connection, lease)

    def begin_attempt(self, lease: Lease, slot: int, round_: int) -> int | None:
        """Counts the attempts of a publish slot's task in a round, from 0; None when the lease is lost."""
        with self._database.transaction() as connection:
            return leases.begin_attempt(connection, lease, slot, round_)

    def release(self, lease: Lease) -> None:
        """Gives the lease back, if it is still held."""
        with self._database.transaction() as connection:
            leases.release(connection, lease)

    def applied(self, lease: Lease, version: int) -> None:
        """Reports that the job works by this version, before its first write under it.

        Raises:
            SnapshotOutdated: the registry was edited since: take a new snapshot and report that.
            LeaseLost: another run has taken over.
        """
        with self._database.transaction() as connection:
            leases.applied(connection, lease, version)

    def epochs(self, topics: Collection[str]) -> tuple[EpochBoundary, ...]:
        """The recorded boundaries of these topics, in order."""
        with self._database.reading() as connection:
            return epochs.read(connection, topics)

    def add_epochs(self, boundaries: Iterable[EpochBoundary]) -> None:
        """Records boundaries, all or none; repeating one changes nothing. Raises EpochConflict when one has another
        epoch."""
        with self._database.transaction() as connection:
            epochs.add(connection, boundaries)

    def statistics(self) -> Statistics | None:
        """The statistics of the state that were kept last, None before the first."""
        with self._database.reading() as connection:
            return statistics.read(connection)

    def keep_statistics(self, taken: Statistics) -> None:
        """Keeps statistics of the state, and none of those before. That is no edit: the version stays."""
        with self._database.transaction() as connection:
            statistics.keep(connection, taken)

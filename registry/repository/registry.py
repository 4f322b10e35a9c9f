"""The doorway to the registry: one object, each method one transaction.

Its records are what jobs, operators and landings leave outside of its content: the statistics of the state, the replay requests
of operators and the account of dead letters (`registry.repository.letters`), and the landings. Only a repair from the source is
an edit; other records leave the version as it is. The statistics are always one whole set, the last one.
"""

from collections.abc import Callable, Collection, Iterable
from copy import copy
from dataclasses import asdict, dataclass
from datetime import UTC
from types import TracebackType
from typing import Concatenate, ParamSpec, Self

from sqlalchemy import Connection, and_, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from registry.edits.apply import apply
from registry.edits.edit import Edit, Signature, edited
from registry.edits.history import last_pause
from registry.edits.operations import WHY, ProductPaused, advance
from registry.errors import EpochConflict
from registry.model import (
    Applied,
    Binding,
    EntityStatistics,
    EpochBoundary,
    HistoryEntry,
    JoinStatistics,
    KnownLanding,
    Lease,
    Progress,
    RegistryState,
    Requirements,
    Snapshot,
    Statistics,
)
from registry.repository.connection import Database, addresses_of, look, may_edit, migrate, role_statements
from registry.repository.leases import Leases, Runs, check_applied
from registry.repository.letters import AccountedLetters, RequestedReplays
from registry.repository.rows import announce, begin_edit, has_run, join_ids, read, write
from registry.tables import (
    entity_statistics,
    epochs,
    history,
    join_statistics,
    landings,
    leases,
    meta,
    walk_progress,
)

_LOCK = text("LOCK TABLE entity_statistics IN EXCLUSIVE MODE")
"""A second writer waits."""


@dataclass(eq=False)
class KeptStatistics:
    """The last statistics of the state."""

    _database: Database

    def last(self) -> Statistics | None:
        """The last statistics, in the order of their names; None before the first."""
        with self._database.reading() as connection:
            rows = list(connection.execute(select(entity_statistics).order_by("entity")).mappings())
            if not rows:
                return None
            specs = {number: join for join, number in join_ids(connection).items()}
            found = [
                JoinStatistics(
                    join=specs[row["join_id"]],
                    direction=row["direction"],
                    mean=row["mean"],
                    most=row["most"],
                    value=row["value"],
                )
                for row in connection.execute(select(join_statistics)).mappings()
            ]
        return Statistics(
            taken_at=rows[0]["taken_at"].astimezone(UTC),
            entities=tuple(
                EntityStatistics(**{name: value for name, value in row.items() if name != "taken_at"}) for row in rows
            ),
            joins=tuple(sorted(found, key=lambda one: (str(one.join), one.direction))),
        )

    def keep(self, taken: Statistics) -> None:
        """Replaces the last statistics. Leaves out joins that the registry no longer has."""
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            connection.execute(delete(entity_statistics))
            connection.execute(delete(join_statistics))
            for entity in taken.entities:
                connection.execute(insert(entity_statistics).values(taken_at=taken.taken_at, **asdict(entity)))
            ids = join_ids(connection)
            for one in (one for one in taken.joins if one.join in ids):
                found = {"direction": one.direction, "mean": one.mean, "most": one.most, "value": one.value}
                connection.execute(insert(join_statistics).values(join_id=ids[one.join], **found))

    def forget(self, values: Collection[str]) -> int:
        """Takes these encoded join keys out of the statistics; the counts stay. Returns how many joins had one of them."""
        named = join_statistics.c.value.in_(values)
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            return connection.execute(update(join_statistics).where(named).values(value=None)).rowcount


@dataclass(eq=False)
class Landings:
    """The landings that the registry knows: each target that holds documents of a product, until an operator removes it."""

    _database: Database

    def note(self, id_: str, *, product: str, topic: str, place: str) -> None:
        """Notes that a process of this landing runs now."""
        given = {"product": product, "topic": topic, "place": place}
        seen = insert(landings).values(id=id_, **given)
        with self._database.transaction() as connection:
            connection.execute(seen.on_conflict_do_update(index_elements=["id"], set_={**given, "seen_at": func.now()}))

    def all(self) -> tuple[KnownLanding, ...]:
        """The landings, in the order in which they were made. A registry that an earlier release migrated knows none."""
        with self._database.reading() as connection:
            if connection.scalar(text("SELECT to_regclass('landings') IS NULL")):
                return ()
            found = connection.execute(select(landings).order_by(landings.c.made_at, landings.c.id)).mappings()
            return tuple(KnownLanding(**row) for row in found)

    def remove(self, id_: str) -> bool:
        """Forgets a landing. Returns False where there is none of this id."""
        with self._database.transaction() as connection:
            return connection.execute(delete(landings).where(landings.c.id == id_)).rowcount > 0


P = ParamSpec("P")
Check = Callable[[Snapshot, Snapshot], object]
"""The caller's own check of the registry before and after an edit. Raises an error for content that its jobs could not run."""


def no_check(_before: Snapshot, _after: Snapshot) -> None:
    """The check of a caller who runs no jobs."""


class Registry(Leases):
    """A registry in one schema of a Postgres database. Safe to share between threads, not across a fork.

    Every method may raise RegistryUnreachable and UnknownRevision, and every method but `migrate` RegistryMissing. Methods
    that write raise RegistryBusy when another edit stays open for 30 s.
    """

    runs: Runs
    """What it keeps of the runs of jobs."""
    statistics: KeptStatistics
    """Of the state, the last ones."""
    replays: RequestedReplays
    """Those that operators ask the job for."""
    letters: AccountedLetters
    """The account of dead letters."""
    landings: Landings
    """The targets that hold documents."""

    def __init__(self, url: str, schema: str = "statestore") -> None:
        """Connects with the first request.

        Raises:
            RegistryError: `url` is no Postgres URL, or `schema` no lower-case identifier.
        """
        self._work_over(Database(url, schema))

    def _work_over(self, database: Database) -> None:
        self._database = database
        self.runs = Runs(database)
        self.statistics = KeptStatistics(database)
        self.replays = RequestedReplays(database)
        self.letters = AccountedLetters(database)
        self.landings = Landings(database)

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
        """Creates the roles of the schema (`schema.ROLES`), or brings their rights to this release.
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
            begin_edit(connection, who, why)
            stored = read(connection)
            change = apply(stored, required, has_run(connection))
            check(stored, edited(stored, change))
            return write(connection, change)

    def operate(
        self, by: Signature, operation: Callable[Concatenate[Snapshot, P], Edit], *given: P.args, **named: P.kwargs
    ) -> Applied:
        """Makes an edit of an operator (`registry.edits.operations`) in one transaction, while every other edit waits.

        Raises:
            RegistryRefused: a constraint of the database, such as a living job that has not applied the last step of a slot.
            NoProduct, NoAssignment and others: see the operation. ProductPaused names the pause.
        """
        with self._database.transaction() as connection:
            begin_edit(connection, *by)
            try:
                change = operation(read(connection), *given, **named)
            except ProductPaused as error:
                pause = last_pause(_history(connection, None), error.name)
                raise ProductPaused(error.name, pause) from None
            return write(connection, change)

    def advance(self, lease: Lease, version: int, *, proven: Collection[str], published: Collection[str]) -> Applied:
        """Takes the next steps that `registry.edits.operations` allows, in one transaction. Without a step it writes nothing.

        Args:
            lease: of the run that takes the steps, and that has applied `version`.
            proven, published: see `registry.edits.operations.advance`.

        Raises:
            SnapshotOutdated: the registry has another version, or the run has not applied it.
            LeaseLost: another run has taken over.
        """
        with self._database.transaction() as connection:
            begin_edit(connection, lease.owner, WHY)
            check_applied(connection, lease, version)
            change = advance(read(connection), proven=proven, published=published)
            return write(connection, change)

    def history(self, limit: int | None = None) -> tuple[HistoryEntry, ...]:
        """The last entries of the history, the newest first; all of them without a limit."""
        with self._database.reading() as connection:
            return _history(connection, limit)

    def keep_progress(self, lines: Collection[Progress]) -> None:
        """Replaces the progress of all walks. This is no edit: the version stays."""
        with self._database.transaction() as connection:
            connection.execute(text("LOCK TABLE walk_progress IN EXCLUSIVE MODE"))  # a second writer waits
            connection.execute(delete(walk_progress))
            for line in lines:
                connection.execute(insert(walk_progress).values(asdict(line)))

    def progress(self) -> tuple[Progress, ...]:
        """How far each walk is, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(select(walk_progress).order_by("walk"))
            return tuple(Progress(**row) for row in rows.mappings())

    def binding(self) -> Binding:
        """The registry's identity, and the job and the table that it is bound to."""
        with self._database.reading() as connection:
            row = connection.execute(select(meta.c.identity, meta.c.job, meta.c.table_name)).one()
        return Binding(identity=row.identity, job=row.job or "", table=row.table_name or "")

    def bind(self, binding: Binding) -> None:
        """Binds the registry to a job and a table. Leaves a registry that has another identity by now as it is."""
        bound = update(meta).where(meta.c.identity == binding.identity)
        with self._database.transaction() as connection:
            announce(connection)
            connection.execute(bound.values(job=binding.job, table_name=binding.table))

    def raise_version(self, least: int) -> None:
        """Raises the version to `least`, by one in each transaction. The content stays."""
        version: int = self.snapshot().version
        while version < least:
            with self._database.transaction() as connection:
                announce(connection)
                version = connection.execute(select(func.edit_version())).scalar_one()

    def unbind_table(self) -> None:
        """Gives the registry a new identity, bound to no table: what holds the former one is foreign from now on. The next table
        begins without the rounds of this one."""
        with self._database.transaction() as connection:
            announce(connection)
            connection.execute(update(leases).values(ended_run=None, ended_round=None))
            connection.execute(update(meta).values(identity=text("gen_random_uuid()::text"), table_name=None))

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> tuple[EpochBoundary, ...]:
        """The recorded boundaries of these topics, and of every topic that these entities ever read, by topic, incarnation,
        partition and offset."""
        columns = (epochs.c.topic, epochs.c.topic_id, epochs.c.partition, epochs.c.from_offset)
        wanted = or_(epochs.c.topic.in_(topics), epochs.c.entity.in_(entities))
        more = (epochs.c.epoch, epochs.c.entity, epochs.c.at_end)
        found = select(*columns, *more).where(wanted).order_by(*columns, epochs.c.epoch)
        with self._database.reading() as connection:
            return tuple(EpochBoundary(**row) for row in connection.execute(found).mappings())

    def record_epochs(self, boundaries: Iterable[EpochBoundary], *, who: str, why: str) -> None:
        """Adds the boundaries that an operator records: an edit, which the history shows. Errors as of `add_epochs`."""
        with self._database.transaction() as connection:
            begin_edit(connection, who, why)
            _add_epochs(connection, boundaries)

    def add_epochs(self, boundaries: Iterable[EpochBoundary]) -> None:
        """Records boundaries, all or none. The same boundary again changes nothing. Raises EpochConflict when the registry has a
        higher epoch for one."""
        with self._database.transaction() as connection:
            _add_epochs(connection, boundaries)


def _history(connection: Connection, limit: int | None) -> tuple[HistoryEntry, ...]:
    columns = [column for column in history.c if column.name != "id"]
    rows = connection.execute(select(*columns).order_by(history.c.id.desc()).limit(limit))
    return tuple(HistoryEntry(**row) for row in rows.mappings())


def _add_epochs(connection: Connection, boundaries: Iterable[EpochBoundary]) -> None:
    """Adds boundaries. The registry only adds them: so a record has the same epoch in every run (rule 2 of docs/architecture.md).
    A stored boundary stays. Where a partition was empty, two boundaries have one offset: the higher epoch counts.

    Raises:
        EpochConflict: the registry has a higher epoch at this place.
    """
    for one in boundaries:
        place = {
            "topic": one.topic,
            "topic_id": one.topic_id,
            "partition": one.partition,
            "from_offset": one.from_offset,
        }
        values = {**place, "epoch": one.epoch, "entity": one.entity, "at_end": one.at_end}
        connection.execute(insert(epochs).values(values).on_conflict_do_nothing())
        here = and_(*(epochs.c[name] == value for name, value in place.items()))
        highest = connection.execute(select(func.max(epochs.c.epoch)).where(here)).scalar_one()
        if highest > one.epoch:
            raise EpochConflict(
                f"topic {one.topic} ({one.topic_id}) partition {one.partition} from offset {one.from_offset} has "
                f"epoch {highest}, not {one.epoch}: epochs only rise, read them again"
            )

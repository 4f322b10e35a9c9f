"""What can go wrong at the registry. A message says what happened, to which entry, and what to do."""

from collections.abc import Sequence

from registry.model import Assignment


class RegistryError(Exception):
    """Any failure of the registry."""


class RegistryUnreachable(RegistryError):
    """No connection to Postgres; the message names host, port and database, never the password."""


class RegistryMissing(RegistryError):
    """The schema holds no registry, or an older one."""


class RegistryTooNew(RegistryError):
    """The schema was migrated by a newer release of statestore."""


class RegistryBusy(RegistryError):
    """Another edit, perhaps a forgotten psql session, holds the registry."""


class RegistryRefused(RegistryError):
    """A constraint of the database refused the edit; the message is the database's own."""


class SlotsDiffer(RegistryError):
    """The number of slots is fixed when the registry is made, since the table's indexes are."""

    def __init__(self, stored: int, asked: int) -> None:
        super().__init__(
            f"the registry was made with {stored} slots and {asked} were asked for: the table's indexes are fixed "
            f"when it is made, so use --slots {stored}, or another table and registry schema"
        )


class Malformed(RegistryError):
    """What was handed to the registry does not hold together: a fault of the caller, not of the user."""


class DefinitionChanged(RegistryError):
    """Something changed that rows are stored under: an entity's key, its types, its shards."""

    def __init__(self, entity: str, what: str, old: object, new: object) -> None:
        super().__init__(
            f"entity {entity}: {what} was {old} and is now {new}, but rows are stored under it: keep {old}, or "
            "declare a new entity with another name"
        )


class NeedsBackfill(RegistryError):
    """An index would have to be filled for rows that are stored already, which cannot be done yet."""


class NoSlot(RegistryError):
    """An entity needs one more index than the table has slots."""

    def __init__(
        self, entity: str, columns: Sequence[str], held: Sequence[Assignment], unused: Sequence[Assignment]
    ) -> None:
        cure = (
            f"no join asks for {_list(unused)} any more: retire and free one of these"
            if unused
            else "joins need every one of them: remove a join, or use a registry and a table with more slots"
        )
        super().__init__(
            f"entity {entity}: no slot is free for {'#'.join(columns)}; all {len(held)} are taken "
            f"({_list(held)}); {cure}"
        )
        self.entity = entity
        self.unused = tuple(unused)


class LeaseHeld(RegistryError):
    """Another run of the job holds the lease and is alive."""


class LeaseLost(RegistryError):
    """A later run of the job has taken the lease, or it was released: stop writing and publishing."""


class SnapshotOutdated(RegistryError):
    """The registry was edited after the job read it: read it again before the next write."""


class EpochConflict(RegistryError):
    """A boundary is recorded already with another epoch; epochs are never rewritten."""


def _list(assignments: Sequence[Assignment]) -> str:
    return ", ".join(f"GSI_{one.slot} {'#'.join(one.columns)}" for one in assignments)

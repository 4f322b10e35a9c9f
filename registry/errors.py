"""The errors of the registry. A message says what happened, to which entry, and what to do."""

from collections.abc import Sequence

from registry.fields import shown_fields
from registry.model import MAX_SLOTS, Assignment, Index, JoinSpec


class RegistryError(Exception):
    """Any failure of the registry."""


class RegistryUnreachable(RegistryError):
    """Postgres does not answer, or does not take this work now: it starts, stops, fails over or lacks a resource. A later try may
    succeed. The message names host, port and database, never the password."""


class RegistryMissing(RegistryError):
    """The schema holds no registry, or one of an older release."""


class UnknownRevision(RegistryError):
    """Another release of statestore migrated the schema: a newer one, or a development version before the first release."""


class RoleNotGranted(RegistryError):
    """The user of the connection may not act as a role of the registry."""

    def __init__(self, role: str, why: str) -> None:
        super().__init__(
            f"the registry's user may not act as {role} ({why}): the owner makes the roles by `statestore roles`, and an "
            f'administrator grants them: GRANT "{role}" TO this user'
        )


class RegistryBusy(RegistryError):
    """Another edit, perhaps a forgotten psql session, holds the registry. A later try may succeed."""


class PlanOutdated(RegistryError):
    """An apply would do something else than the plan that it should carry out."""

    def __init__(self, planned: str) -> None:
        super().__init__(
            f"plan {planned} no longer fits, since the definitions or the registry changed after it; nothing was changed: look "
            "at `statestore plan` again"
        )


class RegistryRefused(RegistryError):
    """A constraint of the database refused the edit; the message is the database's own."""


class Malformed(RegistryError):
    """The requirements do not hold together: a fault of the caller, not of the user."""


class DefinitionChanged(RegistryError):
    """A definition changed under which rows are stored: an entity's key, its types, its shards."""

    def __init__(self, entity: str, what: str, old: object, new: object) -> None:
        super().__init__(
            f"entity {entity}: {what} was {old} and is now {new}, but rows are stored under it: keep {old}, or "
            "declare a new entity with another name and its own topic"
        )


class ColumnStored(RegistryError):
    """A column has another type than when rows were stored with it."""

    def __init__(self, entity: str, column: str, old: str, new: str) -> None:
        super().__init__(
            f"entity {entity}: column {column} was {old} and is now {new}, but a job has run with {entity}, and nothing rewrites "
            f"its stored rows: declare `{column}: {old}` or a type that takes all its values, or use a new table and registry "
            "schema"
        )


class ColumnUsed(RegistryError):
    """A column is declared no more, and a slot or edges hold it."""

    def __init__(self, entity: str, column: str, old: str, where: str) -> None:
        super().__init__(
            f"entity {entity}: column {column} is declared no more, but {where} holds it: keep `{column}: {old}` until no "
            "product joins by it and its slots are free (`statestore retire`, `statestore slots`)"
        )


class MovedToShared(RegistryError):
    """An entity would leave its topic for a topic that several entities share."""

    def __init__(self, entry: str, topic: str) -> None:
        super().__init__(
            f"{entry}: its rows have versions of another topic, and entities share the topic `{topic}`: keep its topic, or "
            "declare a new entity with another name"
        )


class TopicTaken(RegistryError):
    """Two entries would have one topic: of the whole registry, only entities that name their tables share one."""

    def __init__(self, entry: str, topic: str, owner: str, *, stored: bool, renamed: bool) -> None:
        cure = f"give {entry} another `topic`"
        if renamed:
            cure += f"; if this is a new name for {owner}, keep the old name: a registry entry has one name for ever"
        elif {entry.split()[0], owner.split()[0]} == {"entity"}:
            cure += "; if the topic has several tables, write `table` in each of its entities"
        super().__init__(
            f"{entry}: {owner}{' of the registry' if stored else ''} already has the topic `{topic}`; {cure}"
        )


class ColumnHeld(RegistryError):
    """A column changed its type, and a slot or edges of stored rows hold it in the encoding of the old type."""

    def __init__(self, entity: str, column: str, old: str, new: str, where: str) -> None:
        super().__init__(
            f"entity {entity}: the type of {column} was {old} and is now {new}, but a job has run with {entity}: {where} of "
            f"its stored rows has the encoding of the old type. Keep {old}, or use a new table, registry schema and "
            "checkpoint: the job then reads all topics again"
        )


class RootChanged(RegistryError):
    """A product changed its root, and its documents may be published."""

    def __init__(self, product: str, old: str, new: str) -> None:
        super().__init__(
            f"product {product}: its root was {old} and is now {new}, but a job has run with {old}: another root makes another "
            f"product, so keep {old}, or give the new product another name and another `topic`"
        )


class NoProduct(RegistryError):
    """The registry has no product of this name, live or waiting."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the registry has no product {name}")
        self.name = name


class NoAssignment(RegistryError):
    """The slot of the entity is free, or there is no such entity or slot."""

    def __init__(self, entity: str, slot: int) -> None:
        super().__init__(f"GSI_{slot} of entity {entity} holds nothing: `statestore slots` shows the slots")


class SlotRetires(RegistryError):
    """A join needs the columns of a slot that retires."""

    def __init__(self, join: JoinSpec, need: Index) -> None:
        super().__init__(
            f"join {join}: the slot of {need.entity} with {shown_fields(need.columns)} retires: wait until the job has freed it "
            "(`statestore slots` shows its state), then apply again"
        )


class NoSlot(RegistryError):
    """An entity needs one more index than the table has slots."""

    def __init__(
        self, entity: str, columns: Sequence[str], taken: Sequence[Assignment], unused: Sequence[Assignment]
    ) -> None:
        cure = (
            f"no join asks for {slot_list(unused)} any more: retire and free one of these"
            if unused
            else "joins need every one of them: remove a join"
        )
        if len(taken) < MAX_SLOTS:
            cure += f", or add a slot (`statestore add-slots {len(taken) + 1}`)"
        super().__init__(
            f"entity {entity}: no slot is free for {shown_fields(columns)}; all {len(taken)} are taken "
            f"({slot_list(taken)}); {cure}"
        )
        self.entity = entity
        self.unused = tuple(unused)


class LeaseHeld(RegistryError):
    """Another run of the job holds the lease and is alive."""


class LeaseLost(RegistryError):
    """A later run of the job has taken the lease, or the run released it: stop writing and publishing."""


class SnapshotOutdated(RegistryError):
    """An edit changed the registry after the job read it: read it again before the next write."""


class EpochConflict(RegistryError):
    """The registry holds the boundary with another epoch. Epochs never change."""


def slot_list(assignments: Sequence[Assignment]) -> str:
    """Slots with their columns, for people."""
    return ", ".join(f"GSI_{one.slot} {shown_fields(one.columns)}" for one in assignments)

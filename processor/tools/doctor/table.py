"""The table of any store: its shape, and the requests that a job sends."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from processor.environment.stores.kind import INDEX_READS, StoreKind, existing_table
from processor.environment.stores.kinds import kind_of
from processor.finding import Checks, DoctorCheck, Finding, failure, ok
from processor.tools.doctor.context import POSTGRES, CheckContext
from processor.tools.doctor.registry import existing_registry
from statestore.errors import NewerFormat, StoreError
from statestore.items import FORMAT, check_format
from statestore.keys import Key, partitions
from statestore.store import Delete, Equals, Item, Query, Write
from statestore.table import slot_names, too_few

SHAPE, USE = Checks(), Checks()
"""The checks of a kind of store come between the two."""
OF_KIND = ""
"""The cure is that of the kind of store."""
NO_ITEM = Key("DOCTOR", "no item has this key")
NEVER = Equals("PK", "no item has this value")
SAMPLE = 5
"""Rows of each entity whose format the check reads."""


def table_checks(kind: StoreKind[Any]) -> tuple[DoctorCheck, ...]:
    """The checks of a table, with those that only this kind of store has."""
    own = kind.checks
    before = tuple(check.name for check in own.before)
    table, *shape = (replace(check, cure=check.cure or own.cure) for check in SHAPE)
    use = (replace(check, cure=check.cure or own.cure) for check in USE)
    return (*own.before, replace(table, needs=before), *shape, *own.table, *use)


@SHAPE.check("table", "the table", cure=OF_KIND)
def check_table(around: CheckContext) -> Iterator[Finding]:
    """The table and its state."""
    state = around.table_state
    if state is None:
        yield ok(f"there is no table {around.settings.table} yet: the first start of the job creates it")
    elif state.status not in ("ACTIVE", "UPDATING"):
        yield failure(f"its state is {state.status}", "wait until it is ACTIVE; if it stays so, look at its KMS key")
    else:
        yield ok(f"{around.settings.table} is {state.status}")


@SHAPE.check("keys", "keys, columns, indexes", cure=OF_KIND, needs=("table",))
def check_keys(around: CheckContext) -> Iterator[Finding]:
    """The keys of the table and of its indexes, and what the indexes hold."""
    state = existing_table(around)
    for misfit in state.misfits:
        what, _, cure = misfit.rpartition(": ")
        yield failure(what, cure)
    if not state.misfits:
        yield ok(f"keys PK and SK, {state.slots} indexes GSI_n with all attributes")


@SHAPE.check("indexes", "the states of the indexes", cure=OF_KIND, needs=("table",))
def check_indexes(around: CheckContext) -> Iterator[Finding]:
    """The state of each index."""
    states = existing_table(around).indexes
    waiting = [f"{name} is {state}" for name, state in sorted(states.items()) if state not in ("ACTIVE", "UPDATING")]
    if waiting:
        yield failure(", ".join(waiting), "wait until each is ACTIVE; it takes minutes, and longer in a large table")
    else:
        yield ok(f"{len(states)} are ready")


@USE.check("slots", "the slots of registry and table", cure=POSTGRES, needs=("table", "definitions"))
def check_slots(around: CheckContext) -> Iterator[Finding]:
    """The number of indexes, compared with the slots of the registry."""
    existing_registry(around)
    found, wanted = existing_table(around).slots, around.registry.snapshot().slots
    if found < wanted:
        what, _, cure = too_few(found, wanted).partition(": ")
        yield failure(f"the table: {what}", cure)
    else:
        yield ok(f"{wanted} in the registry, {found} in the table")


@USE.check("permissions", "the requests of a job", cure=OF_KIND, needs=("table", "keys"))
def check_permissions(around: CheckContext) -> Iterator[Finding]:
    """The requests of a job, each in a form that reads nothing and writes nothing."""
    tries = _tries(around, existing_table(around).slots)
    own, denied = kind_of(around.settings.store).checks, []
    for action, send in tries.items():
        try:
            send()
        except StoreError as error:
            text, cure = f"{action}: {error}", "see the error; `statestore run` sends the same request"
            denied.append(own.denied(action, str(error)) or failure(text, cure))
    untried = f"; nobody can try {own.untried}" if own.untried else ""
    yield from denied or [ok(f"{', '.join(tries)} are allowed{untried}")]


@USE.check("items", "the format of stored rows", cure=OF_KIND, needs=("permissions", "definitions"))
def check_items(around: CheckContext) -> Iterator[Finding]:
    """The format of some items of each entity."""
    existing_table(around)
    existing_registry(around)
    seen = 0
    try:
        for entity in (one.entity for one in around.plan.entities.values()):
            for item in _sample(around, entity.name, entity.shards):
                check_format(item)
                seen += 1
    except NewerFormat as error:
        yield failure(str(error), "install the release that wrote the table, or a newer one")
        return
    yield ok(f"{seen} rows seen, none of a newer format than {FORMAT}" if seen else "no row yet")


def _sample(around: CheckContext, entity: str, shards: int) -> list[Item]:
    for partition in partitions(entity, shards):
        if found := around.store.page(partition, None, SAMPLE).items:
            return found
    return []


def _tries(around: CheckContext, slots: int) -> dict[str, Callable[[], object]]:
    """The requests of a job: the action in AWS's policies, and how to try it."""
    store, write, names = around.store, Write(NO_ITEM, {"doctor": 1}, when=NEVER), slot_names(slots) if slots else []
    return {
        "BatchGetItem": lambda: store.get([NO_ITEM]),
        "Query": lambda: store.page(NO_ITEM.pk, None, 1),
        INDEX_READS: lambda: [store.page(Query(name, NO_ITEM.sk), None, 1) for name in names],
        "UpdateItem": lambda: store.write(write),
        "DeleteItem": lambda: store.delete(Delete(key=NO_ITEM, when=NEVER)),
    }

"""The table in DynamoDB: its shape, and the requests that a job sends."""

import re
from collections.abc import Callable, Iterator

from processor.doctor.finding import Finding, NothingToCheck, failure, ok, warning
from processor.doctor.registry_checks import existing_registry
from processor.doctor.surroundings import Surroundings
from statestore.errors import NewerFormat, StoreError
from statestore.item_format import FORMAT, check_format
from statestore.keys import Key, partitions
from statestore.store import Delete, Equals, Item, Query, Write
from statestore.table import TTL, slot_names, too_few
from statestore.table_state import TableState

NO_ITEM = Key("DOCTOR", "no item has this key")
NEVER = Equals("PK", "no item has this value")
INDEXES = "Query of the indexes"
DENIED = "AccessDenied|not authorized|: 403:"
"""In the words of DynamoDB; a proxy, or moto, only has the HTTP status."""
SAMPLE = 5
"""Rows of each entity whose format the check reads."""


def check_credentials(around: Surroundings) -> Iterator[Finding]:
    """Where the credentials of AWS come from."""
    yield ok(f"AWS credentials come from {around.table.credentials_source()}")


def check_table(around: Surroundings) -> Iterator[Finding]:
    """The table and its state."""
    state = around.table_state
    if state is None:
        yield ok(f"there is no table {around.settings.table} yet: the first start of the job creates it")
    elif state.status not in ("ACTIVE", "UPDATING"):
        yield failure(f"its state is {state.status}", "wait until it is ACTIVE; if it stays so, look at its KMS key")
    else:
        yield ok(f"{around.settings.table} is {state.status}")


def check_keys(around: Surroundings) -> Iterator[Finding]:
    """The keys of the table and of its indexes, and what the indexes hold."""
    state = _state(around)
    for misfit in state.misfits:
        what, _, cure = misfit.rpartition(": ")
        yield failure(what, cure)
    if not state.misfits:
        yield ok(f"keys PK and SK, {state.slots} indexes GSI_n with all attributes")


def check_indexes(around: Surroundings) -> Iterator[Finding]:
    """The state of each index."""
    states = _state(around).indexes
    waiting = [f"{name} is {state}" for name, state in sorted(states.items()) if state not in ("ACTIVE", "UPDATING")]
    if waiting:
        yield failure(", ".join(waiting), "wait until each is ACTIVE; it takes minutes, and longer in a large table")
    else:
        yield ok(f"{len(states)} are ready")


def check_slots(around: Surroundings) -> Iterator[Finding]:
    """The number of indexes, compared with the slots of the registry."""
    existing_registry(around)
    found, wanted = _state(around).slots, around.registry.snapshot().slots
    if found < wanted:
        what, _, cure = too_few(found, wanted).partition(": ")
        yield failure(f"the table: {what}", cure)
    else:
        yield ok(f"{wanted} in the registry, {found} in the table")


def check_ttl(around: Surroundings) -> Iterator[Finding]:
    """The attribute by which the table deletes items."""
    state = _state(around)
    if state.expires:
        yield ok(f"on, by {TTL}")
    elif state.expires_by is None:
        cure = "the next start of the job turns it on; or `aws dynamodb update-time-to-live`"
        yield warning("off: delete markers stay for ever", cure)
    else:
        cure = "`aws dynamodb update-time-to-live`: turn it off, wait an hour, start the job"
        yield failure(f"items expire by {state.expires_by}, not by {TTL}", cure)


def check_log(around: Surroundings) -> Iterator[Finding]:
    """Whether the rows of a table in Postgres outlast a crash of its server, and whether the setting says the same."""
    logged, set_unlogged = _state(around).logged, around.settings.store_unlogged
    form = "logged: its rows outlast a crash of the server" if logged else "unlogged: a crash of the server empties it"
    if logged == set_unlogged:
        cure = "the next start of the job alters it, if its user owns the table; or correct --store-unlogged"
        yield warning(f"the table is {form}; the setting store_unlogged is {str(set_unlogged).lower()}", cure)
    elif logged:
        yield ok(f"the table is {form}")
    else:
        yield warning(f"the table is {form}", "--store-unlogged false, unless the topics can build the state again")


def check_protection(around: Surroundings) -> Iterator[Finding]:
    """The protection against loss, and the mode of billing."""
    if around.embedded:
        raise NothingToCheck("the table is embedded")
    state = _state(around)
    if not state.protected:
        yield warning("the table has no deletion protection", "turn deletion protection on")
    if state.recoverable is None:
        yield warning("DynamoDB does not say whether point-in-time recovery is on", "allow DescribeContinuousBackups")
    elif not state.recoverable:
        yield warning("point-in-time recovery is off", "turn point-in-time recovery on")
    if not state.on_demand:
        cure = "autoscaling for the table and each index, or billing on demand: both also while the job runs"
        yield warning("the capacity is provisioned: a job that catches up is throttled", cure)
    elif state.protected and state.recoverable:
        yield ok("deletion protection, point-in-time recovery, billing on demand")


def check_permissions(around: Surroundings) -> Iterator[Finding]:
    """The requests of a job, each in a form that reads nothing and writes nothing."""
    tries = _tries(around, _state(around).slots)
    denied = []
    for action, send in tries.items():
        try:
            send()
        except StoreError as error:
            denied.append(_denied(action, str(error)))
    yield from denied or [ok(f"{', '.join(tries)} are allowed; nobody can try CreateTable and UpdateTable")]


def check_items(around: Surroundings) -> Iterator[Finding]:
    """The format of some items of each entity."""
    _state(around)
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


def _sample(around: Surroundings, entity: str, shards: int) -> list[Item]:
    for partition in partitions(entity, shards):
        if found := around.store.page(partition, None, SAMPLE).items:
            return found
    return []


def _state(around: Surroundings) -> TableState:
    state = around.table_state
    if state is None:
        raise NothingToCheck("there is no table")
    return state


def _tries(around: Surroundings, slots: int) -> dict[str, Callable[[], object]]:
    """The requests of a job: the action in AWS's policies, and how to try it."""
    store, write, names = around.store, Write(NO_ITEM, {"doctor": 1}, when=NEVER), slot_names(slots) if slots else []
    return {
        "BatchGetItem": lambda: store.get([NO_ITEM]),
        "Query": lambda: store.page(NO_ITEM.pk, None, 1),
        INDEXES: lambda: [store.page(Query(name, NO_ITEM.sk), None, 1) for name in names],
        "UpdateItem": lambda: store.write(write),
        "DeleteItem": lambda: store.delete(Delete(key=NO_ITEM, when=NEVER)),
    }


def _denied(action: str, error: str) -> Finding:
    if not re.search(DENIED, error):
        return failure(f"{action}: {error}", "see the error; `statestore run` sends the same request")
    if action != INDEXES:
        cure = f"allow dynamodb:{action} on the table in the policy of the role"
        return failure(f"{action} is not allowed", cure)
    index = re.search(r"querying (\w+)", error)
    cure = "allow dynamodb:Query on the table's index/* in the policy of the role"
    return failure(f"{action} is not allowed{f', on {index[1]} first' if index else ''}", cure)

"""The registry in Postgres and the table of any store.

Of the registry: its server, its schema, the rights of the user, its definitions, and the leases of jobs. Of the table: its shape,
and the requests that a job sends.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from processor.engine.plan.plan import check_dead_letter_topic, check_needs
from processor.engine.protocol.ticks import CLOCK, clock_in
from processor.environment.stores.kind import INDEX_READS, StoreKind, existing_table
from processor.environment.stores.kinds import kind_of
from processor.environment.stores.postgres import commit_findings, release_finding
from processor.errors import OwnedByAnother
from processor.finding import (
    Checks,
    DoctorCheck,
    Finding,
    NothingToCheck,
    clock_finding,
    failure,
    is_this_machine,
    ok,
    warning,
)
from processor.job.run.binding import refuse_lost_registry
from processor.text import first_of
from processor.tools.doctor.context import POSTGRES, CheckContext
from registry.model import RegistryState
from statestore.items import FORMAT, check_format
from statestore.keys import Key, partitions
from statestore.store import Delete, Equals, Item, NewerFormat, Query, StoreError, Write
from statestore.table import slot_names, too_few

CHECKS = Checks()
DEFINITIONS = "correct the definitions, and `statestore apply` them"
SHOWN_RIGHTS = 3


@CHECKS.check("registry login", "the user in Postgres, and TLS", cure=POSTGRES, needs=("postgres",))
def check_login(around: CheckContext) -> Iterator[Finding]:
    """Whether Postgres accepts the user, and whether the connection is encrypted."""
    state = around.registry.state()
    places = [host for host, _ in around.registry.addresses()]
    if state.tls or all(map(is_this_machine, places)):
        yield ok(f"Postgres takes the user {state.user}, {'with' if state.tls else 'without'} TLS")
    else:
        text = f"the connection to {', '.join(places)} has no TLS: others on the way can read and change it"
        yield warning(
            text, "add `?sslmode=verify-full&sslrootcert=FILE` to --registry, or set PGSSLMODE and PGSSLROOTCERT"
        )


@CHECKS.check("server", "the release of the registry's server", cure=POSTGRES, needs=("registry login",))
def check_registry_release(around: CheckContext) -> Iterator[Finding]:
    """The release of the registry's server."""
    yield release_finding(around.registry.state().release)


@CHECKS.check("postgres clock", "the clocks of this machine and of Postgres", cure=POSTGRES, needs=("registry login",))
def check_registry_clock(around: CheckContext) -> Iterator[Finding]:
    """This machine's clock, compared with that of Postgres."""
    yield clock_finding(around.now() - around.registry.state().now, "Postgres")


@CHECKS.check("registry", "the schema and its release", cure=POSTGRES, needs=("registry login",))
def check_schema(around: CheckContext) -> Iterator[Finding]:
    """Whether there is a registry, and of which release."""
    state, schema = around.registry.state(), around.settings.registry_schema
    first = "statestore apply --definitions DIR --why '...'"
    if not state.exists and (lost := _lost_registry(around)):
        what, _, cure = lost.partition(": ")
        yield failure(what, cure)
    elif not state.exists and not state.may_create:
        cure = f"as an administrator: `{first}`, then `statestore roles`, and GRANT {schema}_job TO {state.user}"
        yield failure(f"there is no schema {schema}, and {state.user} may not create it", cure)
    elif not state.exists:
        yield warning(f"there is no registry in the schema {schema} yet", f"`{first}` creates it")
    elif not state.known:
        cure = "install that release, or give another --registry-schema"
        yield failure(f"another release of statestore migrated it: its revision is {state.revision}", cure)
    elif not state.current:
        yield warning(f"its revision is {state.revision}: an older one", "the next start of a job migrates it")
    else:
        yield ok(f"schema {schema}, revision {state.revision}")


def _lost_registry(around: CheckContext) -> str:
    """What the table says of a registry that is not there; empty where it says nothing."""
    try:
        refuse_lost_registry(around.settings, around.registry)
    except OwnedByAnother as lost:
        return str(lost)
    return ""


@CHECKS.check("rights", "the rights of the user", cure=POSTGRES, needs=("registry",))
def check_rights(around: CheckContext) -> Iterator[Finding]:
    """The rights of the user in the tables of the registry."""
    state, schema = existing_registry(around), around.settings.registry_schema
    if state.missing:
        cure = f"`statestore roles` as the owner of the schema, then GRANT {schema}_job TO {state.user}"
        yield failure(f"{state.user} lacks {first_of(state.missing, SHOWN_RIGHTS)}", cure)
    else:
        yield ok(f"{state.user} has all rights of a job")


@CHECKS.check("definitions", "entities and products", cure=DEFINITIONS, needs=("registry",))
def check_definitions(around: CheckContext) -> Iterator[Finding]:
    """The entities and the products that a job applies."""
    need_definitions(around)
    plan = around.plan
    check_dead_letter_topic(plan, around.settings.dead_letter_topic)
    check_needs(plan, dict(around.settings.secrets))
    source = "--definitions" if around.definitions else f"version {plan.version}"
    yield ok(f"{source}: {len(plan.entities)} entities, {len(plan.products)} products")


@CHECKS.check("commits", "what a crash or a failover leaves", cure=POSTGRES, needs=("registry login",))
def check_registry_commits(around: CheckContext) -> Iterator[Finding]:
    """The commits on the registry's server."""
    if around.embedded:
        raise NothingToCheck("the server is embedded")
    yield from commit_findings(around.registry_durability)


@CHECKS.check("lease", "who runs the job", cure=POSTGRES, needs=("registry",))
def check_leases(around: CheckContext) -> Iterator[Finding]:
    """Who runs the job now."""
    existing_registry(around)
    name = around.settings.job
    lease = next((one for one in around.registry.jobs() if one.job == name), None)
    if lease is None or lease.owner is None:
        yield ok(f"nobody runs the job {name}")
    elif lease.alive:
        yield ok(f"{lease.owner} runs the job {name}: a second start waits, or takes over with --take-over")
    else:
        text = f"{lease.owner} ran the job {name}, sent no heartbeat since {lease.renewed_at:%Y-%m-%d %H:%M:%S%z}"
        yield warning(f"{text}, and did not end in order", "see its log, then start the job again")


def existing_registry(around: CheckContext) -> RegistryState:
    """The state of the registry. Raises NothingToCheck where there is none."""
    state = around.registry.state()
    if not state.exists:
        raise NothingToCheck("there is no registry yet")
    return state


def need_definitions(around: CheckContext) -> None:
    """Raises NothingToCheck where there is no registry, and the verb got no definitions in its place."""
    if around.definitions is None:
        existing_registry(around)


SHAPE, USE = Checks(), Checks()
"""The checks of a kind of store come between the two."""
OF_KIND = ""
"""The cure is that of the kind of store."""
NO_ITEM = Key("DOCTOR", "no item has this key")
NEVER = Equals("PK", "no item has this value")
SHOWN_PRODUCTS = 3
MOST_AHEAD, MOST_BEHIND = 60.0, 7200.0
"""Seconds. A job at rest writes its clock once an hour."""
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
    untried = f"; no check can try {own.untried}" if own.untried else ""
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


@USE.check("product clock", "the clock of the products", cure=OF_KIND, needs=("permissions", "definitions"))
def check_product_clock(around: CheckContext) -> Iterator[Finding]:
    """The clock with which documents are made again, compared with that of this machine. It never goes back."""
    existing_table(around)
    existing_registry(around)
    products = sorted(name for name, one in around.plan.products.items() if one.product.clock)
    if not products:
        yield ok("no product has a clock")
        return
    time, named = clock_in(around.store.get([CLOCK]).get(CLOCK)), f"the clock of {first_of(products, SHOWN_PRODUCTS)}"
    ahead = time - around.now()
    if not time:
        yield ok(f"{named} begins with the next round")
    elif ahead > MOST_AHEAD:
        text = f"{named} is {ahead:,.0f} s ahead of this machine: a round had a wrong time"
        yield failure(text, "let NTP set the clocks; time changes no document before that moment")
    elif -ahead > MOST_BEHIND and any(one.job == around.settings.job and one.alive for one in around.registry.jobs()):
        text = f"{named} is {-ahead:,.0f} s behind this machine, and the job runs"
        yield warning(text, "`statestore status` says what the job waits for")
    else:
        yield ok(f"{named} was {max(-ahead, 0):,.0f} s behind this machine at the last round that used it")


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

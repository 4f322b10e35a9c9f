"""The registry in Postgres: its server, its schema, the rights of the user, its definitions, and the leases of jobs."""

from collections.abc import Iterator

from processor.engine.plan.plan import check_dead_letter_topic
from processor.environment.stores.postgres import commit_findings, release_finding
from processor.errors import OwnedByAnother
from processor.finding import (
    Checks,
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
    existing_registry(around)
    plan = around.plan
    check_dead_letter_topic(plan, around.settings.dead_letter_topic)
    yield ok(f"version {plan.version}: {len(plan.entities)} entities, {len(plan.products)} products")


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

"""Reads the identities of registry, table and checkpoint, and writes them at a first start. `processor.engine.protocol.identity`
decides.

A first start writes the table's identity, then the registry's binding, then the checkpoint's identity. A crash between
two of these leaves a first start that can be repeated.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from processor.engine.plan.plan import Plan
from processor.engine.protocol.identity import (
    IDENTITY,
    IDENTITY_FILE,
    TRACES,
    check_binding,
    check_readable,
    identity_in,
    is_restored,
    write_identity,
)
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_store
from processor.errors import ForeignPart
from processor.job.run.checkpoint import Checkpoint
from processor.job.run.forget_progress import forget_progress, messages_in
from processor.job.run.take_over import fence_producers
from registry.errors import RegistryMissing
from registry.model import Binding
from registry.repository import Registry
from statestore.errors import NoTable
from statestore.store import Refused, ReportIndex, Store


def check_parts(
    settings: Settings,
    registry: Registry,
    store: Store,
    checkpoint: Checkpoint | None,
    *,
    adopt: bool = False,
    lost: str = "",
) -> None:
    """Raises ForeignPart when the job's name, the table or the checkpoint does not belong to the registry, or the table lacks its
    last writes (`lost`, as `find_lost_writes` returns it). Writes nothing."""
    table, restored = _identity(store)
    check_binding(
        registry.binding(),
        Binding(identity="", job=settings.job, table=settings.place),
        table=table,
        used=table == "" and any(map(store.partition, TRACES)),
        restored=restored,
        lost=lost,
        checkpoint=_checkpoint_identity(checkpoint),
        path=settings.checkpoint,
        adopt=adopt,
    )


def check_new_registry(settings: Settings, registry: Registry) -> None:
    """Raises ForeignPart where there is no registry yet, but the table belongs to one: then --registry or
    --registry-schema is mistyped. Writes nothing."""
    try:
        registry.binding()
    except RegistryMissing:
        with closing(open_store(settings)) as store:
            identity, _ = _identity(store)
        if identity:
            raise ForeignPart(
                f"the table {settings.table} is foreign: it belongs to a registry, and there is none in the schema "
                f"{settings.registry_schema}. Give the registry of the table (--registry, --registry-schema), or a new --table"
            ) from None


@contextmanager
def readable_store(settings: Settings, registry: Registry) -> Iterator[Store]:
    """The table's store inside the block, for a verb that reads rows. Raises ForeignPart for rows of another registry."""
    with closing(open_store(settings)) as store:
        check_readable(registry.binding(), settings.place, _identity(store)[0])
        yield store


@contextmanager
def look_up_stores(settings: Settings, registry: Registry, count: int) -> Iterator[list[Store]]:
    """So many stores inside the block, for look-ups, which soon give up a silent store. Raises as `readable_store`."""
    with readable_store(settings, registry), ExitStack() as stack:
        yield [stack.enter_context(closing(open_store(settings, RetryBudget.LOOK_UP))) for _ in range(count)]


def widen_table(settings: Settings, registry: Registry, slots: int, progress: ReportIndex) -> None:
    """Gives the registry's table the indexes that it lacks. Does nothing where no start has created the table yet. Raises
    ForeignPart for a table of another registry."""
    with closing(open_store(settings)) as store:
        binding, (identity, _) = registry.binding(), _identity(store)
        if binding.table or identity:
            check_readable(binding, settings.place, identity)
        if identity is not None:
            store.add_slots(slots, progress)


def adopt_name(settings: Settings, registry: Registry, *, take_over: bool) -> None:
    """Makes the job's name the registry's. Call it after `check_parts`."""
    job = registry.binding().job
    if job and job != settings.job:
        registry.rename_job(settings.job, take_over=take_over)


def adopt_table(settings: Settings, plan: Plan, registry: Registry, store: Store, *, lost: str = "") -> None:
    """Lets the registry forget its table, in whose place the job uses an empty or a restored one, or the same without its last
    writes (`lost`). A table with rows keeps them, and forgets its progress. The caller holds the lease and the table, and has
    called `check_parts`."""
    table, (identity, restored) = registry.binding().table, _identity(store)
    if table and identity and (table != settings.place or restored or lost):
        forget_progress(plan, store, messages_in(settings))
        identity = ""
    if table and not identity:
        registry.unbind_table()


def bind_parts(settings: Settings, registry: Registry, store: Store, checkpoint: Checkpoint | None) -> None:
    """Writes the identity where it is missing: into the table, and into the checkpoint. The caller holds the lease and the table,
    and has called `check_parts`."""
    binding = registry.binding()
    if not binding.table:
        written = store.write(write_identity(binding.identity, store.created))
        if isinstance(written, Refused) and identity_in(written.current) != binding.identity:
            raise ForeignPart(f"another job bound the table {settings.table} just now: start again")
    if (binding.job, binding.table) != (settings.job, settings.place):
        registry.bind(replace(binding, job=settings.job, table=settings.place))
    if checkpoint is not None and not checkpoint.began():
        checkpoint.write(IDENTITY_FILE, json.dumps({"id": binding.identity}))


def fence_other_jobs(settings: Settings, registry: Registry) -> None:
    """Fences the producers of jobs that ran by this registry under another name."""
    for job, lanes in registry.lanes_of_other_jobs(settings.job).items():
        fence_producers(replace(settings, job=job), lanes)


def _identity(store: Store) -> tuple[str | None, bool]:
    """The id in the table, and whether the table was restored, once `create` has looked. The id is empty for a table without one,
    None where there is no table."""
    try:
        item = store.get([IDENTITY]).get(IDENTITY)
    except NoTable:
        return None, False
    return identity_in(item), is_restored(item, store.created)


def _checkpoint_identity(checkpoint: Checkpoint | None) -> str | None:
    if checkpoint is None or not checkpoint.began():
        return None
    return str(json.loads(checkpoint.read(IDENTITY_FILE))["id"]) if checkpoint.exists(IDENTITY_FILE) else ""

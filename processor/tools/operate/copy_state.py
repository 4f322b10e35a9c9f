"""Copies the state of a stopped job into another store, and binds the registry to the copy.

    1. check that the source is the table of the registry, and that the target is empty or an earlier copy of this table
    2. take the lease, so that no job starts meanwhile, and both tables, so that Postgres refuses writes of an earlier run
    3. note in the target that the copy is not finished
    4. copy and compare all items
    5. write the identity into the target, then bind the registry to it: the source is foreign from now on

A call that broke off can be repeated. Until the end the job goes on with the source.
"""

from contextlib import closing
from dataclasses import replace

from processor.engine.protocol.identity import IDENTITY, identity_in, replace_identity, unfinished
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.errors import ForeignPart, StatestoreError
from processor.job.run.binding import Parts
from processor.job.run.lease import LeaseRenewal, lease_check, take_table
from registry.repository import Registry
from statestore.copy_items import CopyCounts, CopyStep, ReportStep, copy_items
from statestore.store import Store


def copy_state(source: Settings, target: Settings, registry: Registry, *, owner: str, report: ReportStep) -> CopyCounts:
    """Copies the table of `source` to that of `target`. `owner`: of the lease; `report` gets each step.

    Raises LeaseHeld while a job lives, ForeignPart for a table that does not belong to the registry, StatestoreError where there
    is nothing to copy, the errors of both stores, and Fenced when a job takes over.
    """
    if source.place == target.place:
        raise StatestoreError(
            f"--to is {target.place}, like --from: the registry tells tables apart by store and name. Give another table name"
        )
    with closing(open_store(source)) as former, closing(open_store(target)) as new:
        binding = registry.binding()
        if not binding.table:
            raise StatestoreError("no job has run with this registry: there is nothing to copy")
        parts = Parts(settings=source, registry=registry, store=former)
        parts.check()
        check_target(target, new, binding.identity)
        lease = registry.take_lease(
            source.job, owner, source.lanes, take_over=False, expires_after=source.lease_seconds
        )
        renewal = LeaseRenewal(source, lease)
        renewal.start()

        def go_on(step: CopyStep) -> None:
            renewal.check()
            report(step)

        try:
            parts.check()  # another copy may have ended before the lease
            new.create(registry.snapshot().slots)
            for store in (former, new):
                take_table(registry, lease, store)
            new.write(replace_identity(unfinished(binding.identity)))
            counts = copy_items(former, new, without=IDENTITY, report=go_on)
            lease_check(registry, lease)()
            new.write(replace_identity(binding.identity, new.created))
            registry.bind(replace(binding, table=target.place))
            return counts
        finally:
            renewal.stop()
            registry.give_back(lease)


def check_target(target: Settings, store: Store, identity: str) -> None:
    """Raises ForeignPart for a table with items, unless it is an earlier copy, or the former table, of the same registry."""
    if store.describe() is None:
        return
    found = identity_in(store.get([IDENTITY]).get(IDENTITY))
    if found not in (identity, unfinished(identity)) and store.scan(None, 1).items:
        raise ForeignPart(
            f"the table {target.place} is foreign: it holds items of something else. Give an empty table, or a new name"
        )

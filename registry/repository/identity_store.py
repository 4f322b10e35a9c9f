"""The registry's identity, and the job and the table that it is bound to."""

from sqlalchemy import Connection, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from registry.errors import LeaseHeld
from registry.model import Binding
from registry.repository.lease_store import is_alive
from registry.tables import leases, meta


def read(connection: Connection) -> Binding:
    """The registry's identity, with its job and its table."""
    row = connection.execute(select(meta.c.identity, meta.c.job, meta.c.table_name)).one()
    return Binding(identity=row.identity, job=row.job or "", table=row.table_name or "")


def bind(connection: Connection, binding: Binding) -> None:
    """Binds the registry to a job and a table. Leaves a registry that has another identity by now as it is."""
    bound = update(meta).where(meta.c.identity == binding.identity)
    connection.execute(bound.values(job=binding.job, table_name=binding.table))


def raise_version(connection: Connection) -> int:
    """Raises the registry's version by one, as an edit does, and returns it."""
    version: int = connection.execute(select(func.edit_version())).scalar_one()
    return version


def unbind_table(connection: Connection) -> None:
    """Gives the registry a new identity, bound to no table: what holds the former one is foreign from now on. The next table
    begins without the rounds of this one."""
    connection.execute(update(leases).values(ended_run=None, ended_round=None))
    connection.execute(update(meta).values(identity=text("gen_random_uuid()::text"), table_name=None))


def rename_job(connection: Connection, job: str, *, take_over: bool) -> None:
    """Binds the registry to a job of another name, whose generations go on above those of every earlier job. The runs of
    the earlier jobs lose their leases.

    Raises:
        LeaseHeld: a run of an earlier job is alive, and the caller does not take over.
    """
    earlier = leases.c.job != job
    alive = connection.execute(select(leases.c.job, leases.c.owner).where(earlier, is_alive())).first()
    if alive is not None and not take_over:
        raise LeaseHeld(f"job {alive.job} runs already: {alive.owner}; stop it, wait, or take over, which fences it")
    highest, lanes = connection.execute(select(func.max(leases.c.generation), func.max(leases.c.lanes))).one()
    now = func.clock_timestamp()
    connection.execute(update(leases).where(earlier).values(owner=None, generation=leases.c.generation + 1))
    new = insert(leases).values(
        job=job, generation=(highest or 0) + 1, acquired_at=now, renewed_at=now, expires_after=0, lanes=lanes or 1
    )
    risen = {"generation": func.greatest(leases.c.generation, new.excluded.generation)}
    connection.execute(new.on_conflict_do_update(index_elements=["job"], set_=risen))
    connection.execute(update(meta).values(job=job))


def lanes_of_other_jobs(connection: Connection, job: str) -> dict[str, int]:
    """The other jobs that ever ran by this registry, and the highest number of lanes of each."""
    rows = connection.execute(select(leases.c.job, leases.c.lanes).where(leases.c.job != job))
    return {row.job: row.lanes for row in rows}

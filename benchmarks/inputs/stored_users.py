"""Rows that a benchmark writes before it begins, by the job's own step, as if the job had read them.

Half of them are users, half of them pull requests, one for each user. Each user also gets an entry in the ledger. Their keys are
among those of the generated history (`inputs.history`), in the same partitions and indexes, and no event of the history
joins them.
"""

from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Request, Step
from processor.engine.protocol.epochs import Committed, published_before
from processor.engine.protocol.ledger import LedgerEntry, Mark, group_key, hash_of, reserve
from processor.engine.protocol.walks import NEVER
from processor.engine.protocol.write_state import write_state
from processor.engine.rounds.step_runner import StepRunner
from processor.values.record import Change, Record
from statestore.store import Store

PRODUCT = "user_profile"


def write_rows(store: Store, plan: Plan, rows: int) -> None:
    """Writes the rows and their ledger entries. The table exists."""
    mark = Mark(1, 0, 0, 0)
    runner = StepRunner(store=store)
    for first in range(0, rows // 2, 500):
        users = range(first, min(first + 500, rows // 2))
        runner.run(step for n in users for step in (_written(plan, "user", n), _written(plan, "pull_request", n)))
        place = plan.products[PRODUCT].ledger
        entry = {place.number: LedgerEntry(1, hash_of(b"{}"), mark, 1)}
        runner.run(_asked(reserve(group_key(place, user(n)["email"]), None, entry, "")) for n in users)


def _written(plan: Plan, entity: str, n: int) -> Step[object]:
    row = user(n) if entity == "user" else pull_request(n, "before")
    key = tuple(row[column] for column in plan.entities[entity].entity.key)
    record = Record(topic=entity, partition=0, offset=n, epoch=0, key=b"", value=b"")
    change = Change(entity=entity, key=key, row=row, record=record)
    place = entity, 0, 0
    published = published_before(Committed({place: (0, n)}), place, n, NEVER)
    return write_state(change, plan.entities[entity], published=published, expires_at=0)


def _asked(request: Request) -> Step[object]:
    (answer,) = yield (request,)
    return answer


def user(n: int) -> dict[str, Any]:
    """The row of a user."""
    email, name = f"user{n}@example.org", f"user{n}-stored"
    return {"id": -n, "email": email, "username": name, "registered_at": "2024-01-01T00:00:00Z"}


def pull_request(n: int, title: str) -> dict[str, Any]:
    """The row of the pull request of a user."""
    place = {"repo": "hello", "repo_owner": "octocat", "index": n, "author": f"user{n}-stored"}
    return place | {"title": title, "status": "open", "created_at": "2024-01-01T00:00:00Z"}

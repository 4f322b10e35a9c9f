"""Why a root waits at its gate, and how many do, for people and programs. Pure."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from typing import Any, NamedTuple

from processor.engine.plan.touch import Root
from processor.engine.protocol.held_roots import HeldRoots
from processor.language.product.product import OPEN, Gate
from processor.text import duration_text


class AwaitedTransaction(NamedTuple):
    """A transaction for which roots wait. `missing`: the records that the job has read of each table, and those that its end
    says, where these differ; None: its end is unknown. `again`: the connector sends it again, and what came after it."""

    topic: str
    id: str
    missing: Mapping[str, tuple[int, int]] | None
    again: bool = False

    @property
    def text(self) -> str:
        """The transaction, and what it lacks."""
        if self.again:
            lacks = "the connector sends it again, with all that came after it"
        elif self.missing is None:
            lacks = "its end is unknown"
        else:
            read = (f"{so_far} of {most} records of {table}" for table, (so_far, most) in sorted(self.missing.items()))
            lacks = f"read are {', '.join(read)}"
        return f"transaction {self.id} of topic {self.topic}, {lacks}"


class Wait(NamedTuple):
    """Why a root waits, in the times of `HeldRoots`. `gate`: of its product; `changed`: its last change; `last`: when it goes
    out at the latest, whatever the gate says; `quiet_until`, `apart_until`: what `quiet` and `every` say;
    `transaction`: the first for which it waits, None without one."""

    gate: Gate
    changed: float
    last: float
    quiet_until: float
    apart_until: float
    transaction: AwaitedTransaction | None


class WaitingDocuments(NamedTuple):
    """The roots of a product that wait. `since`: when the oldest began to wait; `transaction`: the first for which it waits."""

    documents: int
    since: float
    transaction: AwaitedTransaction | None


def wait_of(held: HeldRoots, root: Root) -> Wait | None:
    """Why the root waits; None where it does not."""
    one = held.held.get(root)
    if one is None:
        return None
    gate = held.gates[root[0]]
    quiet, apart = one.touched + gate.quiet, held.apart_until(root)
    return Wait(gate, one.touched, one.since + gate.at_most, quiet, apart, _awaited(held, root))


def waiting_documents(held: HeldRoots) -> dict[str, WaitingDocuments]:
    """The roots that wait, by product. Another thread may ask: the driver adds and removes roots meanwhile."""
    count, oldest = dict[str, int](), dict[str, tuple[float, Root]]()
    for root, one in list(held.held.items()):
        count[root[0]] = count.get(root[0], 0) + 1
        oldest[root[0]] = min((one.since, root), oldest.get(root[0], (one.since, root)))
    return {
        product: WaitingDocuments(count[product], since, _awaited(held, root))
        for product, (since, root) in oldest.items()
    }


def wait_text(wait: Wait, now: float) -> str:
    """What a reader of the document must know."""
    return f"not published as it is now: it waits at its gate, and changed last {duration_text(now - wait.changed)} ago"


def gate_states(held: HeldRoots, now: float, date: float) -> dict[str, dict[str, Any]]:
    """Each product with a gate, or whose last gate still holds roots, as JSON values: how many roots wait, since when the oldest
    does, in seconds since 1970, and for which transaction. `now`: in the times of `HeldRoots`; `date`: the same moment."""
    waiting = waiting_documents(held)
    return {
        product: {
            "waiting": one.documents if one else 0,
            "since": round(date - now + one.since, 3) if one else None,
            "transaction": one.transaction._asdict() if one and one.transaction else None,
        }
        for product, gate in list(held.gates.items())
        for one in (waiting.get(product),)
        if one or gate != OPEN
    }


def wait_lines(wait: Wait, now: float) -> Iterator[str]:
    """The wait as lines."""
    yield wait_text(wait, now)
    reasons = list(_reasons(wait, now))
    yield from (f"  {reason}" for reason in reasons)
    if reasons and wait.last > now:
        yield f"  it goes out in {duration_text(wait.last - now)} at the latest (`at_most`)"
    else:
        yield "  its time has come: the job publishes it at once, or when it starts"


def wait_json(wait: Wait) -> dict[str, Any]:
    """The wait as JSON values; times as texts in UTC. What the gate does not ask for is null."""
    transaction = wait.transaction
    return {
        "changed": _moment(wait.changed),
        "at_most_until": _moment(wait.last),
        "quiet_until": _moment(wait.quiet_until) if wait.gate.quiet else None,
        "every_until": _moment(wait.apart_until) if wait.apart_until > -inf else None,
        "transaction": None if transaction is None else transaction._asdict(),
    }


def _reasons(wait: Wait, now: float) -> Iterator[str]:
    if wait.quiet_until > now:
        yield f"quiet: its rows must not change for {duration_text(wait.quiet_until - now)} more"
    if wait.apart_until > now:
        yield f"every: its last message must be {duration_text(wait.apart_until - now)} older"
    if wait.transaction is not None:
        yield wait.transaction.text


def _awaited(held: HeldRoots, root: Root) -> AwaitedTransaction | None:
    with suppress(KeyError):  # in another thread the driver has let the root go, or forgotten the transaction
        if (blocker := held.blocker(root)) is not None:
            known = held.transactions
            return AwaitedTransaction(*blocker.name, known.missing(blocker.name), known.comes_again(blocker.name))
    return None


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""The protections of the design, each with the switch that takes it away and the world in which that shows soonest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.run import simulate
from tests.simulator.without import edges, fan_out, open_changes, publisher, store, writes
from tests.simulator.without.switch import Switch, together
from tests.simulator.worlds import AFTER_WRITE, BROKER, CALM, CRASHES, RESPLIT, RETRIED, ZOMBIES, story


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """A protection. `against`: what it protects from. `without`: takes it away. `boost`: the world in which that shows.
    `beside`: another protection, taken away from both runs, since it does the same work first. `saves`: requests, not
    documents."""

    name: str
    against: str
    without: Switch
    boost: Mapping[str, Any] = field(default_factory=dict)
    beside: str | None = None
    saves: bool = False

    def missed(self, seed: int, boost: Mapping[str, Any], keep: Sequence[int] | None = None) -> str | None:
        """What goes wrong in a run without it that goes right with it; None when nothing does, or both do."""
        others = (TABLE[self.beside].without,) if self.beside else ()
        red = simulate(seed, boost=boost, keep=keep, without=together(*others, self.without))
        if red.verdict is None and not self.saves:
            return None
        green = [simulate(seed, boost=boost, keep=keep, without=together(*present)) for present in {(), others}]
        if any(run.verdict for run in green):
            return None
        if self.saves:
            n, few = red.world.requests, green[0].world.requests
            return f"{n} requests, {few} with it" if n > few and red.verdict is None else None
        return red.verdict


def _one(
    name: str, against: str, without: Switch, boost: Mapping[str, Any] | None = None, beside: str | None = None
) -> Protection:
    return Protection(name=name, against=against, without=without, boost=boost or {}, beside=beside)


def _open_changes() -> Iterator[Protection]:
    """Rule 5."""
    s = open_changes
    hidden = story("a star appears", lag="short", pause=0)
    yield _one("the overlay", "an index that lacks a row, or shows it too old", s.no_overlay, hidden)
    yield _one("the overlay of earlier batches", "lag longer than a batch", s.own_batch_only, hidden)
    at_once = {**hidden, "batch": 2}
    unfound = story("a label comes while its star is hidden", shape="stars", lag="short", pause=0)
    yield _one(
        "the overlay in other tasks of the round", "a row that another task wrote just now", s.own_task_only, at_once
    )
    yield _one("the overlay on the way down", "documents that go back", s.no_overlay_down, hidden)
    yield _one("the overlay on the way up", "roots that are found late", s.no_overlay_up, unfound)
    yield _one(
        "the overlay before the limit",
        "a row that left, and took the place of one that is cut",
        s.limit_first,
        story("a label leaves", shape="stars", lag="short"),
    )
    yield _one("former keys in the overlay", "a late index that shows a row under its old key", s.former_forgotten)
    yield _one(
        "refused writes open a change too",
        "the write of a crashed attempt, still hidden",
        s.refused_not_opened,
        story("a star moves", AFTER_WRITE, lag="long"),
    )
    yield _one(
        "an entry a row: a newer change takes over the keys of the older",
        "a row that moves again while it is open",
        s.newest_entry_only,
        story("a star moves twice", lag="long", pause=0.3),
    )
    yield _one(
        "open changes are durable",
        "a crash that takes the driver's memory",
        s.kept_in_memory,
        story("a star appears", lag="long", faults=2, fault=0.1, kinds={"crash before": 1}, pause=0.5),
    )
    yield _one(
        "reload at a start",
        "a crash that takes the driver's memory",
        s.no_reload,
        story("a star appears", lag="long", faults=2, fault=0.1, kinds={"crash before": 1}, pause=0.5),
    )
    yield _one(
        "the wait after a start",
        "documents that go back after a crash",
        s.no_wait,
        story("a star changes after its user", RESPLIT, faults=1, lag="short", replicas=2, batch=1, pause=0.5),
    )
    yield _one("evidence", "lag longer than S + W", s.no_evidence, story("a star appears", lag="long"))
    yield _one(
        "no closing after a fixed time", "lag longer than S", s.closed_on_time, story("a star appears", lag="long")
    )
    yield _one(
        "evidence in every slot",
        "one index that is later than another",
        s.evidence_in_one_slot,
        story("a star changes", shape="stars", lag="long"),
    )
    yield _one(
        "evidence in the slots of the way up",
        "a root that a late index hides",
        s.evidence_down_only,
        story("a user is renamed", lag="long"),
    )
    yield _one(
        "evidence of the version",
        "an index that shows the row, but an older one",
        s.evidence_of_any_version,
        story("a star changes", lag="long"),
    )
    yield _one(
        "closing W after the evidence",
        "replicas that differ",
        s.closed_at_once,
        story("a star appears", lag="mid", replicas=2, pause=0.3),
    )
    yield _one(
        "`!own key` as evidence of nothing there",
        "a row that left an index late",
        s.no_own_key,
        story("a star leaves", lag="long"),
    )
    late = story("a label comes while its star is hidden", shape="stars", lag="long", pause=0.7)
    yield _one("settling", "a root that a late index hid", s.no_settling, late, "the overlay on the way up")
    yield _one(
        "settling repeats the change, not its roots",
        "a root that was never found",
        s.roots_settled,
        late,
        "the overlay on the way up",
    )
    yield _one(
        "settling knows former keys",
        "a document that a late index still shows the row in",
        s.settled_without_former,
        story("a star moves", lag="long"),
        "the overlay on the way down",
    )
    yield _one("columns are checked again, down", "a late index that shows a row under its old key", s.no_recheck_down)
    yield Protection(
        name="columns are checked again, up",
        against="documents assembled for nothing",
        without=s.no_recheck_up,
        boost=story("a user is renamed", pause=0),
        saves=True,
    )


def _writes() -> Iterator[Protection]:
    """Rules 2, 3, 4, 6, 8, 9."""
    s = writes
    yield _one("the old parent", "a row that moves", s.old_parent_forgotten, CALM)
    yield _one(
        "previous keys in the write",
        "a crash that takes the answer which named them",
        s.no_previous_keys,
        story("a star moves", AFTER_WRITE),
    )
    yield _one(
        "previous keys in the same write",
        "a crash between two writes",
        s.previous_in_second_write,
        story("a star moves", AFTER_WRITE),
    )
    yield _one(
        "pending keys kept by the second write",
        "another batch split after a crash",
        s.pending_dropped,
        story("a star moves twice", RESPLIT),
    )
    yield _one(
        "the condition on the batch's start",
        "another batch split after a crash",
        s.own_version_as_start,
        story("a star moves twice", RESPLIT),
    )
    yield _one(
        "an equal version is a replay, not stale",
        "a crash between write and publish",
        s.replay_touches_nothing,
        CRASHES,
    )
    yield _one(
        "what is superseded touches",
        "another batch split after a crash",
        s.superseded_touches_nothing,
        story("a star moves twice", RESPLIT, faults=3),
    )
    yield _one(
        "after a refusal all columns count",
        "a crash between write and publish",
        s.filter_after_merge,
        story("a star changes, then its note", RESPLIT),
    )
    yield _one(
        "the version is the offset",
        "a source's own number, which runs backwards",
        s.version_by_lsn,
        story("a star changes"),
    )
    yield _one(
        "the epoch is the record's, not the run's",
        "an old change that is replayed",
        s.epoch_of_the_run,
        story("a star changes", RESPLIT),
    )
    yield _one("dedupe keeps the last", "several changes of a row in a batch", s.dedupe_first, CALM)
    yield _one("unavailable values are filled", "TOAST", s.toast_not_filled, {"unsent": 0.5, "batch": 8})
    yield _one(
        "a delete leaves a marker",
        "an old change that is replayed",
        s.no_marker,
        story("a star goes, then its user changes", AFTER_WRITE, aim="", fault=0.05, faults=1, lost_checkpoint=1.0),
    )
    yield _one(
        "a delete marker keeps previous keys",
        "a crash after a delete",
        s.marker_without_previous,
        story("a star goes", AFTER_WRITE),
    )
    yield _one(
        "a delete touches like a change", "a deleted row that stays in documents", s.delete_touches_nothing, CALM
    )
    yield _one(
        "re-creation removes the TTL",
        "a living row that expires",
        s.ttl_kept,
        {"two_parts": True, "events": 20, "faults": 0},
    )
    yield Protection(
        name="only what matters fans out",
        against="documents assembled for nothing",
        without=s.no_filter,
        boost=story("a star changes, then its note", pause=1),
        saves=True,
    )
    yield _one("dead letters", "records that vanish", s.no_dead_letters, {"broken": 0.3})


def _publisher() -> Iterator[Protection]:
    """Rule 7."""
    s = publisher
    yield _one(
        "reservation before the message", "a message whose acknowledgement was lost", s.hash_without_reservation, BROKER
    )
    yield _one(
        "suppression against acknowledged entries only", "a message that never arrived", s.suppress_anything, BROKER
    )
    yield _one("the attempt in the mark", "a retried task's commit taken for the lost one's", s.any_attempt, RETRIED)
    yield _one("the condition on the sequence", "two publishers of a root", s.reserve_anyway, ZOMBIES)
    yield _one("the fence", "a zombie that publishes", s.no_fence, {**ZOMBIES, "publish_slots": 1})
    yield _one("the lease check in the task", "a zombie that takes the slot back", s.no_lease_check, ZOMBIES)
    yield _one(
        "one queue for live and settle work",
        "two rounds at the same time",
        s.settling_beside_live,
        {"lag": "short", "faults": 0, "zombie": 0},
    )
    yield _one(
        "acknowledgement before the round ends", "a batch that ends with messages under way", s.flush_unheard, BROKER
    )


def _store() -> Iterator[Protection]:
    """What the store and Spark are relied upon for."""
    s = store
    yield _one(
        "all pages are read", "rows that are on the second page", s.first_page_only, story("a star appears", answer=1)
    )
    yield _one(
        "unprocessed keys are read again", "rows that were not read", s.unprocessed_dropped, {"unprocessed": 0.3}
    )
    yield _one("strong key reads", "a ledger or a row that is a second old", s.eventual_reads, CALM)
    yield _one(
        "the barrier between write and assemble",
        "a document without what another task writes",
        s.no_barrier,
        {"lag": "short", "faults": 0, "zombie": 0},
    )


def _fan_out() -> Iterator[Protection]:
    """Rule 8."""
    s = fan_out
    many = {"page": 1, "hot": True, "events": 30, "shape": "github", "faults": 4}
    yield _one("what lies beyond a page is followed up", "documents beyond the first page", s.rest_forgotten, many)
    yield _one(
        "fan-outs are durable",
        "a crash that takes the driver's memory",
        s.in_memory,
        {**many, "lag": "none"},
        "settling",
    )
    yield _one("a second pass", "a change behind the cursor of the pass before it", s.no_second_pass, many)


def _edges() -> Iterator[Protection]:
    """Edges (rule 12)."""
    s, world = edges, {**ZOMBIES, "shape": "lists"}
    yield _one("the versions of edges", "a remover of an old edge that wakes late", s.unversioned, world)


TABLE = {p.name: p for group in (_open_changes, _writes, _publisher, _store, _fan_out, _edges) for p in group()}

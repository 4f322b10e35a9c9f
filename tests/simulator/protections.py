"""The protections of the job (rules of docs/architecture.md). Each has a switch that turns it off, and conditions under which
a run without it soon ends wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.without import edges, fan_out, open_changes, publisher, store, writes
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import AFTER_WRITE, BROKER, CALM, CRASHES, RESPLIT, RETRIED, ZOMBIES, scripted


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """A protection. `against`: the danger. `switch`: turns the protection off. `overrides`: conditions under which a run without
    it soon ends wrong. `also_without`: another protection that does the same work earlier, so it is off in both runs.
    `saves_requests`: a run without the protection ends right, but needs more requests."""

    name: str
    against: str
    switch: Switch
    overrides: Mapping[str, Any] = field(default_factory=dict)
    also_without: str | None = None
    saves_requests: bool = False


def _protection(
    name: str, against: str, switch: Switch, overrides: Mapping[str, Any] | None = None, also_without: str | None = None
) -> Protection:
    return Protection(name=name, against=against, switch=switch, overrides=overrides or {}, also_without=also_without)


def _open_changes() -> Iterator[Protection]:
    """Late indexes (rule 5)."""
    s = open_changes
    hidden = scripted("a star appears", lag="short", settle_first_chance=0)
    yield _protection("the overlay", "an index that lacks a row, or shows an old version of it", s.no_overlay, hidden)
    yield _protection("the overlay of earlier batches", "lag longer than a batch", s.own_batch_only, hidden)
    at_once = {**hidden, "batch_records": 2}
    unfound = scripted("a label arrives while its star is hidden", shape="stars", lag="short", settle_first_chance=0)
    yield _protection(
        "the overlay in other tasks of the round", "a row that another task wrote just now", s.own_task_only, at_once
    )
    yield _protection(
        "the overlay on the way down", "documents that go back to older rows", s.no_overlay_in_assemble, hidden
    )
    yield _protection("the overlay on the way up", "roots that a late index hides", s.no_overlay_in_find_roots, unfound)
    yield _protection(
        "the overlay before the limit applies",
        "a row that has left, but takes a place below the limit",
        s.limit_first,
        scripted("a label leaves its repo", shape="stars", lag="short"),
    )
    yield _protection("former keys in the overlay", "a late index that shows a row under its old key", s.no_former_keys)
    yield _protection(
        "a refused write opens a change",
        "a late index that hides the write of a crashed attempt",
        s.refused_not_opened,
        scripted("a star moves", AFTER_WRITE, lag="long"),
    )
    yield _protection(
        "a newer change takes over the keys of an open one",
        "a row that moves again while it is open",
        s.newest_keys_only,
        scripted("a star moves twice", lag="long", settle_first_chance=0.3),
    )
    yield _protection(
        "open changes are durable",
        "a crash that takes the driver's memory",
        s.only_in_memory,
        scripted(
            "a star appears",
            lag="long",
            max_faults=2,
            fault_chance=0.1,
            fault_weights={"crash before": 1},
            settle_first_chance=0.5,
        ),
    )
    yield _protection(
        "a start reloads the open changes",
        "a crash that takes the driver's memory",
        s.no_reload,
        scripted(
            "a star appears",
            lag="long",
            max_faults=2,
            fault_chance=0.1,
            fault_weights={"crash before": 1},
            settle_first_chance=0.5,
        ),
    )
    yield _protection(
        "a start waits W",
        "documents that go back after a crash",
        s.no_wait,
        scripted(
            "a star changes after its user",
            RESPLIT,
            max_faults=1,
            lag="short",
            replicas=2,
            batch_records=1,
            settle_first_chance=0.5,
        ),
    )
    yield _protection(
        "a change closes only with evidence",
        "lag longer than S + W",
        s.no_evidence,
        scripted("a star appears", lag="long"),
    )
    yield _protection(
        "no change closes after a fixed time",
        "lag longer than S",
        s.closed_on_time,
        scripted("a star appears", lag="long"),
    )
    yield _protection(
        "evidence in every slot",
        "an index that is later than another",
        s.evidence_in_one_slot,
        scripted("a star changes", shape="stars", lag="long"),
    )
    yield _protection(
        "evidence in the slots of the way up",
        "a root that a late index hides",
        s.evidence_down_only,
        scripted("a user is renamed", lag="long"),
    )
    yield _protection(
        "evidence of the row's version",
        "an index that shows the row, but an older one",
        s.evidence_of_any_version,
        scripted("a star changes", lag="long"),
    )
    yield _protection(
        "a change closes W after its evidence",
        "replicas that differ",
        s.closed_at_once,
        scripted("a star appears", lag="mid", replicas=2, settle_first_chance=0.3),
    )
    yield _protection(
        "`!own key` in a slot without a join key",
        "a late index that still shows a row that has left",
        s.no_own_key,
        scripted("a star leaves its user", lag="long"),
    )
    late = scripted("a label arrives while its star is hidden", shape="stars", lag="long", settle_first_chance=0.7)
    yield _protection("settling", "a root that a late index hid", s.no_settling, late, "the overlay on the way up")
    yield _protection(
        "settling finds the roots again",
        "a root that was never found",
        s.settle_first_roots,
        late,
        "the overlay on the way up",
    )
    yield _protection(
        "settling uses former keys",
        "a late index that still shows the row in its former document",
        s.settle_without_former_keys,
        scripted("a star moves", lag="long"),
        "the overlay on the way down",
    )
    yield _protection(
        "assemble checks the columns of each row",
        "a late index that shows a row under its old key",
        s.no_check_in_assemble,
    )
    yield Protection(
        name="find_roots checks the columns of each row",
        against="documents that are assembled without need",
        switch=s.no_check_in_find_roots,
        overrides=scripted("a user is renamed", settle_first_chance=0),
        saves_requests=True,
    )


def _writes() -> Iterator[Protection]:
    """Writes (rules 2, 3, 4, 6, 8, 9)."""
    s = writes
    yield _protection("the former parent is published", "a row that moves", s.former_parent_forgotten, CALM)
    yield _protection(
        "a write keeps the previous keys",
        "a crash that loses the answer with these keys",
        s.no_previous_keys,
        scripted("a star moves", AFTER_WRITE),
    )
    yield _protection(
        "one write sets the new keys and keeps the previous ones",
        "a crash between two writes",
        s.previous_in_second_write,
        scripted("a star moves", AFTER_WRITE),
    )
    yield _protection(
        "a second write keeps the pending keys",
        "another batch split after a crash",
        s.pending_keys_dropped,
        scripted("a star moves twice", RESPLIT),
    )
    yield _protection(
        "a write is conditional on the batch's start",
        "another batch split after a crash",
        s.own_version_as_start,
        scripted("a star moves twice", RESPLIT),
    )
    yield _protection(
        "a replayed change finds roots",
        "a crash between write and publish",
        s.replayed_finds_no_roots,
        CRASHES,
    )
    yield _protection(
        "a superseded change finds roots",
        "another batch split after a crash",
        s.superseded_finds_no_roots,
        scripted("a star moves twice", RESPLIT, max_faults=3),
    )
    yield _protection(
        "after a refusal all columns count as changed",
        "a crash between write and publish",
        s.filter_after_merge,
        scripted("a star changes, then its note", RESPLIT),
    )
    yield _protection(
        "the version is the offset",
        "a number of the source that runs backwards",
        s.version_by_lsn,
        scripted("a star changes"),
    )
    yield _protection(
        "the epoch belongs to the record, not to the run",
        "an old change that is replayed",
        s.epoch_of_the_run,
        scripted("a star changes", RESPLIT),
    )
    yield _protection("dedupe keeps the last change", "several changes of a row in a batch", s.dedupe_first, CALM)
    yield _protection(
        "dedupe fills unavailable values", "TOAST", s.toast_not_filled, {"unavailable_chance": 0.5, "batch_records": 8}
    )
    yield _protection(
        "a delete leaves a marker",
        "an old change that is replayed",
        s.no_marker,
        scripted(
            "a star is deleted, then its user changes",
            AFTER_WRITE,
            fault_target="",
            fault_chance=0.05,
            max_faults=1,
            checkpoint_loss_chance=1.0,
        ),
    )
    yield _protection(
        "a delete marker keeps previous keys",
        "a crash after a delete",
        s.marker_without_previous,
        scripted("a star is deleted", AFTER_WRITE),
    )
    yield _protection("a delete finds roots", "a deleted row that stays in documents", s.delete_finds_no_roots, CALM)
    yield _protection(
        "a re-creation removes the TTL",
        "a living row that expires",
        s.ttl_kept,
        {"late_events": True, "events": 20, "max_faults": 0},
    )
    yield Protection(
        name="only used columns find roots",
        against="documents that are assembled without need",
        switch=s.no_filter,
        overrides=scripted("a star changes, then its note", settle_first_chance=1),
        saves_requests=True,
    )
    yield _protection(
        "a broken record becomes a dead letter", "records that vanish", s.no_dead_letters, {"broken_chance": 0.3}
    )


def _publisher() -> Iterator[Protection]:
    """Publishing (rule 7)."""
    s = publisher
    yield _protection(
        "a reservation before each message", "a message whose acknowledgement was lost", s.no_reservation, BROKER
    )
    yield _protection(
        "only acknowledged entries suppress a document", "a message that never arrived", s.suppress_by_any_entry, BROKER
    )
    yield _protection(
        "a reservation names its attempt",
        "the commit of a retried task, taken for that of the lost task",
        s.any_attempt,
        RETRIED,
    )
    yield _protection(
        "a reservation is conditional on the sequence", "two publishers of a root", s.unconditional_reservation, ZOMBIES
    )
    yield _protection("the fence", "a zombie that publishes", s.no_fence, {**ZOMBIES, "lanes": 1})
    yield _protection("a publish task checks the lease", "a zombie that takes the lane back", s.no_lease_check, ZOMBIES)
    yield _protection(
        "one queue for live and settle work",
        "two rounds at the same time",
        s.settling_during_a_batch,
        {"lag": "short", "max_faults": 0, "zombie_chance": 0},
    )
    yield _protection(
        "a round ends after the acknowledgements",
        "a batch that ends before the broker has its messages",
        s.ignored_flush_errors,
        BROKER,
    )


def _store() -> Iterator[Protection]:
    """Requirements on the store and on Spark."""
    s = store
    yield _protection(
        "a query reads all pages",
        "rows on the second page",
        s.first_page_only,
        scripted("a star appears", index_page=1),
    )
    yield _protection(
        "unprocessed keys are read again",
        "rows that the first read left out",
        s.no_retry_of_unprocessed,
        {"unprocessed_chance": 0.3},
    )
    yield _protection("consistent key reads", "a ledger entry or a row of one second ago", s.late_key_reads, CALM)
    yield _protection(
        "the barrier between write and assemble",
        "a document without the row that another task writes",
        s.no_barrier,
        {"lag": "short", "max_faults": 0, "zombie_chance": 0},
    )


def _fan_out() -> Iterator[Protection]:
    """Fan-outs (rule 8)."""
    s = fan_out
    many = {"fan_out_page": 1, "many_moves": True, "events": 30, "shape": "github", "max_faults": 4}
    yield _protection(
        "a fan-out reads the pages after the first", "documents beyond the first page", s.first_page_only, many
    )
    yield _protection(
        "fan-outs are durable",
        "a crash that takes the driver's memory",
        s.in_memory,
        {**many, "lag": "none"},
        "settling",
    )
    yield _protection(
        "a fan-out makes a second pass", "a change behind the cursor of the first pass", s.no_second_pass, many
    )


def _edges() -> Iterator[Protection]:
    """Edges (rule 12)."""
    s, world = edges, {**ZOMBIES, "shape": "lists"}
    yield _protection("edges carry versions", "a zombie that removes an old edge late", s.unversioned, world)


PROTECTIONS = {p.name: p for group in (_open_changes, _writes, _publisher, _store, _fan_out, _edges) for p in group()}

"""The protections of the job (rules of docs/architecture.md). Each has a switch that turns it off, and conditions under which
a run without it soon ends wrong."""

from collections.abc import Iterator

from tests.simulator.clock_protections import clock_protections
from tests.simulator.committed_protections import committed_protections
from tests.simulator.consistent_protections import CRASHED, consistent_protections
from tests.simulator.edit_protections import edit_protections
from tests.simulator.gate_protections import gate_protections
from tests.simulator.group_protections import group_protections
from tests.simulator.index_protections import index_protections, order_protections, settle_protections
from tests.simulator.operator_protections import operator_protections
from tests.simulator.other_protections import other_protections
from tests.simulator.protection import Protection, protection
from tests.simulator.shown_protections import delete_protections, version_protections
from tests.simulator.total_protections import total_protections
from tests.simulator.truncate_protections import truncate_protections
from tests.simulator.without import edges, fan_out, publisher, store, writes
from tests.simulator.worlds import AFTER_WRITE, BROKER, CALM, CRASHES, RESPLIT, RETRIED, ZOMBIES, scripted


def _writes() -> Iterator[Protection]:
    """Writes (rules 2, 3, 4, 6, 8, 9)."""
    s = writes
    yield protection("the former parent is published", "a row that moves", s.former_parent_forgotten, CALM)
    yield protection(
        "a write keeps the previous keys",
        "a crash that loses the answer with these keys",
        s.no_previous_keys,
        scripted("a star moves", AFTER_WRITE),
    )
    yield protection(
        "one write sets the new keys and keeps the previous ones",
        "a crash between two writes",
        s.previous_in_second_write,
        scripted("a star moves", AFTER_WRITE),
    )
    yield protection(
        "a second write keeps the pending keys",
        "another batch split after a crash",
        s.pending_keys_dropped,
        scripted("a star moves twice", RESPLIT),
    )
    yield protection(
        "a write is conditional on the batch's start",
        "another batch split after a crash",
        s.own_version_as_start,
        scripted("a star moves twice", RESPLIT),
    )
    yield protection(
        "a replayed change finds roots",
        "a crash between write and publish",
        s.replayed_finds_no_roots,
        CRASHES,
    )
    yield protection(
        "a superseded change finds roots",
        "another batch split after a crash",
        s.superseded_finds_no_roots,
        scripted("a star moves twice", RESPLIT, max_faults=3),
    )
    yield protection(
        "after a refusal all columns count as changed",
        "a crash between write and publish",
        s.filter_after_merge,
        scripted("a star changes, then its note", RESPLIT),
    )
    yield protection(
        "the version is the offset",
        "a number of the source that runs backwards",
        s.version_by_lsn,
        scripted("a star changes"),
    )
    yield protection(
        "the epoch belongs to the record, not to the run",
        "an old change that is replayed",
        s.epoch_of_the_run,
        scripted("a star changes", RESPLIT),
    )
    yield protection("dedupe keeps the last change", "several changes of a row in a batch", s.dedupe_first, CALM)
    yield protection(
        "dedupe fills unavailable values", "TOAST", s.toast_not_filled, {"unavailable_chance": 0.5, "batch_records": 8}
    )
    yield protection(
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
    yield protection(
        "a delete marker keeps previous keys",
        "a crash after a delete",
        s.marker_without_previous,
        scripted("a star is deleted", AFTER_WRITE),
    )
    yield protection("a delete finds roots", "a deleted row that stays in documents", s.delete_finds_no_roots, CALM)
    yield protection(
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
    yield protection(
        "a write after a weak read is conditional on the version seen",
        "a row as it was before its last write",
        s.unconditional_merge,
        {**CALM, "weak_seconds": 10, "reads_first": True, "unavailable_chance": 0.3},
    )
    yield protection(
        "a broken record becomes a dead letter", "records that vanish", s.no_dead_letters, {"broken_chance": 0.3}
    )


def _publisher() -> Iterator[Protection]:
    """Publishing (rule 7)."""
    s = publisher
    yield protection(
        "a reservation before each message", "a message whose acknowledgement was lost", s.no_reservation, BROKER
    )
    yield protection(
        "only acknowledged entries suppress a document", "a message that never arrived", s.suppress_by_any_entry, BROKER
    )
    yield protection(
        "a reservation names its attempt",
        "the commit of a retried task, taken for that of the lost task",
        s.any_attempt,
        RETRIED,
    )
    yield protection(
        "a reservation is conditional on the sequence", "two publishers of a root", s.unconditional_reservation, ZOMBIES
    )
    yield protection(
        "a weak read of the ledger suppresses nothing",
        "a ledger item as it was before the last message",
        s.weak_answers_silence,
        {**CALM, "weak_seconds": 10},
    )
    yield Protection(
        name="a contended root reads its ledger strongly",
        against="reservations that the store refuses again and again",
        switch=s.contended_roots_read_weakly,
        overrides={**CALM, "weak_seconds": 10},
        saves_requests=True,
    )
    yield protection("the fence", "a zombie that publishes", s.no_fence, {**ZOMBIES, "lanes": 1})
    yield protection("a publish task checks the lease", "a zombie that takes the lane back", s.no_lease_check, ZOMBIES)
    yield protection(
        "one queue for live and settle work",
        "two rounds at the same time",
        s.settling_during_a_batch,
        {"lag": "short", "max_faults": 0, "zombie_chance": 0},
    )
    yield protection(
        "a round ends after the acknowledgements",
        "a batch that ends before the broker has its messages",
        s.ignored_flush_errors,
        BROKER,
    )
    yield Protection(
        name="the ledger marks a document that is too large",
        against="a document that never goes out, because the ledger has its hash",
        switch=s.same_hash_of_too_large_documents,
        kind="large documents",
    )
    yield Protection(
        name="the backlog keeps the roots of too large documents",
        against="a document that stays old after the topic takes larger messages",
        switch=s.too_large_documents_not_kept,
        kind="large documents",
    )


def _store() -> Iterator[Protection]:
    """Requirements on the store and on Spark."""
    s = store
    yield protection(
        "a query reads all pages",
        "rows on the second page",
        s.first_page_only,
        scripted("a star appears", index_page=1),
    )
    yield protection(
        "unprocessed keys are read again",
        "rows that the first read left out",
        s.no_retry_of_unprocessed,
        {"unprocessed_chance": 0.3},
    )
    yield protection("consistent key reads", "a ledger entry or a row of one second ago", s.late_key_reads, CALM)
    yield protection(
        "the barrier between write and assemble",
        "a document without the row that another task writes",
        s.no_barrier,
        {"lag": "short", "max_faults": 0, "zombie_chance": 0},
    )


def _fan_out() -> Iterator[Protection]:
    """Fan-outs (rule 8)."""
    s = fan_out
    many = {"fan_out_page": 1, "many_moves": True, "events": 30, "shape": "github", "max_faults": 4}
    yield protection(
        "a fan-out reads the pages after the first", "documents beyond the first page", s.first_page_only, many
    )
    yield protection(
        "fan-outs are durable",
        "a crash that takes the driver's memory",
        s.in_memory,
        scripted("a star of five users", CRASHED, fan_out_page=1, lag="none"),
        "settling",
    )
    yield protection(
        "a fan-out makes a second pass", "a change behind the cursor of the first pass", s.no_second_pass, many
    )
    often = scripted(
        "a star of five users changes three times",
        fan_out_page=1,
        batch_records=1,
        lag="none",
        max_faults=0,
        settle_first_chance=0.6,
    )
    yield protection(
        "a change lets the second pass of a fan-out go on to the last row",
        "a change behind the end of this pass",
        s.end_stays,
        often,
    )
    yield Protection(
        name="the second pass of a fan-out ends where the change found the first",
        against="rows that are read twice",
        switch=s.whole_second_pass,
        overrides=often,
        saves_requests=True,
    )


def _edges() -> Iterator[Protection]:
    """Edges (rule 12)."""
    s, world = edges, {**ZOMBIES, "shape": "lists"}
    yield protection("edges carry versions", "a zombie that removes an old edge late", s.unversioned, world)


PROTECTIONS = {
    p.name: p
    for group in (
        index_protections,
        order_protections,
        total_protections,
        version_protections,
        delete_protections,
        settle_protections,
        _writes,
        _publisher,
        _store,
        _fan_out,
        _edges,
        edit_protections,
        group_protections,
        truncate_protections,
        consistent_protections,
        operator_protections,
        other_protections,
        gate_protections,
        clock_protections,
        committed_protections,
    )
    for p in group()
}

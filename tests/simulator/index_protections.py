"""The protections against late indexes (rule 5 of docs/architecture.md)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import open_changes as s
from tests.simulator.without import ordered, settling
from tests.simulator.worlds import AFTER_WRITE, CALM, CRASHED_REPLAYS, RESPLIT, scripted


def settle_protections() -> Iterator[Protection]:
    """The changes whose roots settling finds again."""
    yield replace(
        protection(
            "settling repeats a change that a start reloaded",
            "a run that ended before it published",
            settling.not_after_a_start,
            CRASHED_REPLAYS,
        ),
        kind="replays",
    )
    yield replace(
        protection(
            "settling repeats a change that a replay opened",
            "a replay, which finds no roots itself",
            settling.not_after_a_replay,
        ),
        kind="replays",
    )


def _shown_protections() -> Iterator[Protection]:
    """What publish tasks take from the way up of their round."""
    moves = {"shape": "github", "lag": "short", "many_moves": True, "batch_records": 8, "max_faults": 0}
    yield protection(
        "the overlay over roots that the way up has shown",
        "a root that another task wrote since",
        s.shown_roots_although_open,
        moves,
    )
    yield protection(
        "the overlay over answers that the way up hands over",
        "a row that another task wrote since",
        s.no_overlay_over_shown_answers,
        {**moves, "many_moves": False, "events": 25},
    )
    yield protection(
        "an index answer gives a root only the columns that products read there",
        "a document without the other columns of its root",
        s.roots_with_any_columns,
        {**CALM, "shape": "pair"},
    )


def index_protections() -> Iterator[Protection]:
    """The overlay, evidence, settling and the checks of columns."""
    hidden = scripted("a star appears", lag="short", settle_first_chance=0)
    yield protection("the overlay", "an index that lacks a row, or shows an old version of it", s.no_overlay, hidden)
    yield protection("the overlay of earlier batches", "lag longer than a batch", s.own_batch_only, hidden)
    at_once = {**hidden, "batch_records": 2}
    unfound = scripted("a label arrives while its star is hidden", shape="stars", lag="short", settle_first_chance=0)
    yield protection(
        "the overlay in other tasks of the round", "a row that another task wrote just now", s.own_task_only, at_once
    )
    yield protection(
        "the overlay on the way down", "documents that go back to older rows", s.no_overlay_in_assemble, hidden
    )
    yield protection("the overlay on the way up", "roots that a late index hides", s.no_overlay_in_find_roots, unfound)
    yield from _shown_protections()
    yield protection(
        "the overlay before the limit applies",
        "a row that has left, but takes a place below the limit",
        s.limit_first,
        scripted("a label leaves its repo", shape="stars", lag="short"),
    )
    yield protection(
        "the overlay replaces an older version",
        "an index that shows the row, but an older one",
        settling.overlay_of_missing_rows_only,
        scripted("a star changes", lag="short", settle_first_chance=0),
    )
    yield protection("former keys in the overlay", "a late index that shows a row under its old key", s.no_former_keys)
    yield protection(
        "a refused write opens a change",
        "a late index that hides the write of a crashed attempt",
        s.refused_not_opened,
        scripted("a star moves", AFTER_WRITE, lag="long"),
    )
    yield protection(
        "a change that settling leaves keeps the keys that its row had",
        "a row that moves again while it is open",
        s.left_by_newest_keys,
        scripted("a star moves twice", lag="long", settle_first_chance=0.3),
    )
    yield protection(
        "of a row that is open twice the newest version counts",
        "an index that shows the older one",
        s.oldest_version_counts,
        scripted("a star changes", lag="short", settle_first_chance=0),
    )
    yield protection(
        "a task has the open changes of all rounds",
        "a worker that came after they were sent",
        s.newest_group_only,
        scripted("three stars appear", lag="short", settle_first_chance=0),
    )
    yield protection(
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
    yield protection(
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
    yield protection(
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
    yield protection(
        "a change closes only with evidence",
        "lag longer than S + W",
        s.no_evidence,
        scripted("a star appears", lag="long"),
    )
    yield protection(
        "the changes that settling leaves stay open",
        "lag longer than S + W",
        s.nothing_left,
        scripted("a star appears", lag="long"),
    )
    yield protection(
        "a durable item stays until no change of it is left",
        "a crash after the other changes of its segment closed",
        s.items_go_with_their_segment,
        scripted(
            "a star appears",
            lag="long",
            max_faults=2,
            fault_chance=0.1,
            fault_weights={"crash before": 1},
            settle_first_chance=0.9,
        ),
    )
    yield protection(
        "evidence counts for its own segment",
        "an index that shows another row in time",
        s.evidence_for_all_segments,
        scripted("a star appears", lag="long"),
    )
    yield protection(
        "no change closes after a fixed time",
        "lag longer than S",
        s.closed_on_time,
        scripted("a star appears", lag="long"),
    )
    yield protection(
        "evidence in every slot",
        "an index that is later than another",
        s.evidence_in_one_slot,
        scripted("a star changes", shape="stars", lag="long"),
    )
    yield protection(
        "evidence in the slots of the way up",
        "a root that a late index hides",
        s.evidence_down_only,
        scripted("a user is renamed", lag="long"),
    )
    yield protection(
        "evidence of the row's version",
        "an index that shows the row, but an older one",
        s.evidence_of_any_version,
        scripted("a star changes", lag="long"),
    )
    yield protection(
        "evidence is an answer without overlay",
        "an index that does not show the row",
        settling.evidence_with_overlay,
        scripted("a star appears", lag="long"),
    )
    yield protection(
        "a change closes W after its evidence",
        "replicas that differ",
        s.closed_at_once,
        scripted("a star appears", lag="mid", replicas=2, settle_first_chance=0.3),
    )
    yield protection(
        "`!own key` in a slot without a join key",
        "a late index that still shows a row that has left",
        s.no_own_key,
        scripted("a star leaves its user", lag="long"),
    )
    late = scripted("a label arrives while its star is hidden", shape="stars", lag="long", settle_first_chance=0.7)
    yield protection("settling", "a root that a late index hid", s.no_settling, late, "the overlay on the way up")
    yield protection(
        "settling finds the roots again",
        "a root that was never found",
        s.settle_first_roots,
        late,
        "the overlay on the way up",
    )
    yield protection(
        "settling uses former keys",
        "a late index that still shows the row in its former document",
        s.settle_without_former_keys,
        scripted("a star moves", lag="long"),
        "the overlay on the way down",
    )
    yield protection(
        "assemble checks the columns of each row",
        "a late index that shows a row under its old key",
        s.no_check_in_assemble,
    )
    yield Protection(
        name="settling looks for a row that moved on under its present key",
        against="documents that are assembled without need",
        switch=settling.only_under_the_key_of_the_change,
        overrides=scripted("a star moves twice", lag="short", settle_first_chance=0),
        saves_requests=True,
    )
    yield Protection(
        name="find_roots checks the columns of each row",
        against="documents that are assembled without need",
        switch=s.no_check_in_find_roots,
        overrides=scripted("a user is renamed", lag="short", settle_first_chance=0),
        saves_requests=True,
    )


def order_protections() -> Iterator[Protection]:
    """Reads that end at their limit in an index with an order."""
    newest: dict[str, Any] = {"shape": "newest"}
    yield protection(
        "a read in an order ends when enough rows count",
        "rows of a page that the overlay or `where` takes away",
        ordered.first_page_only,
        scripted("the newest stars do not count", newest),
    )
    yield protection(
        "a row at the place of the last one read does not count yet",
        "rows with equal values of the order, of which another one comes first",
        ordered.ties_count,
        scripted("four stars of one time", newest),
    )
    yield protection(
        "a change of an order opens a change",
        "an index that shows the row at its former place",
        ordered.order_opens_nothing,
        scripted("the oldest star becomes the newest", newest, lag="long"),
    )
    yield protection(
        "evidence in the slots with an order",
        "an index with an order that is later than others",
        ordered.evidence_elsewhere_only,
        scripted("a star appears", newest, lag="long"),
    )
    yield protection(
        "a deleted row stays in an index with an order",
        "a change that stays open, because nobody knows the place where the index must not show the row",
        ordered.deleted_leaves,
        scripted("a star is deleted, then its user changes", newest, lag="short"),
    )

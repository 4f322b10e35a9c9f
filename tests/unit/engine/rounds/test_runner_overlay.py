"""Open changes over the answers of an index, and the rows that edges name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from processor.engine.plan.step import Lookup, ShownRow
from processor.engine.protocol.find_roots import ShownRoot, ShownRows
from processor.engine.protocol.segments import IndexKey, IndexObservation, OpenRow
from processor.engine.rounds.step_runner import StepRunner, apply_overlay
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Page, Query, Write
from statestore.table import shown
from tests.unit.engine.rounds.logging_store import ADA, BOB, STARS, LoggingStore, V, asks, put, star


@dataclass(frozen=True)
class Overlay:
    """An overlay with these rows."""

    laid: Mapping[IndexKey, Sequence[tuple[Key, OpenRow]]]

    def lacks(self, check: int) -> bool:
        return False

    def rows(self, index_key: IndexKey) -> Sequence[tuple[Key, OpenRow]]:
        return self.laid.get(index_key, ())

    def is_open(self, key: Key) -> bool:
        return any(key == row for rows in self.laid.values() for row, _ in rows)


def opened(*rows: Key, version: str = V[2], has: bool = True, segment: str = "s") -> list[tuple[Key, OpenRow]]:
    """Open rows at an index key, with the version of their open changes. Each that has the key has the place of its number in the
    segment."""
    return [(row, OpenRow(version, has, segment, n if has else -1)) for n, row in enumerate(rows)]


def test_rows_that_edges_name_open_rows_and_keys_share_one_read(store: LoggingStore) -> None:
    team, user = put(store, Key("TABLE#team", "4")), put(store, ADA)
    edges = "EDGE#team#members[]=1"
    put(store, Key(edges, "4"), row="TABLE#team")
    put(store, Key(edges, "5"), row="TABLE#team")
    overlay = Overlay({("GSI_1", "ice"): opened(star("9"))})
    results = StepRunner(store=store, overlays=(overlay,)).run([asks((Lookup(edges), Lookup(STARS))), asks((ADA,))])
    assert store.log == [("partition", edges), STARS, ("get", ADA, *[Key("TABLE#team", n) for n in "45"], star("9"))]
    assert results == [[Page([team], None), Page([], None)], [user]]


def test_a_page_of_edges_is_a_page_of_their_rows(store: LoggingStore) -> None:
    edges = "EDGE#team#members[]=1"
    teams = [put(store, Key("TABLE#team", n)) for n in "45"]
    for n in "45":
        put(store, Key(edges, n), row="TABLE#team")
    (answers,) = StepRunner(store=store, page=1).run([asks((Lookup(edges, paged=True),))])
    assert store.log == [("page", edges, None, 1), ("get", Key("TABLE#team", "4"))]
    assert answers == [Page(teams[:1], Key(edges, "4"))]


def test_an_open_row_that_the_index_does_not_show_yet_is_in_the_answer(store: LoggingStore) -> None:
    first = put(store, star("1"), GSI_1="ice")
    put(store, star("2"), GSI_1="ice")
    MemoryStore.write(store, Write(star("2"), {"_v": V[2], "_indexed_v": V[2], "title": "new"}))
    MemoryStore.write(store, Write(star("3"), {"_v": V[2], "_indexed_v": V[2], "GSI_1": "ice"}))
    overlay = Overlay({("GSI_1", "ice"): opened(star("2"), star("3")), ("GSI_1", "snow"): opened(star("4"))})
    (answers,) = StepRunner(store=store, overlays=(overlay,)).run([asks((Lookup(STARS),))])
    assert store.log == [STARS, ("get", star("2"), star("3"))]
    stored = MemoryStore.get(store, [star("2"), star("3")])
    assert answers == [Page([shown(first, "GSI_1"), stored[star("2")], stored[star("3")]], None)]
    assert stored[star("2")]["title"] == "new"


def item(name: str, version: str, **columns: Any) -> Item:
    return {"PK": "TABLE#star", "SK": name, "_f": 1, "_v": version, **columns}


@pytest.mark.parametrize(
    ("shown", "row", "answer"),
    [
        (V[1], item("1", V[2], by="key"), item("1", V[2], by="key")),
        (V[2], item("1", V[2], by="key"), item("1", V[2], by="key")),
        (V[3], item("1", V[2], by="key"), item("1", V[3])),
        (V[1], None, None),
    ],
    ids=["a newer row wins", "an equal row wins", "an older row loses", "a row that is gone drops out"],
)
def test_of_two_versions_of_a_row_the_answer_has_the_newer(shown: str, row: Item | None, answer: Item | None) -> None:
    """The index shows star 1 at version `shown`; the read by key found `row`."""
    page = apply_overlay(Page([item("0", V[5]), item("1", shown)], star("8")), {star("1"): row})
    assert page == Page([item("0", V[5]), *([answer] if answer else [])], star("8"))


def test_open_rows_of_all_overlays_are_read(store: LoggingStore) -> None:
    overlays = (
        Overlay({("GSI_1", "ice"): opened(star("1"))}),
        Overlay({("GSI_1", "ice"): opened(star("1"), star("2"))}),
    )
    StepRunner(store=store, overlays=overlays).run([asks((Lookup(STARS),))])
    assert store.log == [STARS, ("get", star("1"), star("2"))]


def test_an_open_row_of_another_entity_is_laid_only_over_queries_that_cover_it(store: LoggingStore) -> None:
    every, other = Query("GSI_1", "ice"), Query("GSI_1", "ice", row=star("1"))
    overlay = Overlay({("GSI_1", "ice"): opened(Key("TABLE#pull", "1"))})
    runner = StepRunner(store=store, overlays=(overlay,))
    runner.run([asks((Lookup(STARS), Lookup(other)))])
    assert store.log == [STARS, other]
    runner.run([asks((Lookup(every),))])
    assert store.log[2:] == [every, ("get", Key("TABLE#pull", "1"))]


def test_open_rows_are_laid_over_the_first_page_only(store: LoggingStore) -> None:
    for n in range(3):
        put(store, star(str(n)), GSI_1="ice")
    overlay = Overlay({("GSI_1", "ice"): opened(star("2"))})
    runner = StepRunner(store=store, overlays=(overlay,), page=2)
    (answers,) = runner.run([asks((Lookup(STARS, paged=True),), (Lookup(STARS, paged=True, after=star("1")),))])
    assert store.log == [("page", STARS, None, 2), ("get", star("2")), ("page", STARS, star("1"), 2)]
    assert [[row["SK"] for row in page.items] for page in answers] == [["0", "1", "2"], ["2"]]


def test_a_lookup_without_overlay_gets_the_answer_of_the_index(store: LoggingStore) -> None:
    overlay = Overlay({("GSI_1", "ice"): opened(star("1"))})
    MemoryStore.write(store, Write(star("1"), {"_v": V[1], "GSI_1": "ice"}))
    results = StepRunner(store=store, overlays=(overlay,)).run([asks((Lookup(STARS, overlay=False),))])
    assert store.log == [STARS]
    assert results == [[Page([], None)]]


@pytest.mark.parametrize(
    ("indexed", "version", "has", "reads"),
    [
        (V[2], V[2], True, False),
        (V[3], V[2], True, False),
        (V[1], V[2], True, True),
        (None, V[2], True, True),
        (None, V[2], False, False),
        (V[1], V[2], False, True),
    ],
    ids=["shown", "newer", "older", "missing", "missing where it only was", "still where it only was"],
)
def test_an_open_row_is_read_by_key_only_where_the_answer_lacks_it(
    store: LoggingStore, indexed: str | None, version: str, has: bool, reads: bool
) -> None:
    if indexed is not None:
        put(store, star("1"), indexed, GSI_1="ice")
    overlay = Overlay({("GSI_1", "ice"): opened(star("1"), version=version, has=has)})
    runner = StepRunner(store=store, overlays=(overlay,))
    runner.run([asks((Lookup(STARS),))])
    assert store.log == [STARS, *([("get", star("1"))] if reads else [])]
    seen, late = int(has and (indexed or "") >= version), int(reads)
    assert runner.sights() == ((IndexObservation("s", seen, late),) if seen or late else ())


@pytest.mark.parametrize(
    ("indexed", "paged", "seen", "late", "lost"),
    [
        (None, False, 4, 0, 0),
        (None, True, 0, 0, 0),
        (V[1], False, 0, 1, 4),
        (V[2], False, 0, 0, 0),
        (V[3], False, 0, 0, 0),
    ],
)
def test_an_answer_without_a_row_that_left_the_index_is_evidence(
    store: LoggingStore, indexed: str | None, paged: bool, seen: int, late: int, lost: int
) -> None:
    if indexed is not None:
        put(store, star("1"), indexed, GSI_1="ice")
    runner = StepRunner(
        store=store, overlays=(Overlay({("GSI_1", "ice"): [(star("1"), OpenRow(V[2], False, "s", 2))]}),)
    )
    runner.run([asks((Lookup(STARS, paged=paged),))])
    assert runner.sights() == ((IndexObservation("s", seen, late, lost),) if seen or late else ())


def test_a_row_that_a_page_lacks_is_no_lag_of_the_index_because_a_later_page_may_show_it(store: LoggingStore) -> None:
    overlay = Overlay({("GSI_1", "ice"): opened(star("1"))})
    runner = StepRunner(store=store, overlays=(overlay,))
    runner.run([asks((Lookup(STARS, paged=True),))])
    assert runner.sights() == ()


def test_every_page_of_an_answer_is_evidence_for_the_open_rows_that_it_shows(store: LoggingStore) -> None:
    for n in range(3):
        put(store, star(str(n)), V[2], GSI_1="ice")
    overlay = Overlay({("GSI_1", "ice"): opened(star("2"))})
    runner = StepRunner(store=store, overlays=(overlay,), page=2)
    runner.run([asks((Lookup(STARS, paged=True, after=star("1")),))])
    assert runner.sights() == (IndexObservation("s", seen=1),)
    assert store.log == [("page", STARS, star("1"), 2)]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_open_changes_of_a_row_the_newer_says_whether_it_has_the_key(store: LoggingStore, order: int) -> None:
    """The row had the key in a round before, and this round has moved it away."""
    overlays = (
        Overlay({("GSI_1", "ice"): opened(star("1"), version=V[1])}),
        Overlay({("GSI_1", "ice"): opened(star("1"), version=V[2], has=False)}),
    )[::order]
    runner = StepRunner(store=store, overlays=overlays)
    runner.run([asks((Lookup(STARS),))])
    assert store.log == [STARS]
    assert runner.sights() == ()


def test_an_answer_is_evidence_for_each_open_change_of_a_row_that_is_not_newer_and_lags_behind_the_newest(
    store: LoggingStore,
) -> None:
    put(store, star("1"), V[2], GSI_1="ice")
    overlays = tuple(
        Overlay({("GSI_1", "ice"): opened(star("1"), version=version, segment=f"round {n}")})
        for n, version in enumerate((V[1], V[2], V[3]))
    )
    runner = StepRunner(store=store, overlays=overlays)
    runner.run([asks((Lookup(STARS),))])
    assert {*runner.sights()} == {
        IndexObservation("round 0", 1),
        IndexObservation("round 1", 1),
        IndexObservation("round 2", 0, late=1),
    }


def test_lookups_that_differ_in_their_overlay_are_different(store: LoggingStore) -> None:
    StepRunner(store=store).run([asks((Lookup(STARS), Lookup(STARS, overlay=False)))])
    assert store.log == [STARS, STARS]


def handed(page: Page, *rows: Item) -> ShownRows:
    """What the way up of the round has shown: the answer for the stars of ice, and rows."""
    return ShownRows(rows={key_of_item(row): ShownRoot(row, STARS) for row in rows}, pages={STARS: page})


def test_what_the_way_up_has_shown_is_not_asked_again(store: LoggingStore) -> None:
    ada = put(store, ADA)
    page = Page([shown(put(store, star("1"), GSI_1="ice"), "GSI_1")], None)
    runner = StepRunner(store=store, shown=handed(page, ada))
    assert runner.run([asks((ShownRow(ADA), Lookup(STARS)))]) == [[ada, page]]
    assert store.log == []
    assert runner.run([asks((ShownRow(BOB), Lookup(STARS, paged=True)))]) == [[None, page]]
    assert store.log == [("page", STARS, None, 1_000), ("get", BOB)]


def test_an_open_row_that_the_way_up_has_shown_is_read_by_key(store: LoggingStore) -> None:
    before = put(store, ADA)
    now = put(store, ADA, V[2])
    overlay = Overlay({("GSI_2", "ada"): opened(ADA)})
    runner = StepRunner(store=store, overlays=(overlay,), shown=handed(Page([], None), before))
    assert runner.run([asks((ShownRow(ADA),))]) == [[now]]
    assert store.log == [("get", ADA)]


def test_the_overlay_lies_over_an_answer_of_the_way_up_which_is_no_evidence(store: LoggingStore) -> None:
    """Another task has written two of the stars since, and deleted the third one."""
    items: list[Item] = [shown(put(store, star(n), GSI_1="ice"), "GSI_1") for n in "124"]
    new = [put(store, star(n), V[2], GSI_1="ice") for n in "23"]
    rows = [*opened(star("2"), star("3"), star("5")), *opened(star("6"), has=False)]
    store.log.clear()
    runner = StepRunner(store=store, overlays=(Overlay({("GSI_1", "ice"): rows}),), shown=handed(Page(items, None)))
    ((page,),) = runner.run([asks((Lookup(STARS),))])
    assert store.log == [("get", star("2"), star("3"), star("5"))]
    assert sorted(page.items, key=lambda item: str(item["SK"])) == [items[0], *new, items[2]]
    assert list(runner.sights()) == []

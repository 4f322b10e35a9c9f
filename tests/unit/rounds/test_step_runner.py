"""What the runner sends for steps that run side by side, and what each step gets back."""

from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from processor.plan.step import Lookup, Request, Send, Step
from processor.progress.open_changes import Sight
from processor.progress.overlay import OpenRows, Overlay
from processor.records.message import Message
from processor.rounds.step_runner import StepRunner, apply_overlay
from statestore.items import encode_version
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, Delete, Done, Item, Page, Query, Refused, Write, WriteOutcome

V = [encode_version(0, 0, n) for n in range(10)]
ADA, BOB, CYD = (Key("TABLE#user", name) for name in ("ada", "bob", "cyd"))
STARS = Query("GSI_1", "ice", "star")


class LoggingStore(MemoryStore):
    """A store that logs its requests. Its indexes show a write 10 seconds later."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.seconds = 0.0
        super().__init__(lag=10, clock=lambda: self.seconds)

    def write(self, write: Write) -> WriteOutcome:
        self.log.append(write)
        return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        self.log.append(delete)
        return super().delete(delete)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        self.log.append(("get", *keys))
        return super().get(keys)

    def query(self, query: Query) -> list[Item]:
        self.log.append(query)
        return super().query(query)

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        self.log.append(("page", source, after, limit))
        return super().page(source, after, limit)

    def partition(self, pk: str) -> list[Item]:
        self.log.append(("partition", pk))
        return super().partition(pk)


@pytest.fixture
def store() -> LoggingStore:
    return LoggingStore()


def star(name: str) -> Key:
    return Key("TABLE#star", name)


def put(store: LoggingStore, key: Key, version: str = V[1], **values: Any) -> Item:
    """Stores an item, which the indexes show at once; returns it."""
    MemoryStore.write(store, Write(key, {"_f": 1, "_v": version, **values}))
    store.seconds += 10
    return MemoryStore.get(store, [key])[key]


def asks(*turns: tuple[Request, ...]) -> Step[list[Any]]:
    """A step that asks these requests, turn by turn; its result: all answers."""
    answers: list[Any] = []
    for requests in turns:
        answers += yield requests
    return answers


# Reads


def test_keys_of_all_steps_go_out_in_one_batched_read(store: LoggingStore) -> None:
    ada = put(store, ADA)
    results = StepRunner(store=store).run([asks((ADA, BOB)), asks((BOB, CYD)), asks((ADA,))])
    assert store.log == [("get", ADA, BOB, CYD)]
    assert results == [[ada, None], [None, None], [ada]]


def test_keys_are_read_again_in_each_turn(store: LoggingStore) -> None:
    put(store, ADA, V[1])
    write = Write(ADA, {"_v": V[2]})
    (answers,) = StepRunner(store=store).run([asks((ADA,), (write,), (ADA,))])
    assert store.log == [("get", ADA), write, ("get", ADA)]
    assert [answers[0]["_v"], answers[2]["_v"]] == [V[1], V[2]]


def test_equal_lookups_go_out_once_in_a_run(store: LoggingStore) -> None:
    """Two steps ask in one turn, and one of them asks again in a later turn."""
    ice = put(store, star("1"), GSI_1="ice")
    lookup = Lookup(STARS)
    results = StepRunner(store=store).run([asks((lookup,), (ADA,), (lookup,)), asks((lookup,))])
    assert store.log == [STARS, ("get", ADA)]
    assert results == [[Page([ice], None), None, Page([ice], None)], [Page([ice], None)]]


def test_the_next_run_asks_again(store: LoggingStore) -> None:
    runner = StepRunner(store=store)
    for _ in range(2):
        runner.run([asks((Lookup(STARS),))])
    assert store.log == [STARS, STARS]


def test_a_paged_lookup_reads_one_page(store: LoggingStore) -> None:
    stars = [put(store, star(str(n)), GSI_1="ice") for n in range(3)]
    second = Lookup(STARS, paged=True, after=star("1"))
    results = StepRunner(store=store, page=2).run([asks((Lookup(STARS, paged=True),), (second,))])
    assert store.log == [("page", STARS, None, 2), ("page", STARS, star("1"), 2)]
    assert results == [[Page(stars[:2], star("1")), Page(stars[2:], None)]]


# Rows that edges and open changes name


def opened(*rows: Key, version: str = V[2], has: bool = True) -> OpenRows:
    """Open rows at an index key, with the version of their open changes."""
    return dict.fromkeys(rows, (version, has))


def test_rows_that_edges_name_open_rows_and_keys_share_one_read(store: LoggingStore) -> None:
    team, user = put(store, Key("TABLE#team", "4")), put(store, ADA)
    edges = "EDGE#team#members[]=1"
    put(store, Key(edges, "4"), row="TABLE#team")
    put(store, Key(edges, "5"), row="TABLE#team")
    overlay: Overlay = {("GSI_1", "ice"): opened(star("9"))}
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
    shown = put(store, star("1"), GSI_1="ice")
    put(store, star("2"), GSI_1="ice")
    MemoryStore.write(store, Write(star("2"), {"_v": V[2], "title": "new"}))
    MemoryStore.write(store, Write(star("3"), {"_v": V[2], "GSI_1": "ice"}))
    overlay: Overlay = {("GSI_1", "ice"): opened(star("2"), star("3")), ("GSI_1", "snow"): opened(star("4"))}
    (answers,) = StepRunner(store=store, overlays=(overlay,)).run([asks((Lookup(STARS),))])
    assert store.log == [STARS, ("get", star("2"), star("3"))]
    stored = MemoryStore.get(store, [star("2"), star("3")])
    assert answers == [Page([shown, stored[star("2")], stored[star("3")]], None)]
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
    overlays: tuple[Overlay, ...] = (
        {("GSI_1", "ice"): opened(star("1"))},
        {("GSI_1", "ice"): opened(star("1"), star("2"))},
    )
    StepRunner(store=store, overlays=overlays).run([asks((Lookup(STARS),))])
    assert store.log == [STARS, ("get", star("1"), star("2"))]


def test_an_open_row_of_another_entity_is_laid_only_over_queries_that_cover_it(store: LoggingStore) -> None:
    every, other = Query("GSI_1", "ice"), Query("GSI_1", "ice", row=star("1"))
    overlay: Overlay = {("GSI_1", "ice"): opened(Key("TABLE#pull", "1"))}
    runner = StepRunner(store=store, overlays=(overlay,))
    runner.run([asks((Lookup(STARS), Lookup(other)))])
    assert store.log == [STARS, other]
    runner.run([asks((Lookup(every),))])
    assert store.log[2:] == [every, ("get", Key("TABLE#pull", "1"))]


def test_open_rows_are_laid_over_the_first_page_only(store: LoggingStore) -> None:
    for n in range(3):
        put(store, star(str(n)), GSI_1="ice")
    overlay: Overlay = {("GSI_1", "ice"): opened(star("2"))}
    runner = StepRunner(store=store, overlays=(overlay,), page=2)
    (answers,) = runner.run([asks((Lookup(STARS, paged=True),), (Lookup(STARS, paged=True, after=star("1")),))])
    assert store.log == [("page", STARS, None, 2), ("get", star("2")), ("page", STARS, star("1"), 2)]
    assert [[row["SK"] for row in page.items] for page in answers] == [["0", "1", "2"], ["2"]]


def test_a_lookup_without_overlay_gets_the_answer_of_the_index(store: LoggingStore) -> None:
    overlay: Overlay = {("GSI_1", "ice"): opened(star("1"))}
    MemoryStore.write(store, Write(star("1"), {"_v": V[1], "GSI_1": "ice"}))
    results = StepRunner(store=store, overlays=(overlay,)).run([asks((Lookup(STARS, overlay=False),))])
    assert store.log == [STARS]
    assert results == [[Page([], None)]]


@pytest.mark.parametrize(
    ("shown", "version", "has", "reads"),
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
    store: LoggingStore, shown: str | None, version: str, has: bool, reads: bool
) -> None:
    if shown is not None:
        put(store, star("1"), shown, GSI_1="ice")
    overlay: Overlay = {("GSI_1", "ice"): opened(star("1"), version=version, has=has)}
    runner = StepRunner(store=store, overlays=(overlay,))
    runner.run([asks((Lookup(STARS),))])
    assert store.log == [STARS, *([("get", star("1"))] if reads else [])]
    assert runner.sights() == ((Sight(star("1"), "GSI_1", shown),) if shown is not None else ())


def test_every_page_of_an_answer_is_evidence_for_the_open_rows_that_it_shows(store: LoggingStore) -> None:
    for n in range(3):
        put(store, star(str(n)), V[2], GSI_1="ice")
    overlay: Overlay = {("GSI_1", "ice"): opened(star("2"))}
    runner = StepRunner(store=store, overlays=(overlay,), page=2)
    runner.run([asks((Lookup(STARS, paged=True, after=star("1")),))])
    assert runner.sights() == (Sight(star("2"), "GSI_1", V[2]),)
    assert store.log == [("page", STARS, star("1"), 2)]


def test_of_two_open_changes_of_a_row_the_newer_says_whether_it_has_the_key(store: LoggingStore) -> None:
    """The row had the key in a round before, and this round has moved it away."""
    overlays: tuple[Overlay, ...] = (
        {("GSI_1", "ice"): opened(star("1"), version=V[1])},
        {("GSI_1", "ice"): opened(star("1"), version=V[2], has=False)},
    )
    StepRunner(store=store, overlays=overlays).run([asks((Lookup(STARS),))])
    assert store.log == [STARS]


def test_lookups_that_differ_in_their_overlay_are_different(store: LoggingStore) -> None:
    StepRunner(store=store).run([asks((Lookup(STARS), Lookup(STARS, overlay=False)))])
    assert store.log == [STARS, STARS]


# Writes and messages


class LoggingOutbox:
    """Logs the messages that it takes, into the log of a store."""

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def send(self, message: Message) -> None:
        self._log.append(message)

    def flush(self) -> None:
        raise AssertionError("the runner does not flush: its caller does")


def test_writes_go_out_in_the_order_of_the_steps(store: LoggingStore) -> None:
    first, second, third = (Write(key, {"_v": V[1]}) for key in (CYD, ADA, BOB))
    gone = Delete(key=CYD)
    results = StepRunner(store=store).run([asks((first, second)), asks((gone,)), asks((third,))])
    assert store.log == [first, second, gone, third]
    written = {"PK": "TABLE#user", "SK": "cyd", "_v": V[1]}
    assert results == [[Done(None), Done(None)], [Done(written)], [Done(None)]]


def test_a_refusal_is_an_answer(store: LoggingStore) -> None:
    ada = put(store, ADA)
    write = Write(ADA, {"_v": V[2]}, when=Absent())
    assert StepRunner(store=store).run([asks((write,))]) == [[Refused(ada)]]


def test_a_step_gets_its_answers_in_the_order_of_its_requests(store: LoggingStore) -> None:
    ada, ice = put(store, ADA), put(store, star("1"), GSI_1="ice")
    write, send = Write(BOB, {"_v": V[1]}), Send(Message("t", b"k", b"v"))
    runner = StepRunner(store=store, outbox=LoggingOutbox(store.log))
    results = runner.run([asks((write, Lookup(STARS), send, ADA, Delete(key=CYD), CYD)), asks((), (ADA,))])
    assert results == [[Done(None), Page([ice], None), None, ada, Done(None), None], [ada]]
    assert store.log == [send.message, STARS, ("get", ADA, CYD), write, Delete(key=CYD), ("get", ADA)]


def test_a_pool_of_threads_changes_no_answer(store: LoggingStore) -> None:
    items = [put(store, star(str(n)), GSI_1=str(n)) for n in range(20)]
    lookups = tuple(Lookup(Query("GSI_1", str(n), "star")) for n in range(20))
    writes = tuple(Write(key, {"_v": V[1]}) for key in (ADA, BOB, CYD))
    with ThreadPoolExecutor(4) as pool:
        (answers,) = StepRunner(store=store, pool=pool).run([asks((*lookups, *writes))])
    assert answers == [*[Page([item], None) for item in items], Done(None), Done(None), Done(None)]


class MeetingStore(MemoryStore):
    """A store that answers no read before `together` reads wait for their answers."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self._meeting = Barrier(together, timeout=60)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        self._meeting.wait()
        return super().get(keys)

    def query(self, query: Query) -> list[Item]:
        self._meeting.wait()
        return super().query(query)


def test_with_a_pool_the_lookups_of_a_turn_go_out_side_by_side_then_the_batches_of_keys() -> None:
    store = MeetingStore(2)
    keys = tuple(Key("TABLE#user", str(n)) for n in range(150))
    lookups = (Lookup(STARS), Lookup(Query("GSI_1", "sun", "star")))
    with ThreadPoolExecutor(4) as pool:
        (answers,) = StepRunner(store=store, pool=pool).run([asks((*keys, *lookups))])
    assert answers == [*[None] * 150, Page([], None), Page([], None)]
    assert store.requests == Counter(BatchGetItem=2, Query=2)


def test_a_step_that_ends_early_leaves_the_others_running(store: LoggingStore) -> None:
    results = StepRunner(store=store).run([asks(), asks((ADA,)), asks((BOB,), (CYD,))])
    assert results == [[], [None], [None, None]]
    assert store.log == [("get", ADA, BOB), ("get", CYD)]


def test_a_message_without_an_outbox_is_an_error(store: LoggingStore) -> None:
    with pytest.raises(TypeError, match=r"^a step sends to topic t, and this runner has no outbox$"):
        StepRunner(store=store).run([asks((Send(Message("t", b"k", b"v")),))])


def test_steps_that_ask_nothing_send_nothing(store: LoggingStore) -> None:
    assert StepRunner(store=store).run([]) == []
    assert StepRunner(store=store).run([asks((), ())]) == [[]]
    assert store.log == []

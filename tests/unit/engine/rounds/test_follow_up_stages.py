"""The stages of one task whose work is not records of a batch: what each writes, publishes and hands to the driver."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.erasures import Erasure, erased_in, erasure_key, write_erasure
from processor.engine.protocol.ledger import (
    INVALIDATED,
    LedgerEntry,
    Mark,
    Run,
    group_key,
    group_partition,
    read_entry,
    reserve,
)
from processor.engine.protocol.pending import FanOut, FoundRoots
from processor.engine.protocol.segments import DueSegment, Segment, make_segment
from processor.engine.protocol.walks import TruncateGoal, WalkPage
from processor.engine.rounds.follow_up_stages import (
    CUT,
    MOVED,
    TOO_OLD,
    TRUNCATE,
    RootToRepair,
    backlog_stage,
    release_stage,
    repair_stage,
    replay_stage,
    resume_stage,
    settle_stage,
    walk_stage,
)
from processor.engine.rounds.round import PublishSetup, Remembered, Round, RoundRules, StageResult
from processor.engine.rounds.round_counts import UNKNOWN
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import write_stage
from processor.language.definitions.load import load
from processor.values.dead_letters import REPAIR, DeadLetter, repair_record
from processor.values.record import CutRecord, Record, Rejected
from statestore.items import encode_version, read_row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import MAX_ITEM_BYTES, PAGE, Page
from tests.unit.engine.protocol.example import PLAN, key

ROUND = Round(
    plan=PLAN,
    run=Run(number=1),
    number=4,
    batch=1,
    setup=PublishSetup(),
    rules=RoundRules(expires_at=99, oldest=100.0, dead_letter_topic="letters", walk_page=2),
)


class Messages:
    def send(self, _message: Any) -> None:
        pass

    def flush(self) -> None:
        pass


class Task:
    """A task over a store of its own. `late`: whether its indexes show no write yet."""

    def __init__(self, *, late: bool = False, plan: Plan = PLAN) -> None:
        self.now = 0.0
        self.store = MemoryStore(20, lag=60.0 if late else 0.0, clock=lambda: self.now)
        self.round = replace(ROUND, plan=plan)

    @property
    def runner(self) -> StepRunner:
        return StepRunner(store=self.store, outbox=Messages())

    def write(self, *records: Record) -> tuple[Segment, ...]:
        """Writes the rows of these records; returns the changes that they open."""
        return write_stage(records, replace(self.round, number=1), self.runner).opened

    def do(self, stage: Any, work: Sequence[Any], **round_: Any) -> StageResult:
        result: StageResult = stage(iter(work), replace(self.round, **round_), self.runner)
        return result

    def ledger(self, product: str, root: str, entry: LedgerEntry, plan: Plan = PLAN) -> None:
        """Gives a root of a product an entry."""
        place = plan.products[product].ledger
        at = group_key(place, root)
        seen = self.store.get([at]).get(at)
        self.store.write(reserve(at, seen, {place.number: entry}, json.dumps({"id": root})))


@pytest.fixture
def task() -> Task:
    return Task()


def record(topic: str, offset: int, id: Any, **row: Any) -> Record:
    """A record of a row, or of its delete."""
    value = json.dumps({"id": id, **row}).encode() if row else None
    return Record(
        topic=topic, partition=0, offset=offset, timestamp=1, key=json.dumps({"id": id}).encode(), value=value
    )


def done(result: StageResult) -> list[Any]:
    """The outcomes of its pieces of work, of whatever kind."""
    return list(result.done)


def due(*segments: Segment) -> list[DueSegment]:
    return [DueSegment(one, 0, False, False) for one in segments]


# Settling, fan-outs, the backlog, gates


def test_settling_says_of_each_segment_what_stays_open_and_finds_the_roots_of_its_changes_again() -> None:
    task = Task(late=True)
    task.write(record("user", 0, 1, name="ada"), record("user", 1, 2, name="bob"))
    (hidden,) = task.write(record("star", 0, 5, who="ada", repo=9), record("star", 1, 6, who="bob", repo=9))
    task.now = 60.0
    (shown,) = task.write(record("pull", 0, 3, author="ada", title="t"))
    shown, task.now = replace_name(shown, "first@2"), 119.0  # the indexes show the stars, and not the pull
    found = task.do(settle_stage, due(hidden, shown))
    first, second = done(found)
    assert (first.segment, first.left, first.late) == (hidden.name, None, 0)
    assert (second.segment, second.late) == ("first@2", 1)
    left = second.left
    assert left is not None
    assert (left.name, [one.key for one in left.changes()]) == ("first@4", [key("pull", 3)])
    assert found.tally == {Count.SETTLED: 3}
    assert found.roots == {("profile", "1"): UNKNOWN}
    task.now = 300.0
    again = task.do(settle_stage, due(left))
    assert (done(again)[0].left, again.roots) == (None, {})
    (two,) = task.write(*(record("pull", n, n, author="ada", title="t") for n in (4, 5)))
    assert [one.late for one in done(task.do(settle_stage, due(two)))] == [2]


def replace_name(segment: Segment, name: str) -> Segment:
    return make_segment(name, segment.changes())


def test_settling_a_change_of_many_roots_finds_the_rest_in_later_rounds() -> None:
    task = Task(late=True)
    task.write(*(record("user", n, n, name="ada") for n in range(PAGE + 1)))
    task.now = 60.0
    opened = task.write(record("pull", 0, 3, author="ada", title="t"))
    found = task.do(settle_stage, due(*opened))
    assert (len(found.roots), [(one.product, one.key) for one in found.fan_outs]) == (PAGE, [("profile", "ada")])


def test_a_fan_out_goes_one_page_further_and_hands_on_its_place_without_its_roots(task: Task) -> None:
    task.write(*(record("user", n, n, name="ada") for n in range(PAGE + 1)))
    (segment,) = task.write(record("pull", 0, 3, author="ada", title="t"))
    (again,) = [one._replace(again=True) for one in due(segment)]
    first = task.do(settle_stage, [again])
    (fan_out,) = first.fan_outs
    found = task.do(resume_stage, [fan_out])
    assert found.tally == {Count.FAN_OUT_PAGES: 1}
    assert {*found.roots.values()} == {UNKNOWN}
    assert first.roots.keys() | found.roots.keys() == {("profile", str(n)) for n in range(PAGE + 1)}
    (resumed,) = done(found)
    assert resumed == (fan_out, None, FoundRoots(frozenset(), ()))
    assert isinstance(fan_out, FanOut)
    two = task.do(resume_stage, [fan_out, fan_out._replace(key="nobody")])
    assert (two.tally[Count.FAN_OUT_PAGES], len(two.done), two.roots) == (2, 2, found.roots)


def test_a_page_of_a_fan_out_may_lead_to_more_fan_outs(task: Task) -> None:
    """The stars of a repo are more than a page, and so are the users that each of them names."""
    task.write(*(record("star", n, n, who="ada", repo=9) for n in range(PAGE + 1)))
    task.write(*(record("user", n, n, name="ada") for n in range(PAGE + 1)))
    written = write_stage([record("repo", 0, 9, title="t")], task.round, task.runner)
    (fan_out,) = (one for one in written.fan_outs if one.key == "9")
    found = task.do(resume_stage, [fan_out])
    assert [(one.product, one.key) for one in found.fan_outs] == [("profile", "ada")]


def test_roots_of_the_backlog_have_no_time_and_those_of_gates_have_their_own(task: Task) -> None:
    roots = [("profile", "1"), ("orders", "1")]
    assert task.do(backlog_stage, roots) == StageResult(roots=dict.fromkeys(roots, UNKNOWN))
    released = task.do(release_stage, list(zip(roots, (5.0, 6.0), strict=True)))
    assert released == StageResult(cleared={("profile", "1"): 5.0, ("orders", "1"): 6.0}, tally=released.tally)
    assert released.tally == {Count.RELEASED: 2}


@pytest.mark.parametrize(
    ("last", "earlier", "sequence"),
    [(3, {}, 4), (3, {"orders": 90}, 4), (3, {"profile": 70}, 71), (None, {}, 1), (None, {"profile": 70}, 71)],
)
def test_a_root_to_repair_has_an_entry_that_no_document_equals(
    task: Task, last: int | None, earlier: dict[str, int], sequence: int
) -> None:
    if last is not None:
        task.ledger("profile", "1", LedgerEntry(last, "00" * 16, Mark(1, 1, 0, 0), 1))
    found = task.do(
        repair_stage, [RootToRepair(("profile", "1"), '{"id":1}')], setup=PublishSetup(earlier_sequences=earlier)
    )
    assert found == StageResult(cleared={("profile", "1"): UNKNOWN})
    ledger = PLAN.products["profile"].ledger
    item = task.store.get([group_key(ledger, "1")])[group_key(ledger, "1")]
    assert item["key"] == '{"id":1}'
    assert read_entry(item, ledger.number) == LedgerEntry(sequence, INVALIDATED, Mark(1, 4, 0, 0))


# Walks

USERS = "TABLE#user"


def test_a_publication_takes_the_rows_of_a_page_and_says_where_it_continues(task: Task) -> None:
    task.write(*(record("user", n, n, name="x") for n in range(4)), record("user", 9, 1))
    pages = [WalkPage(("publish", "profile"), USERS), WalkPage(("publish", "orders"), USERS, after="1")]
    found = task.do(walk_stage, pages)
    assert [(one.page, one.after, one.rows) for one in done(found)] == [(pages[0], "1", 2), (pages[1], "3", 2)]
    assert found.roots == dict.fromkeys([("profile", "0"), ("orders", "2"), ("orders", "3")], UNKNOWN)
    assert found.tally[Count.WALKED] == 4
    last = task.do(walk_stage, [WalkPage(("publish", "profile"), USERS, after="3")])
    assert (done(last)[0].after, last.roots) == (None, {})


@pytest.mark.parametrize(("retracted", "roots"), [(False, ["2", "3"]), (True, ["1", "2", "3"])])
def test_a_publication_takes_of_the_ledger_the_roots_that_are_gone_and_all_of_a_product_that_goes(
    task: Task, retracted: bool, roots: list[str]
) -> None:
    """Root 3 has no row, the row of 2 is deleted, and 4 has no entry of this product."""
    task.write(*(record("user", n, n, name="x") for n in (1, 2, 4)), record("user", 9, 2))
    for root in "123":
        task.ledger("profile", root, LedgerEntry(1, "00" * 16, Mark(1, 1, 0, 0), 1))
    task.ledger("orders", "4", LedgerEntry(1, "00" * 16, Mark(1, 1, 0, 0), 1))
    plan = replace(PLAN, products={**PLAN.products, "profile": replace(PLAN.products["profile"], retracted=retracted)})
    at = group_partition(PLAN.products["orders"].ledger)  # products of one root share their items
    rules = replace(ROUND.rules, walk_page=10)
    found = task.do(walk_stage, [WalkPage(("publish", "profile"), at)], plan=plan, rules=rules)
    assert [root for _, root in found.roots] == roots


GROUPED = plan_alone(
    load(
        {
            "entities.yaml": "sale: {key: [id], columns: {id: int, item: string}}",
            "p.yaml": "product: sales\nroot: {group: sale, by: [item]}\nfields: {item: item, n: count(*)}",
        }
    ),
    20,
)


def test_a_publication_of_groups_takes_those_of_the_rows_and_of_the_whole_ledger() -> None:
    task = Task(plan=GROUPED)
    items = ["pen", "ink", "pen", None]
    task.write(*(record("sale", n, n, item=item) for n, item in enumerate(items)), record("sale", 9, 9))
    task.ledger(
        "sales", "1", LedgerEntry(1, "00" * 16, Mark(1, 1, 0, 0), 1), GROUPED
    )  # no sale, though it has this number
    rules = replace(ROUND.rules, walk_page=10)
    found = task.do(walk_stage, [WalkPage(("publish", "sales"), "TABLE#sale")], rules=rules)
    assert [root for _, root in found.roots] == ["pen", "ink"]
    ledger = group_partition(GROUPED.products["sales"].ledger)
    assert task.do(walk_stage, [WalkPage(("publish", "sales"), ledger)]).roots == {("sales", "1"): UNKNOWN}


def test_a_walk_passes_over_pages_without_rows(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retried task must find the roots that the lost one reserved."""
    read, asked = task.store.page, list[Any]()
    empty = iter([Page([], Key(USERS, "3")), Page([], Key(USERS, "5"))])

    def page(pk: Any, after: Key | None, limit: int) -> Page:
        asked.append((after, limit))
        return next(empty, read(pk, after, limit))

    task.write(record("user", 0, 7, name="x"))
    monkeypatch.setattr(task.store, "page", page)
    found = task.do(walk_stage, [WalkPage(("publish", "profile"), USERS)])
    assert asked == [(None, 2), (Key(USERS, "3"), 2), (Key(USERS, "5"), 2)]
    assert (found.roots, done(found)[0].rows) == ({("profile", "7"): UNKNOWN}, 1)


def layout(number: int) -> Plan:
    entities = {name: replace(one, layout=number) for name, one in PLAN.entities.items()}
    return replace(PLAN, entities=entities)


def test_a_fill_writes_the_rows_of_a_page_and_asks_again_for_those_that_indexes_do_not_show() -> None:
    task = Task(late=True)
    task.write(*(record("user", n, n, name="x") for n in range(3)))
    pages = [WalkPage(("fill", "user"), USERS, probes=True), WalkPage(("fill", "user"), USERS, after="1")]
    found = task.do(walk_stage, pages, plan=layout(7))
    first, second = done(found)
    assert (first.rows, first.written, second.rows, second.written) == (2, 2, 1, 1)
    assert [one[:2] for one in first.unseen] == [(USERS, "0"), (USERS, "1")]
    assert (second.unseen, found.tally) == ((), {Count.WALKED: 3, Count.FILLED: 3})
    again = WalkPage(("fill", "user"), unseen=first.unseen)
    assert done(task.do(walk_stage, [again], plan=layout(7)))[0].unseen == first.unseen
    task.now = 60.0
    last = done(task.do(walk_stage, [again], plan=layout(7)))[0]
    assert (last.unseen, last.rows, last.written, last.after) == ((), 0, 0, None)


def test_the_rows_of_a_truncate_go_are_open_and_their_roots_are_found(task: Task) -> None:
    task.write(record("user", 0, 1, name="ada"))
    task.write(*(record("star", n, n, who="ada", repo=9) for n in (0, 1, 5)))
    goal = TruncateGoal(encode_version(0, 0, 3))
    remembered, rules = Remembered(truncates={"star": goal}), replace(ROUND.rules, walk_page=10)
    page = WalkPage(("truncate", "star"), "TABLE#star")
    found = task.do(walk_stage, [page, page], remembered=remembered, rules=rules)
    assert [(one.rows, one.written) for one in done(found)] == [(3, 2), (3, 0)]
    assert (found.tally[Count.DELETED], found.tally[Count.WALKED]) == (2, 6)
    assert [one.key.sk for segment in found.opened for one in segment.changes()] == ["0", "1"]
    assert [segment.name for segment in found.opened] == ["0000000001.0000000004.TABLE#star.truncate.000000"]
    assert found.roots == {("profile", "1"): UNKNOWN}
    rows = task.store.get([key("star", n) for n in (0, 1, 5)])
    assert [read_row(rows[key("star", n)]).columns is None for n in (0, 1, 5)] == [True, True, False]
    assert {rows[key("star", n)]["_v"] for n in (0, 1)} == {goal.version}


def test_a_truncate_leads_to_fan_outs_and_opens_nothing_of_an_entity_without_slots(task: Task) -> None:
    task.write(*(record("user", n, n, name="ada") for n in range(PAGE + 1)))
    task.write(record("star", 0, 1, who="ada", repo=9), record("repo", 0, 9, title="t"), record("star", 8, 2, who="x"))
    goal = TruncateGoal(encode_version(0, 0, 3))
    remembered, rules = Remembered(truncates={"star": goal, "repo": goal}), replace(ROUND.rules, walk_page=10)
    stars, repos = (WalkPage(("truncate", name), f"TABLE#{name}") for name in ("star", "repo"))
    found = task.do(walk_stage, [stars, stars], remembered=remembered, rules=rules)
    assert [(one.product, one.key) for one in found.fan_outs] == [("profile", "ada")]
    gone = task.do(walk_stage, [repos], remembered=remembered, rules=rules)
    assert (gone.opened, gone.tally[Count.DELETED]) == ((), 1)


@pytest.mark.parametrize(("shown", "name"), [(True, "TABLE#user / 1"), (False, "a row (log_values = true names it)")])
def test_a_row_without_room_is_the_reason_of_its_page(task: Task, shown: bool, name: str) -> None:
    task.write(record("user", 0, 0, name="x"), record("user", 1, 1, name="x"))
    item = task.store.get([key("user", 1)])[key("user", 1)]
    task.store._items[key("user", 1)] = {**item, "_indexed": {**item["_indexed"], "name": "w" * (MAX_ITEM_BYTES - 200)}}
    rules = replace(ROUND.rules, log_values=shown)
    found = task.do(walk_stage, [WalkPage(("fill", "user"), USERS)], plan=layout(7), rules=rules)
    assert done(found)[0].refused.startswith(f"{name}: ")
    assert done(found)[0].written == 1


# Replays


def letter(of: Record, *, kept: float = 100.0, **rejected: Any) -> DeadLetter:
    return DeadLetter(rejected=Rejected(record=of, reason="it was refused", **rejected), kept_since=kept)


def outcomes(found: StageResult) -> list[tuple[int, str, str]]:
    return [(report.record.offset, report.outcome, report.reason) for report in found.replayed]


ENVELOPE = {"op": "u", "before": {"id": 4, "who": "a"}, "after": {"id": 5, "who": "b"}, "source": {}}


@pytest.mark.parametrize(
    ("one", "outcome"),
    [
        (letter(record("star", 1, 5, who="x"), kept=99.9), ("refused", TOO_OLD)),
        (letter(record("star", 1, 5, who="x")), ("applied", "")),
        (
            letter(record("star", 1, 5, who="x"), cut=CutRecord(parts="value", size=9_999, sha256="00")),
            ("refused", CUT),
        ),
        (
            letter(replace(record("star", 1, 5), value=json.dumps(ENVELOPE).encode())),
            ("refused", MOVED),
        ),
        (letter(replace(record("star", 1, 5), value=b"{")), ("refused", "value: not JSON")),
        (letter(record("gone", 1, 5, who="x")), ("refused", "no entity has the topic gone any more")),
        (letter(replace(record("star", 1, 5), value=b'{"op": "t", "source": {}}')), ("refused", TRUNCATE)),
        (letter(replace(record("star", 1, 5), value=b'{"op": "m", "source": {}, "message": {}}')), ("ignored", "")),
        (letter(record("star", 1, 5)), ("applied", "")),
    ],
    ids=["too old", "young enough", "cut", "moved", "refused again", "no entity", "a truncate", "no row", "a delete"],
)
def test_a_replay_says_what_became_of_each_letter(task: Task, one: DeadLetter, outcome: tuple[str, str]) -> None:
    found = task.do(replay_stage, [one])
    ((offset, said, reason),) = outcomes(found)
    assert (offset, said) == (1, outcome[0])
    assert reason.startswith(outcome[1])
    assert bool(reason) is bool(outcome[1])
    assert bool(found.opened) is (said == "applied")
    assert found.roots == {}


def test_a_refusal_has_a_reason_without_the_values_of_the_record_and_no_letter_hides_another(task: Task) -> None:
    old, wrong = letter(record("star", 1, 5, who="x"), kept=0.0), letter(record("star", 2, 5, who="x", repo="secret"))
    document = letter(Record(topic="gone", partition=0, offset=3, key=None, value=None), code="document-too-large")
    found = task.do(replay_stage, [old, wrong, document])
    assert [(offset, said) for offset, said, _ in outcomes(found)] == [(1, "refused"), (2, "refused"), (3, "ignored")]
    assert "secret" in found.replayed[1].reason
    assert found.replayed[1].plain.startswith("column 'repo': expected int")
    assert "secret" not in found.replayed[1].plain


def stored(task: Task, entity: str, number: int, plan: Plan = PLAN) -> Any:
    at = plan.entities[entity].key(str(number))
    return read_row(task.store.get([at])[at])


def test_letters_of_one_row_are_replayed_in_their_order_and_each_opens_a_change_of_its_own(task: Task) -> None:
    """The changes are durable before the rows are written, each under the name that its segment has."""
    letters = [letter(record("star", n, 5, who=f"w{n}", repo=9)) for n in (7, 3)]
    found = task.do(replay_stage, [*letters, letter(record("star", 4, 6, who="x", repo=9))])
    assert sorted(outcomes(found)) == [(n, "applied", "") for n in (3, 4, 7)]
    assert (stored(task, "star", 5).version, stored(task, "star", 5).slots[1]) == (encode_version(0, 0, 7), "w7")
    assert {segment.name for segment in found.opened} == {
        f"0000000001.0000000004.replay.star/0/{n}/0.000000" for n in (3, 4, 7)
    }
    assert {item["SK"] for item in task.store.partition("REPLAYS")} == {f"star/0/{n}/0" for n in (3, 4, 7)}
    assert {item["ttl"] for item in task.store.partition("REPLAYS")} == {99}


EMPTIED = Remembered(truncates={"star": TruncateGoal(encode_version(0, 0, 6))})


@pytest.mark.parametrize(
    ("offset", "said", "version", "is_there"),
    [(5, "superseded", 6, False), (7, "applied", 7, True)],
)
def test_a_letter_from_before_a_truncate_leaves_the_marker_of_the_truncate(
    task: Task, offset: int, said: str, version: int, is_there: bool
) -> None:
    found = task.do(replay_stage, [letter(record("star", offset, 5, who="x"))], remembered=EMPTIED)
    assert outcomes(found) == [(offset, said, "")]
    row = stored(task, "star", 5)
    assert (row.version, row.columns is not None) == (encode_version(0, 0, version), is_there)
    others = Remembered(truncates={"user": EMPTIED.truncates["star"]})
    assert outcomes(task.do(replay_stage, [letter(record("star", 8, 5, who="y"))], remembered=others)) == [
        (8, "applied", "")
    ]


def test_the_marker_of_a_truncate_has_the_place_of_the_truncate_and_stays_refused_where_no_row_may_have_it(
    task: Task,
) -> None:
    later = Remembered(truncates={"star": TruncateGoal(encode_version(1, 1, 2))})
    one = letter(record("star", 5, 5, who="x"))
    assert outcomes(task.do(replay_stage, [one], remembered=later)) == [(5, "superseded", "")]
    assert stored(task, "star", 5).version == encode_version(1, 1, 2)
    task.write(record("star", 7, 6, who="x"))
    other = Remembered(truncates={"star": TruncateGoal(encode_version(0, 1, 2))})
    ((_, said, reason),) = outcomes(task.do(replay_stage, [letter(record("star", 5, 6, who="x"))], remembered=other))
    assert said == "refused"
    assert "partition" in reason


def test_a_letter_of_an_erased_row_brings_nothing_back(task: Task) -> None:
    note = erasure_key("star", "5")
    task.store.write(write_erasure(note, Erasure({0: encode_version(0, 0, 6)})))
    erased = Remembered(erased=erased_in(task.store.partition("ERASED")))
    letters = [letter(record("star", 5, 5, who="x")), letter(record("star", 5, 6, who="x"))]
    found = task.do(replay_stage, letters[:1], remembered=erased)
    assert (outcomes(found), found.opened) == ([(5, "superseded", "")], ())
    assert task.store.get([key("star", 5)]) == {}
    assert outcomes(task.do(replay_stage, letters[1:], remembered=erased)) == [(5, "applied", "")]


DEBEZIUM = plan_alone(
    load(
        {
            "entities.yaml": "star: {key: [id], format: debezium, decimals: bytes, columns: {id: int, n: 'decimal(6,2)'}}",
            "p.yaml": "product: p\nroot: star\nfields: [n]",
        }
    ),
    20,
)


def test_a_repair_is_a_plain_row_whatever_the_records_of_its_entity_are_and_no_truncate_is_newer() -> None:
    """Its version follows that of the row that it repairs."""
    task = Task(plan=DEBEZIUM)
    value = json.dumps({"op": "c", "after": {"id": 5, "n": "AZ0="}, "source": {}}).encode()
    task.write(replace(record("star", 3, 5), value=value))
    (seen,) = [stored(task, "star", 5, DEBEZIUM)]
    repair = repair_record(DEBEZIUM.entities["star"].entity, {"id": 5}, {"id": 5, "n": "1.25"}, seen.version, 9)
    found = task.do(replay_stage, [letter(repair, code=REPAIR, entity="star")], remembered=EMPTIED)
    assert outcomes(found) == [(9, "applied", "")]
    row = stored(task, "star", 5, DEBEZIUM)
    assert (str(row.columns["n"]), row.version > seen.version) == ("1.25", True)
    gone = letter(
        repair_record(DEBEZIUM.entities["star"].entity, {"id": 5}, {"id": "x"}, row.version, 10),
        code=REPAIR,
        entity="star",
    )
    ((_, said, reason),) = outcomes(task.do(replay_stage, [gone]))
    assert (said, reason[:12]) == ("refused", "column 'id':")


SEVERAL = plan_alone(
    load(
        {
            "entities.yaml": "thing: {key: [id], format: canal, unrepresentable: {at: null}, "
            "columns: {id: int, name: string, at: timestamp}}\n"
            "owner: {key: [id], columns: {id: int, thing: string}}",
            "p.yaml": "product: p\nroot: owner\nfields: [id]\nembed: {things: {many: thing, on: {name: thing}, value: id}}",
        }
    ),
    20,
)


def several(offset: int, *rows: dict[str, Any]) -> Record:
    message = {"data": rows, "database": "d", "table": "thing", "type": "INSERT", "isDdl": False, "old": None}
    return Record(topic="thing", partition=0, offset=offset, key=None, value=json.dumps(message).encode())


def test_a_letter_of_several_rows_has_one_outcome_the_worst_and_the_changes_of_all_rows() -> None:
    task = Task(plan=SEVERAL)
    rows = [{"id": n, "name": f"n{n}", "at": "0000-00-00 00:00:00"} for n in (1, 2, 3)]
    found = task.do(replay_stage, [letter(several(4, *rows))])
    assert outcomes(found) == [(4, "applied", "")]
    assert sorted(one.key.sk for segment in found.opened for one in segment.changes()) == ["1", "2", "3"]
    assert {item["SK"] for item in task.store.partition("REPLAYS")} == {"thing/0/4/0", "thing/0/4/0/1", "thing/0/4/0/2"}
    assert found.tally == {"nulled: thing.at": 3}
    task.write(several(6, {"id": 1, "name": "later"}))
    assert outcomes(task.do(replay_stage, [letter(several(3, rows[0]))])) == [(3, "superseded", "")]
    assert outcomes(task.do(replay_stage, [letter(several(5, rows[0], rows[2]))])) == [(5, "applied", "")]
    task.write(replace(several(9, {"id": 4, "name": "n"}), partition=1))
    other = letter(several(8, *rows, {"id": 4, "name": "n"}))
    last = task.do(replay_stage, [other, letter(several(10, rows[0]))])
    ((_, said, reason), after) = sorted(outcomes(last))
    assert (said, after) == ("refused", (10, "applied", ""))
    assert "partition 1" in reason
    assert sorted(one.key.sk for segment in last.opened for one in segment.changes()) == ["1", "1", "2", "3"]


@pytest.mark.parametrize(
    ("topic", "at", "hash", "said"),
    [
        ("profile", '{"id":1}', "large:" + "00" * 16, "refused"),
        ("profile", '{"id":1}', "00" * 16, "superseded"),
        ("profile", '{"id":2}', "large:" + "00" * 16, "superseded"),
        ("profile", '{"other":1}', "large:" + "00" * 16, "ignored"),
        ("gone", '{"id":1}', "large:" + "00" * 16, "ignored"),
    ],
    ids=["still too large", "a later document fits", "another root", "no key of the root", "no such product"],
)
def test_a_letter_in_place_of_a_document_is_refused_as_long_as_the_last_document_does_not_fit(
    task: Task, topic: str, at: str, hash: str, said: str
) -> None:
    task.ledger("profile", "1", LedgerEntry(1, hash, Mark(1, 1, 0, 0), 1))
    document = Record(topic=topic, partition=0, offset=0, key=at.encode(), value=None)
    found = task.do(replay_stage, [letter(document, code="document-too-large")])
    assert outcomes(found) == [(0, said, "it was refused" if said == "refused" else "")]
    assert (found.opened, found.tally) == ((), {})

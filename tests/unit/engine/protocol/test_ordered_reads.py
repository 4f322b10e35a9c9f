"""Reads of the first rows of a join, in an index that has them in their order."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.plan.step import Lookup
from processor.engine.protocol.assemble import assemble
from processor.engine.protocol.segments import OpenChange
from processor.engine.protocol.settle import settle
from processor.engine.protocol.walks import fill
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.values.record import Record
from statestore.items import read_row
from statestore.keys import Key
from statestore.memory import MemoryStore, MeteredStore
from statestore.store import Page, Query
from tests.unit.engine.protocol.dialogue import dialogue

ENTITIES = """
user: {key: [email], columns: {email: string, name: string}}
star: {key: [id], columns: {id: int, who: string, at: timestamp, good: bool, text: string}}
"""
NEWEST = "many: star, on: {who: name}, order_by: [-at], limit: 3, value: id"


def definitions(join: str) -> Definitions:
    product = f"product: profile\nroot: user\nembed:\n  stars: {{{join}}}\n"
    return load({"entities.yaml": ENTITIES, "profile.yaml": product})


def a_trial(join: str, *, slots: int = 20, page: int = 1_000, lag: float = 0.0) -> Trial:
    settings = replace(Settings(), fan_out_page=page, slots=slots)
    store = MeteredStore(slots) if not lag else None
    made = Trial(plan=plan_alone(definitions(join), slots), settings=settings, lag=lag, other_store=store)
    made.batch([record("user", 1, {"email": "e"}, {"email": "e", "name": "ada"})])
    return made


def record(topic: str, offset: int, key: dict[str, Any], row: dict[str, Any] | None) -> Record:
    value = None if row is None else json.dumps(row).encode()
    return Record(topic=topic, partition=0, offset=offset, key=json.dumps(key).encode(), value=value)


def star(number: int, second: int, *, offset: int | None = None, good: bool = True) -> Record:
    at = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    row = {"id": number, "who": "ada", "at": at, "good": good, "text": "x" * 60}
    return record("star", offset or number, {"id": number}, row)


def shown(trial: Trial) -> Any:
    return json.loads(trial.published.messages[-1].value or b"null")["stars"]


@pytest.mark.parametrize("ordered", ["", ", ordered: true"])
def test_a_list_shows_the_same_rows_with_an_order_in_an_index_and_without(ordered: str) -> None:
    trial = a_trial(NEWEST + ordered, page=2)
    trial.batch([star(n, n % 7, good=n % 3 > 0) for n in range(1, 20)])
    assert shown(trial) == [6, 13, 5]
    trial.batch([star(13, 0, offset=30)])
    assert shown(trial) == [6, 5, 12]
    trial.batch([record("star", 31, {"id": 6}, None)])
    assert shown(trial) == [5, 12, 19]
    trial.finish()
    assert shown(trial) == [5, 12, 19]


@pytest.mark.parametrize("ordered", ["", ", ordered: true"])
@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (NEWEST + ", where: good", [13, 5, 19]),
        (NEWEST.replace("[-at]", "[at]"), [7, 14, 1]),
        (NEWEST.replace("[-at]", "[good, -at, text]"), [6, 12, 18]),
        ("one: star, on: {who: name}, order_by: [-at], value: id", 6),
    ],
)
def test_conditions_directions_and_a_one_read_on_until_they_have_their_rows(
    ordered: str, join: str, expected: Any
) -> None:
    trial = a_trial(join + ordered, page=2)
    trial.batch([star(n, n % 7, good=n % 3 > 0) for n in range(1, 20)])
    assert shown(trial) == expected


def units(join: str, rows: int) -> float:
    """The read units of one more star of a user who has this many, with those of its settling."""
    trial = a_trial(join.replace("limit: 3", "limit: 50"))
    trial.batch([star(n, n) for n in range(1, rows + 1)])
    trial.finish()
    store = trial.store
    assert isinstance(store, MeteredStore)
    before = store.read_units
    trial.batch([star(rows + 1, rows + 1)])
    trial.finish()
    assert shown(trial)[0] == rows + 1
    return float(store.read_units - before)


def test_the_newest_50_of_a_thousand_cost_as_much_as_the_newest_50_of_50() -> None:
    assert units(NEWEST + ", ordered: true", 1_000) == units(NEWEST + ", ordered: true", 50) <= 5
    assert units(NEWEST, 1_000) > 15


def test_a_table_with_few_slots_reads_all_rows_and_a_product_without_the_word_has_no_order() -> None:
    ordered = definitions(NEWEST + ", ordered: true")
    for plan in (
        plan_alone(ordered, 16),
        plan_alone(definitions(NEWEST), 20),
        plan_alone(ordered, 20).without_orders(),
    ):
        assert plan.products["profile"].nodes[0].ordered is None
    assert plan_alone(ordered, 16).entities["star"].orders == {}
    assert plan_alone(ordered, 17).entities["star"].orders == {17: (("at", True),)}


def test_products_with_one_order_share_a_read_and_another_order_has_its_own() -> None:
    texts = {"entities.yaml": ENTITIES}
    for name, order in (("a", "-at"), ("b", "-at"), ("c", "text")):
        join = f"{{many: star, on: {{who: name}}, order_by: [{order}], limit: {ord(name)}, ordered: true}}"
        texts[f"{name}.yaml"] = f"product: {name}\nroot: user\nembed: {{stars: {join}}}\n"
    plan = plan_alone(load(texts), 20)

    (tree,) = plan.trees.values()
    assert [sorted(read.rows for read in node.ordered) for node in tree.nodes] == [[97, 98], [99]]
    assert sorted(plan.entities["star"].orders) == [17, 18]


PLAN = plan_alone(definitions(NEWEST + ", ordered: true"), 20)
PRODUCT = PLAN.products["profile"]
STAR = Key("TABLE#star", "1")


def stored(rows: Iterable[Record]) -> Trial:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch(list(rows))
    return trial


def test_an_open_row_lies_over_a_page_wherever_the_index_shows_it() -> None:
    trial = a_trial(NEWEST + ", ordered: true", lag=2.0)
    trial.batch([star(n, n) for n in range(1, 10)])
    trial.finish()
    trial.batch([star(1, 100, offset=20), star(9, 0, offset=21)])
    assert shown(trial) == [1, 8, 7]


def test_settling_asks_for_a_row_at_its_place_now() -> None:
    store = stored([star(1, 5)]).store
    item = store.get([STAR])[STAR]
    version = item["_v"]
    change = OpenChange("star", STAR, version, ((1, "ada"), (17, "ada")), frozenset())
    plain = Lookup(Query("GSI_1", "ada", row=STAR), overlay=False)
    there = Lookup(Query("GSI_17", "ada", row=STAR, name=item["GSI_SK_17"]), overlay=False)

    for page, is_shown in ((Page([item], None), True), (Page([], None), False)):
        turns = [(plain, Page([item], None))], [(STAR, item)], [(there, page)]
        found = dialogue(settle(change, (1, 17), {17}), *turns)
        assert (found.outcome.shown, found.touch is None) == (is_shown, is_shown)


def test_settling_takes_a_row_that_is_gone_for_shown_without_a_question_about_its_place() -> None:
    change = OpenChange("star", STAR, "1", ((17, "ada"),), frozenset())
    assert dialogue(settle(change, (1, 17), {17}), [(STAR, None)]).outcome.shown


def test_a_fill_gives_a_row_its_place_and_asks_for_it_there() -> None:
    plain = plan_alone(definitions(NEWEST), 20)
    trial = Trial(plan=plain, settings=Settings())
    trial.batch([star(1, 5)])
    item = trial.store.get([STAR])[STAR]
    assert "GSI_17" not in item
    planned = replace(PLAN.entities["star"], layout=2)

    (filled,) = StepRunner(store=trial.store).run([fill(item, planned, probe=True)])
    assert (filled.written, filled.unseen) == (True, "")
    row = read_row(trial.store.get([STAR])[STAR])
    assert row.names == planned.names_of(STAR, row.columns or {}) != {}


def test_a_deleted_row_stays_in_the_indexes_of_an_entity_with_an_order() -> None:
    trial = stored([star(1, 5)])
    trial.finish()
    trial.batch([record("star", 2, {"id": 1}, None)])
    item = trial.store.get([STAR])[STAR]
    assert (item["GSI_17"], item["GSI_SK_17"]) == ("!TABLE#star!1", "star#1")
    trial.finish()
    assert trial.driver.progress.open_changes.count == 0


def test_assembling_goes_on_past_an_empty_page() -> None:
    store = stored(
        [record("user", 9, {"email": "e"}, {"email": "e", "name": "ada"}), *(star(n, n) for n in range(1, 6))]
    )
    pages = [Page([], Key("TABLE#star", "0"))]

    class Emptied(MemoryStore):
        def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
            return pages.pop() if pages else store.store.page(source, after, limit)

        def get(self, keys: Any) -> Any:
            return store.store.get(keys)

    (match,) = StepRunner(store=Emptied(20)).run([assemble(PLAN, PRODUCT, "e")])
    assert match is not None
    assert {row.columns["id"] for row in match.found["stars"]} >= {5, 4, 3}

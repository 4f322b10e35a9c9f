"""Aggregates of joins whose rows are counted as they change: the documents are those of the rows, and no row is read."""

import json
from contextlib import nullcontext
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from processor.engine.plan.plan import check_load
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import deleted_image
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.values.record import Record
from statestore.items import next_fill
from statestore.keys import TOTAL_SHARDS, Key
from statestore.memory import MeteredStore
from statestore.store import Item
from statestore.writes import empty_totals, write_bare_marker
from tests.simulator.without import totals as without

ENTITIES = """
user: {key: [email], columns: {email: string, name: string, least: int}}
star: {key: [id], columns: {id: int, who: string, at: int, good: bool, price: decimal, cost: "decimal(10,2)"}}
"""
FIELDS = """
  stars: count(stars)
  priced: count(stars.price)
  dear: count(stars) filter (where stars.price > 3)
  spent: sum(stars.price)
  mean: avg(stars.price)
  late: sum(stars.at + 1)
  good: bool_or(stars.good)
  best: bool_and(stars.good)
"""
NEXT = "\n    "


def definitions(counted: str, *, where: str = "") -> Definitions:
    join = f"many: star, on: {{who: name}}, where: at > 0{counted}"
    named = FIELDS.replace("stars.", "").replace("count(stars)", "count(*)").replace("\n  ", "\n      ")
    profile = f"product: profile\nroot: user\n{where}fields:\n  email: email{FIELDS}join:\n  stars: {{{join}}}\n"
    profile = profile.replace("\njoin", "\n  text: sum(stars.cost)::text\njoin")
    block = join.replace(", ", NEXT, 2).replace(", counted", NEXT + "counted")
    sums = f"product: sums\nroot: user\nembed:\n  stars:\n    {block}\n    fields:{named}"
    return load({"entities.yaml": ENTITIES, "profile.yaml": profile, "sums.yaml": sums})


def a_trial(counted: str, *, lag: float = 0.0, where: str = "") -> Trial:
    store = MeteredStore(20) if not lag else None
    plan = plan_alone(definitions(counted, where=where), 20)
    trial = Trial(plan=plan, settings=Settings(), lag=lag, other_store=store)
    users = [{"email": name, "name": name, "least": 2} for name in "ab"]
    trial.batch([record("user", n, {"email": one["email"]}, one) for n, one in enumerate(users, 1)])
    return trial


def record(topic: str, offset: int, key: dict[str, Any], row: dict[str, Any] | None) -> Record:
    value = None if row is None else json.dumps(row, default=str).encode()
    return Record(topic=topic, partition=0, offset=offset, key=json.dumps(key).encode(), value=value)


def star(rng: Random, offset: int) -> Record:
    number = rng.randrange(6)
    row = {
        "id": number,
        "who": rng.choice(("a", "a", "b", None)),
        "at": rng.choice((None, 0, 1, 2, 3)),
        "good": rng.choice((None, True, True, False)),
        "price": rng.choice((None, 1.5, 2.25, 4, -0.125, 300)),
        "cost": rng.choice((None, 1.5, 2, 0.25)),
    }
    return record("star", offset, {"id": number}, None if rng.random() < 0.2 else row)


def documents(trial: Trial) -> dict[tuple[str, bytes], bytes | None]:
    return {(one.topic, one.key or b""): one.value for one in trial.published.messages}


def totals(trial: Trial) -> list[Item]:
    return [item for item in trial.store.scan(None, 10_000).items if item["PK"].startswith("TOTAL#")]


@pytest.mark.parametrize("seed", range(4))
def test_documents_of_totals_are_those_of_rows(seed: int) -> None:
    rng, trials = Random(seed), [a_trial(counted) for counted in ("", ", counted: true")]
    offset = 0
    for _ in range(25):
        batch = [star(rng, offset := offset + 1) for _ in range(rng.randrange(1, 5))]
        for trial in trials:
            trial.batch(batch)
        of_rows, of_totals = map(documents, trials)
        assert of_totals == of_rows
        assert not trials[1].rejects.messages
    assert not totals(trials[0])
    assert totals(trials[1])


def test_a_condition_on_a_root_may_be_an_aggregate_of_totals() -> None:
    trial = a_trial(", counted: true", where="where: count(stars) > least\n")
    for n in range(1, 4):
        trial.batch([record("star", n, {"id": n}, {"id": n, "who": "a", "at": 1})])
        document = documents(trial).get(("profile", b'{"email":"a"}'))
        assert (document is not None) == (n > 2)


def test_one_more_row_of_many_costs_what_one_of_few_costs() -> None:
    spent = {}
    for many in (10, 400):
        trial = a_trial(", counted: true")
        rows = [{"id": n, "who": "a", "at": 1, "good": True, "price": 1.5} for n in range(many + 1)]
        records = [record("star", n, {"id": row["id"]}, row) for n, row in enumerate(rows, 1)]
        trial.batch(records[:-1])
        trial.finish()
        store: Any = trial.store
        before = store.read_units, store.written
        trial.batch(records[-1:])
        spent[many] = store.read_units - before[0], store.written - before[1]
        assert json.loads(documents(trial)["profile", b'{"email":"a"}'] or b"")["stars"] == many + 1
    assert spent[10] == spent[400]


def test_a_number_without_an_exact_sum_is_read_from_its_row() -> None:
    trial = a_trial(", counted: true")
    wide = 1e-16
    trial.batch([record("star", 1, {"id": 1}, {"id": 1, "who": "a", "at": 1, "price": wide})])
    trial.batch([record("star", 2, {"id": 2}, {"id": 2, "who": "a", "at": 1, "price": 10**30})])
    assert b'"spent":1000000000000000000000000000000.0000000000000001' in (
        documents(trial)["profile", b'{"email":"a"}'] or b""
    )
    trial.batch([record("star", 3, {"id": 1}, None), record("star", 4, {"id": 2}, None)])
    assert all(not number for item in totals(trial) for name, number in item.items() if name not in ("PK", "SK", "_f"))


def test_the_rows_of_a_key_are_spread_over_several_totals() -> None:
    trial = a_trial(", counted: true")
    trial.batch([record("star", n, {"id": n}, {"id": n, "who": "a", "at": 1, "price": 1}) for n in range(1, 60)])
    assert len(totals(trial)) == TOTAL_SHARDS
    assert sum(Decimal(item["n"]) for item in totals(trial)) == 59


def test_no_row_contributes_where_no_product_counts() -> None:
    trial = a_trial("")
    trial.batch([record("star", 1, {"id": 1}, {"id": 1, "who": "a", "at": 1})])
    assert not any("_totals" in item for item in trial.store.scan(None, 100).items)


def stars_of(trial: Trial, user: str = "a") -> Any:
    return json.loads(documents(trial)["profile", b'{"email":"%s"}' % user.encode()] or b"")["stars"]


def a_star(offset: int, number: int, who: str | None = "a") -> Record:
    return record("star", offset, {"id": number}, {"id": number, "who": who, "at": 1, "price": 2})


def is_sum_of_rows(trial: Trial) -> bool:
    """Whether the totals of the present count have just the rows."""
    count = trial.driver.plan.entities["star"].count
    rows = [
        item for item in trial.store.scan(None, 10_000).items if item["PK"] == "TABLE#star" and "_deleted" not in item
    ]
    held = [item for item in totals(trial) if item["PK"].startswith(f"TOTAL#{count}#")]
    return int(sum(item["n"] for item in held)) == len([row for row in rows if row.get("GSI_1", "!")[0] != "!"])


def test_a_product_that_begins_to_count_reads_rows_until_each_is_in_a_total() -> None:
    trial = a_trial("")
    trial.batch([a_star(n, n) for n in range(1, 8)])
    trial.driver.adopt(plan_alone(definitions(", counted: true"), 20))
    is_complete = [trial.driver.plan.entities["star"].complete]
    trial.batch([a_star(8, 8), a_star(9, 3, "b")])
    trial.finish()

    is_complete.append(trial.driver.plan.entities["star"].complete)
    assert is_complete == [False, True]
    assert is_sum_of_rows(trial)
    trial.batch([a_star(10, 10)])
    assert (stars_of(trial), stars_of(trial, "b")) == (8, 1)


@pytest.mark.parametrize("right", [True, False])
def test_a_product_that_counts_again_has_another_count(right: bool) -> None:
    """Also without this protection: then a row that changed meanwhile is in its former totals."""
    with nullcontext() if right else without.one_count():
        assert _counts_again() is right


def _counts_again() -> bool:
    trial = a_trial(", counted: true")
    trial.batch([a_star(n, n) for n in range(1, 5)])
    counts = [trial.driver.plan.entities["star"].count]
    for counted in (", counted: true", "", ", counted: true"):
        trial.advance(1)
        trial.driver.adopt(plan_alone(definitions(counted), 20))
        trial.finish()
        counts.append(trial.driver.plan.entities["star"].count)
        trial.batch([record("star", 10 + len(counts), {"id": len(counts)}, None)])
    numbers = {item["PK"].split("#")[1] for item in totals(trial) if item["n"]}
    return len({*counts}) == 4 and is_sum_of_rows(trial) and stars_of(trial) == 1 and len(numbers) == 2


@pytest.mark.parametrize("right", [True, False])
def test_a_row_that_a_task_of_an_older_plan_wrote_is_counted_when_its_record_comes_again(right: bool) -> None:
    """Also where a row does not know at which version totals have it."""
    with nullcontext() if right else without.any_version():
        assert _counts_after_an_older_plan() is right


def _counts_after_an_older_plan() -> bool:
    trial, plan = a_trial(", counted: true"), plan_alone(definitions(""), 20)
    trial.batch([a_star(1, 1), a_star(2, 2)])
    later = [a_star(3, 1, "b"), record("star", 4, {"id": 2}, None)]
    older = Trial(plan=plan.without(plan.products), settings=Settings(), other_store=trial.store)
    older.committed = trial.committed
    older.batch(later)
    assert not is_sum_of_rows(trial)
    trial.batch(later)

    return (stars_of(trial), stars_of(trial, "b")) == (0, 1) and is_sum_of_rows(trial)


def test_an_erased_row_takes_its_totals_along() -> None:
    trial = a_trial(", counted: true")
    trial.batch([a_star(1, 1)])
    plan, key = trial.driver.plan.entities["star"], Key("TABLE#star", "1")
    (item,) = trial.store.get([key]).values()
    marker = deleted_image(plan, key, next_fill(item["_v"]), 0)
    trial.store.write(write_bare_marker(marker, item))
    trial.store.write_all(empty_totals(item))
    assert totals(trial) == []
    assert "_totals" not in trial.store.get([key])[key]


def test_a_load_refuses_a_product_that_counts() -> None:
    check_load(plan_alone(definitions(""), 20))
    with pytest.raises(PlanError, match="profile, sums has a `counted` join: load without the word"):
        check_load(plan_alone(definitions(", counted: true"), 20))

"""The roots whose documents read the most: what a task counts, and what the driver keeps of the last hour."""

import json
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.erasures import Erasure, erasure_key
from processor.engine.rounds.operators import Eraser
from processor.engine.rounds.root_costs import MOST, CostlyRoots, RootCost, RootName, heaviest
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record
from statestore import key_ranges, keys
from statestore.memory import MeteredStore

FILES = {
    "entities.yaml": """
user: {key: [email], columns: {email: string, name: string}}
star: {key: [id], columns: {id: int, who: string, repo: string, text: string}}
repo: {key: [name], columns: {name: string, text: string}}
""",
    "profile.yaml": """
product: profile
root: user
fields: [name]
embed:
  stars: {many: star, on: {who: name}, fields: [id], join: {repo: {one: repo, on: {name: repo}}}}
""",
    "card.yaml": "product: card\nroot: user\nfields: [email, name]",
}
FILES["profile.yaml"] = FILES["profile.yaml"].replace("fields: [id]", "fields: {id: id, text: repo.text}")


def cost(units: int) -> RootCost:
    return RootCost(units, units, units, units, 0, "", ("profile",))


def names(costs: dict[RootName, RootCost]) -> set[str]:
    return {name.key for name in costs}


def test_a_sketch_of_few_roots_is_exact() -> None:
    costs = {RootName("user", str(n)): cost(n) for n in range(MOST)}
    assert heaviest(costs) == costs


def test_a_root_with_more_than_its_share_of_all_reads_is_never_lost() -> None:
    """Among roots that come once each: the one that comes in every tenth round."""
    roots = CostlyRoots()
    for n in range(5_000):
        costs = {RootName("user", f"{n}-{m}"): cost(10) for m in range(5)}
        if n % 10 == 0:
            costs[RootName("user", "busy")] = cost(10 * 60)
        roots.add([heaviest(costs)], now=0.0)
    (first, *_) = roots.report(now=0.0)["costly_roots"]
    assert first["key"] == "busy"
    assert first["read_units"] == 500 * 300
    assert all(len(span) <= 2 * MOST for _, span in roots.spans)


def test_the_last_hour_counts() -> None:
    roots = CostlyRoots()
    for minute in range(0, 180, 5):
        roots.add([{RootName("user", f"of hour {minute // 60}"): cost(10)}], now=60.0 * minute)
    found = roots.report(now=60.0 * 179)["costly_roots"]
    assert [(one["key"], one["documents"]) for one in found] == [("of hour 2", 12)]
    assert roots.report(now=60.0 * 400)["costly_roots"] == []


def run(*, log_values: bool, stars: int = 300) -> Trial:
    """A user with stars, each of another repository, and users without any; then one more star."""
    settings = Settings(log_values=log_values)
    trial = Trial(plan=plan_alone(load(FILES), settings.slots), settings=settings, other_store=MeteredStore())
    users = [record("user", n, {"email": f"{n}@e", "name": f"u{n}"}, "email") for n in range(5)]
    repos = [record("repo", n, {"name": f"r{n}", "text": "x"}, "name") for n in range(stars + 1)]
    trial.batch([*users, *repos, *(star(n) for n in range(stars))])
    trial.driver.progress.costs.spans.clear()
    trial.batch([star(stars)])
    return trial


def star(number: int) -> Record:
    row = {"id": number, "who": "u3", "repo": f"r{number}", "text": "y" * 60}
    return record("star", number, row, "id")


def record(topic: str, offset: int, row: dict[str, Any], key: str) -> Record:
    found = json.dumps({key: row[key]}).encode(), json.dumps(row).encode()
    return Record(topic=topic, partition=0, offset=offset, key=found[0], value=found[1])


def report(trial: Trial) -> dict[str, Any]:
    return trial.driver.progress.costs.report(trial.driver.clock.now())


def test_a_root_is_named_with_its_products_and_its_longest_list() -> None:
    found = report(run(log_values=True))
    (root,) = found["costly_roots"]
    assert {name: root[name] for name in ("entity", "key", "products", "documents", "rows", "list", "list_rows")} == {
        "entity": "user",
        "key": '{"email":"3@e"}',
        "products": ["profile"],
        "documents": 1,
        "rows": 1 + 301 + 301,
        "list": "star",
        "list_rows": 301,
    }
    assert found["longest_lists"] == [
        {"root": "user", "list": "star", "rows": 301, "read_units": root["most_read_units"]}
    ]


def test_the_estimate_of_the_read_units_is_near_what_the_store_charges_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ranges, "MANY", 1_000)
    trial = run(log_values=True)
    store = trial.store
    assert isinstance(store, MeteredStore)
    trial.finish()
    trial.driver.progress.costs.spans.clear()
    before = store.read_units
    trial.batch([record("user", 9, {"email": "3@e", "name": "u3"}, "email"), star(301)])
    (root,) = report(trial)["costly_roots"]
    assert root["read_units"] == pytest.approx(float(store.read_units - before), rel=0.05)


def test_without_log_values_a_root_goes_by_the_hash_of_the_certificate() -> None:
    trial = run(log_values=False)
    (root,) = report(trial)["costly_roots"]
    assert root["key"] == erasure_key("user", keys.encode(("3@e",)) or "").sk[:16]
    assert "@" not in json.dumps(report(trial))


def test_an_erasure_forgets_the_names_of_roots() -> None:
    trial = run(log_values=True)
    Eraser(trial.driver).erase("user", keys.encode(("3@e",)) or "", Erasure({}))
    assert report(trial)["costly_roots"] == []
    trial.finish()
    assert "3@e" not in json.dumps(report(trial))

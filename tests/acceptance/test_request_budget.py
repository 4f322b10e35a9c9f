"""The exact requests of each kind of event. The table in docs/costs.md must equal the requests that the steps make."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.values.record import Record
from statestore.memory import MeteredStore

ROOT = Path(__file__).parents[2]
PLAN = plan_alone(load(read_directory(ROOT / "examples" / "github")), slots=20)
OCTO = {"id": 1, "email": "octo@example.org", "username": "octo", "registered_at": "2015-01-01T00:00:00Z"}
HUB = {"id": 2, "email": "hub@example.org", "username": "hub", "registered_at": "2015-01-01T00:00:00Z"}
REPO = {"owner": "acme", "name": "tool", "description": "A tool", "star_count": 1}
STAR = {"username": "octo", "repo_name": "tool", "repo_owner": "acme", "created_at": "2015-01-01T01:00:00Z"}
PULL = {"repo": "tool", "repo_owner": "acme", "index": 7, "author": "octo", "title": "Fix", "status": "open"}
PAID = {"id": 9, "user_id": 1, "verified": True}
ROWS: dict[str, dict[str, Any]] = {"user": OCTO, "repo": REPO, "star": STAR, "pull_request": PULL, "payment_info": PAID}

EVENTS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("user", "first seen", {**OCTO, "email": "cat@example.org", "username": "cat", "id": 3}),
    ("user", "update that matters", {**OCTO, "id": 5}),
    ("user", "update that does not matter", {**OCTO, "registered_at": None}),
    ("user", "join key changed", {**OCTO, "username": "cat"}),
    ("user", "delete", None),
    ("user", "replay", OCTO),
    ("repo", "first seen, not starred", {**REPO, "name": "other"}),
    ("repo", "update that matters", {**REPO, "description": "The tool"}),
    ("repo", "update that does not matter", {**REPO, "star_count": 2}),
    ("repo", "delete", None),
    ("repo", "replay", REPO),
    ("star", "first seen", {**STAR, "repo_name": "other"}),
    ("star", "update that matters", {**STAR, "created_at": None}),
    ("star", "update that does not matter", STAR),
    ("star", "delete", None),
    ("star", "replay", STAR),
    ("pull_request", "first seen", {**PULL, "index": 8}),
    ("pull_request", "update that matters", {**PULL, "status": "merged"}),
    ("pull_request", "update that does not matter", PULL),
    ("pull_request", "join key changed", {**PULL, "author": "hub"}),
    ("pull_request", "delete", None),
    ("pull_request", "replay", PULL),
    ("payment_info", "first seen", {**PAID, "id": 3}),
    ("payment_info", "update that matters", {**PAID, "verified": False}),
    ("payment_info", "update that does not matter", PAID),
    ("payment_info", "join key changed", {**PAID, "user_id": 2}),
    ("payment_info", "delete", None),
    ("payment_info", "replay", PAID),
]


def record(entity: str, row: dict[str, Any] | None, offset: int) -> Record:
    key = {c: (row or ROWS[entity])[c] for c in PLAN.entities[entity].entity.key}
    value = None if row is None else json.dumps(row).encode()
    return Record(topic=entity, partition=0, offset=offset, epoch=1, key=json.dumps(key).encode(), value=value)


def cost(entity: str, event: str, row: dict[str, Any] | None) -> Counter[str]:
    """The requests of one event in a batch of its own, after two users, a repository, a star, a pull request and a payment."""
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch([record("user", HUB, 0)])
    for name, stored in ROWS.items():
        trial.batch([record(name, stored, 1)])
    trial.finish()
    settled = trial.tally.copy()
    tally = trial.batch([record(entity, row, 1 if event == "replay" else 2)])
    trial.finish()
    for name in ("UpdateItem", "BatchGetItem", "Query", "DeleteItem"):
        tally[f"later {name}"] = (trial.tally - settled)[f"request {name}"] - tally[f"request {name}"]
    return tally


def budget_table() -> str:
    """The table of the budget, in the form of docs/costs.md."""
    lines = [
        "| event | UpdateItem | BatchGetItem | Query | documents | settled: BatchGetItem | Query | DeleteItem |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entity, event, row in EVENTS:
        tally = cost(entity, event, row)
        requests = [tally[f"request {name}"] for name in ("UpdateItem", "BatchGetItem", "Query")]
        later = [tally[f"later {name}"] for name in ("BatchGetItem", "Query", "DeleteItem")]
        cells = [f"{entity}: {event}", *map(str, requests), str(tally["published"]), *map(str, later)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def test_the_budget_in_the_docs_equals_the_cost_of_each_event() -> None:
    assert budget_table() in (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("entity", list(ROWS))
def test_a_change_of_columns_that_no_product_uses_costs_its_write_and_nothing_else(entity: str) -> None:
    row = next(row for e, event, row in EVENTS if (e, event) == (entity, "update that does not matter"))
    requests = {
        name: n for name, n in cost(entity, "update", row).items() if name.startswith(("request", "later")) and n
    }
    assert requests == {"request UpdateItem": 1}


def test_one_query_answers_all_children_that_share_a_slot() -> None:
    tally = cost("user", "first seen", {**OCTO, "email": "cat@example.org", "username": "cat", "id": 3})
    assert tally["request Query"] == 2  # stars and pull requests together, and the payment


def test_a_root_is_published_once_a_batch_however_many_changes_touch_it() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch([record(name, row, 0) for name, row in ROWS.items()])
    tally = trial.batch([record("star", {**STAR, "repo_name": f"r{i}"}, i + 1) for i in range(50)])
    assert tally["published"] == 1
    assert tally["request UpdateItem"] == 50 + 1 + 1 + 1  # rows, open changes, the ledger, the end of the round


def units_of_a_star(stargazers: int) -> tuple[int, Decimal]:
    """The units of one more star of a repository with this many stars, settling included."""
    clock = VirtualClock()
    store = MeteredStore(clock=clock.now)
    trial = Trial(plan=PLAN, settings=Settings(), clock=clock, other_store=store)
    stars = [{**STAR, "username": f"fan {n}"} for n in range(stargazers)]
    trial.batch([record("star", star, n) for n, star in enumerate(stars)] + [record("user", OCTO, 0)])
    trial.finish()
    written, read = store.written, store.read_units
    trial.batch([record("star", STAR, stargazers)])
    trial.finish()
    return store.written - written, store.read_units - read


def test_a_star_of_a_popular_repository_costs_no_more_than_one_of_a_small_repository() -> None:
    assert units_of_a_star(3_000) == units_of_a_star(10)


SHOPS = 120
DEEP = {
    "entities.yaml": """
        shop: {key: [id], columns: {id: int, name: string}}
        sale: {key: [id], columns: {id: int, shop: int, item: int}}
        item: {key: [id], columns: {id: int, maker: int}}
        maker: {key: [id], columns: {id: int, name: string}}
    """,
    "sales.yaml": """
        product: sales
        root: shop
        fields: [id, name]
        embed:
          sales:
            many: sale
            on: {shop: id}
            fields: [id]
            embed:
              item:
                one: item
                on: {id: item}
                fields: [id]
                embed: {maker: {one: maker, on: {id: maker}, fields: [name]}}
    """,
}


def rename_shops(definitions: dict[str, str]) -> Counter[str]:
    """The requests of a batch that renames all shops. Each has three sales, of thirty items by five makers; all are settled."""
    plan = plan_alone(load(definitions), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    rows = [("maker", {"id": n, "name": f"maker {n}"}) for n in range(5)]
    rows += [("item", {"id": n, "maker": n % 5}) for n in range(30)]
    rows += [("sale", {"id": n, "shop": n % SHOPS, "item": n % 30}) for n in range(3 * SHOPS)]
    shops = [("shop", {"id": n, "name": f"shop {n}"}) for n in range(SHOPS)]
    trial.batch([row_record(name, row, offset) for offset, (name, row) in enumerate(rows + shops)])
    trial.finish()
    tally = trial.batch([row_record(name, {**row, "name": "new"}, 1_000 + n) for n, (name, row) in enumerate(shops)])
    assert tally["published"] == SHOPS * len(plan.products)
    return tally


def row_record(entity: str, row: dict[str, Any], offset: int) -> Record:
    value = json.dumps(row).encode()
    return Record(topic=entity, partition=0, offset=offset, key=json.dumps({"id": row["id"]}).encode(), value=value)


def test_a_batch_reads_three_levels_of_all_roots_together_each_key_and_query_once() -> None:
    tally = rename_shops(DEEP)
    assert tally["request UpdateItem"] == SHOPS + SHOPS + 1  # rows without slots, the ledger, the end of the round
    assert tally["request BatchGetItem"] == 2 + 2 + 1 + 1  # the ledger and the shops by 100, the items, the makers
    assert tally["request Query"] == SHOPS


def test_products_of_one_root_share_their_reads_and_their_ledger_item() -> None:
    copies = {f"{n}.yaml": DEEP["sales.yaml"].replace("product: sales", f"product: sales_{n}") for n in range(3)}
    tally = rename_shops({**DEEP, **copies})
    assert tally["request UpdateItem"] == SHOPS + SHOPS + 1  # one item of the ledger for the four products
    assert tally["request BatchGetItem"] == 2 + 2 + 1 + 1
    assert tally["request Query"] == SHOPS

"""The price of events, and of holding. The requests are those of the budget in docs/costs.md, which another test compares
with the steps. The price of holding is that of the items which a job writes and deletes.
"""

import json
from decimal import Decimal
from pathlib import Path
from textwrap import dedent

import pytest

from processor.cli.main import main
from processor.cli.printing.plan import plan_lines
from processor.engine.plan.planning import plan_alone, requirements_of
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import SettingError
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.preview import preview
from processor.tools.inspect.price import BATCH, Cost, EventTrials, price_events, price_gates, price_load
from processor.tools.inspect.prices import DEFAULT, read_prices
from processor.values.recorded_topics import read_records
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import Snapshot
from statestore.memory import MeteredStore
from tests.unit.engine.rounds.test_gates import ENTITIES, PRODUCT, Shop

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "examples" / "github"
NAMES = {
    "user: update that matters": "user: update of id (join key)",
    "user: join key changed": "user: update of username (join key)",
    "repo: first seen, not starred": "repo: first seen",
    "repo: update that matters": "repo: update of description",
    "star: update that matters": "star: update of created_at",
    "pull_request: update that matters": "pull_request: update of title, status, created_at",
    "pull_request: join key changed": "pull_request: update of author (join key)",
    "payment_info: update that matters": "payment_info: update of verified",
    "payment_info: join key changed": "payment_info: update of user_id (join key)",
}
"""Events of the budget in docs/costs.md -> the same kinds of event in a price."""


EXAMPLE = plan_alone(load(read_directory(FOLDER)), slots=20)


def prices_by_event(definitions: dict[str, str]) -> dict[str, Cost]:
    plan = plan_alone(load(definitions), slots=20)
    return {f"{cost.entity}: {cost.event}": cost for cost in price_events(plan, Settings())}


def test_the_priced_requests_are_those_of_the_budget_in_the_docs() -> None:
    found = prices_by_event(read_directory(ROOT / "examples" / "github"))
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    budget = page.partition("## The requests of one event")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in budget.splitlines() if ": " in line and "|" in line
    ]
    assert len(rows) == 1 + len(found)
    for event, *counts in rows[1:]:
        name = event.replace("update that does not matter", "update of nothing that is used")
        cost = found[NAMES.get(event, name)]
        reads = int(name.endswith("nothing that is used") and bool(EXAMPLE.entities[cost.entity].slots))
        priced = [cost.requests["UpdateItem"], cost.requests["BatchGetItem"] - reads, cost.requests["Query"]]
        priced += [cost.documents, *(cost.later[n] for n in ("BatchGetItem", "Query", "DeleteItem"))]
        assert priced == [int(count) for count in counts], event


@pytest.fixture(scope="module")
def thousand() -> EventTrials:
    """A state for batches of a thousand events of the example."""
    return EventTrials(EXAMPLE, Settings(), BATCH)


@pytest.mark.parametrize(
    "entity",
    [
        pytest.param("star", marks=pytest.mark.rest),
        *(pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLE.occurrences if name != "star"),
    ],
)
def test_the_price_in_a_batch_of_a_thousand_is_near_the_cost_of_a_real_batch(
    thousand: EventTrials, entity: str
) -> None:
    for cost, events in zip(price_events(EXAMPLE, Settings()), thousand.kinds(), strict=True):
        if cost.entity == entity:
            real = thousand.run(events)
            assert real.documents == BATCH * cost.documents
            assert 0 < real.read_units <= BATCH * cost.batch_read_units, cost.event  # a real batch reads ranges of keys
            assert 0 <= real.write_units / BATCH - float(cost.batch_write_units) <= 0.05, cost.event


def test_units_and_dollars_follow_from_the_writes_and_reads() -> None:
    cost = prices_by_event(read_directory(ROOT / "examples" / "github"))["star: update of nothing that is used"]
    assert (cost.write_units, cost.read_units) == (1, Decimal("0.5"))  # the row, which the task reads first
    assert DEFAULT.dollars(cost.write_units, cost.read_units) == Decimal("0.6875")
    assert (cost.batch_write_units, cost.batch_read_units) == (Decimal(1), Decimal("0.5"))


def test_products_with_self_joins_shards_and_other_formats_have_prices() -> None:
    found = prices_by_event(
        {
            "entities.yaml": dedent("""
                person: {key: [id], shards: 4, format: debezium, columns: {id: int, boss: int, ok: bool, tags: "string[]"}}
                follow: {key: [who, whom], columns: {who: int, whom: int, at: timestamp}}
                unread: {key: [id], columns: {id: int}}
                """),
            "people.yaml": dedent("""
                product: people
                root: person
                fields: [id]
                embed:
                  boss: {one: person, on: {id: boss}, fields: [id, ok]}
                  reports: {many: person, on: {boss: id}, fields: [id]}
                  follows: {many: follow, on: {who: id}, fields: [whom]}
                  followers: {many: follow, on: {whom: id}, fields: [who]}
                """),
        }
    )
    assert [name for name in found if name.startswith(("follow", "unread"))] == [
        "follow: first seen",
        "follow: update of nothing that is used",
        "follow: delete",
        "follow: replay",
    ]
    assert found["follow: first seen"].documents == 1
    assert found["follow: delete"].documents == 1
    assert found["person: update of boss (join key)"].documents == 2
    assert found["person: update of ok"].documents == 1


def test_in_a_batch_an_event_shares_the_end_of_the_round_and_the_item_of_open_changes() -> None:
    cost = prices_by_event(read_directory(ROOT / "examples" / "github"))["star: first seen"]
    shared = 3  # the end of the round, and the item of open changes: its write and its deletion
    assert cost.batch_write_units == cost.write_units - shared + Decimal(shared) / BATCH
    assert cost.batch_read_units == cost.read_units


def test_every_row_counts_in_a_price_and_a_column_of_a_filter_changes_documents() -> None:
    found = prices_by_event(
        {
            "entities.yaml": dedent("""
                person: {key: [id], columns: {id: int, city: string, ok: bool}}
                visit: {key: [id], columns: {id: int, who: int, state: string, at: timestamp}}
                """),
            "people.yaml": dedent("""
                product: people
                root: person
                where: city = 'Oslo'
                fields: [id]
                embed:
                  visits: {many: visit, on: {who: id}, where: state = 'open' and parent.ok, fields: [at], required: true}
                """),
        }
    )
    updates = ["person: update of city, ok", "visit: update of state", "visit: update of at", "person: first seen"]
    assert [found[name].documents for name in updates] == [1, 1, 1, 1]


def test_prices_of_another_region_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('region = "eu-west-1"\ndate = "2026-11"\nwrite = 0.7\nread = 1\n')
    assert read_prices(str(file)).dollars(2, Decimal("0.5")) == Decimal("1.9")
    file.write_text('region = "eu-west-1"\n')
    with pytest.raises(SettingError, match="must have region, date, write and read"):
        read_prices(str(file))
    file.write_text('region = "eu-west-1"\ndate = "2026-11"\nwrite = "x"\nread = 1\n')
    with pytest.raises(SettingError, match="dollars a million units"):
        read_prices(str(file))
    with pytest.raises(SettingError, match="cannot be read"):
        read_prices(str(tmp_path / "none"))


@pytest.mark.parametrize(
    "expression",
    ["extract(year from born)", "coalesce(extract(month from born), 0)", "born > '1900-01-01'", "count(stars.at)"],
)
def test_an_update_that_an_expression_reads_is_priced_with_its_document(expression: str) -> None:
    """The sample's date may stay in its year, and the update of a real row need not."""
    join = "{stars: {many: star, on: {who: id}}}"
    found = prices_by_event(
        {
            "entities.yaml": "{user: {key: [id], columns: {id: int, born: date}},\n"
            " star: {key: [id], columns: {id: int, who: int, at: date}}}",
            "p.yaml": f'{{product: p, root: user, join: {join}, fields: {{shown: "{expression}"}}}}',
        }
    )
    event = "star: update of at" if "at)" in expression else "user: update of born"
    assert (found[event].documents, found[event].requests["UpdateItem"]) == (1, 4 if "at)" in expression else 3)


GATES = ("{quiet: 2 s}", "{every: 5 s}", "{transactions: whole}", "{transactions: whole, quiet: 1 s, every: 5 s}")


def files(publish: str) -> dict[str, str]:
    return {"entities.yaml": ENTITIES, "bill.yaml": PRODUCT + (f"publish: {publish}\n" if publish else "")}


def written(publish: str, batch: int) -> int:
    """The write units of a batch of events, each on another order and in a transaction of its own, until all is forgotten."""
    shop, store = Shop(publish or "{every: 1 ms}"), MeteredStore(5)
    shop.plan = plan_alone(load(files(publish)), slots=5)
    shop.trial = Trial(plan=shop.plan, settings=Settings(), other_store=store)
    shop.trial.driver.progress.open_changes.samples = False
    changes = [shop.change("orders", f"{10**6 + n}", 1, id=7**17 + 7**13 * n, total=n) for n in range(batch)]
    shop.batch(*changes, *(shop.end(f"{10**6 + n}", orders=1) for n in range(batch)))
    shop.trial.finish()
    for _ in range(2):
        shop.batch()
        shop.trial.clock.sleep(200)
    shop.batch()
    assert store.partition("OPEN") == []
    return store.written


@pytest.mark.parametrize("publish", GATES)
def test_holding_costs_what_a_job_spends_and_nothing_near_one_unit_an_event(publish: str) -> None:
    (price,) = price_gates(plan_alone(load(files(publish)), slots=5))
    assert written(publish, 1) - written("", 1) == price.alone <= 4
    more = (written(publish, BATCH) - written("", BATCH)) / BATCH
    assert more <= price.in_batch <= 0.1
    assert price.in_batch - more <= 0.03, "the keys of this test are shorter"


def test_the_price_of_an_event_has_holding_and_the_document_that_waited() -> None:
    with_gate, without = (
        {
            cost.event: cost
            for cost in price_events(plan_alone(load(files(one)), 5), Settings())
            if cost.entity == "order"
        }
        for one in ("{quiet: 2 s}", "")
    )
    for event, cost in without.items():
        assert with_gate[event].documents == cost.documents
        waits = cost.documents > 0 or event == "replay"
        assert with_gate[event].write_units - cost.write_units == 2 * waits, event


EMPTY = Snapshot(version=0, slots=5, entities=(), products=(), assignments=(), joins=())


def test_plan_shows_another_gate_as_a_change_without_another_version() -> None:
    live = edited(EMPTY, apply(EMPTY, requirements_of(load(files("{quiet: 2 s}"))), frozenset()))
    found = preview(load(files("{quiet: 3 s}")), live, frozenset({"order", "line"}))
    (entry,) = found.entries
    assert (entry.name, entry.version, entry.waits) == ("bill", 1, False)
    assert entry.details == ("publish.quiet: 2 s -> 3 s", "the version stays, and no document goes out again")


def test_plan_says_what_holding_costs() -> None:
    found = preview(load(files("{quiet: 2 s}")), EMPTY, frozenset(), Settings())
    text = "\n".join(plan_lines(found, DEFAULT))
    assert "\n  bill: 2 alone, 0.0" in text
    assert "gates: write units of holding" in text
    assert preview(load(files("")), EMPTY, frozenset(), Settings()).gates == ()


def test_plan_says_what_time_costs_where_a_product_has_a_clock() -> None:
    texts = files("")
    name = next(name for name in texts if name.startswith("bill"))
    clocked = {**texts, name: texts[name].replace("product: bill", "product: bill\nclock: 1 h")}
    found = preview(load(clocked), EMPTY, frozenset(), Settings())
    assert found.clocks == ("bill",)
    assert "clock: each boundary that time passes makes a document of bill again" in "\n".join(
        plan_lines(found, DEFAULT)
    )
    assert preview(load(texts), EMPTY, frozenset(), Settings()).clocks == ()


def test_a_load_costs_a_tenth_of_the_writes_of_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"username": f"u{n % 7}", "repo_name": f"r{n}", "repo_owner": "o"} for n in range(100)]
    lines = [json.dumps({"topic": "star", "key": row, "value": row}) for row in rows]
    file = tmp_path / "stars.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    found = price_load(EXAMPLE, Settings(), list(read_records(str(file))))
    assert found._replace(bytes=0) == (100, 304, 0)  # a row, two entries of indexes, a share of the open changes
    assert main(["load", "--definitions", str(FOLDER), "--price", str(file)]) == 0
    by_run, by_load = capsys.readouterr().out.splitlines()[1:]
    assert (
        by_run
        == "  by `run`: $1.90 for 3,040,000 write units, at least 13 minutes at the 4,000 a second of a new table"
    )
    assert by_load == "  by `load`: $0.06 for an import of 0.38 GB; AWS names no duration"


def test_plan_says_what_moves_to_other_partitions_add() -> None:
    texts = files("")
    name = next(name for name in texts if name.startswith("bill"))
    routed = {**texts, name: texts[name].replace("product: bill", "product: bill\npartition_by: [id]")}
    text = " ".join("\n".join(plan_lines(preview(load(routed), EMPTY, frozenset(), Settings()), DEFAULT)).split())
    assert "a document of bill that moves to another partition sends one message more" in text
    assert "partition_by" not in "\n".join(plan_lines(preview(load(texts), EMPTY, frozenset(), Settings()), DEFAULT))

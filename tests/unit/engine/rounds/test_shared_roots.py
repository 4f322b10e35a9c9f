"""Products of one root go out together: each row is read and decoded once, and a product that fails stops alone."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest

import processor.engine.protocol.assemble as assemble
import processor.engine.rounds.publish_stage as publish_stage
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Write, WriteOutcome

ENTITIES = """
user: {key: [id], columns: {id: int, name: string}}
star: {key: [id], columns: {id: int, name: string, note: string}}
fork: {key: [id], columns: {id: int, name: string}}
"""
STARS = {"many": "star", "on": {"name": "name"}, "fields": ["id", "note"]}
FORKS = {"many": "fork", "on": {"name": "name"}, "fields": ["id"]}


class CountingStore(MemoryStore):
    """Counts the keys that the job reads and the items that it writes, by the begin of their partition."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        super().__init__(20)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        self.counted.update(f"get {key.pk}" for key in keys)
        return super().get(keys)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        self.counted.update(f"get {key.pk}" for key in keys)
        return super().get_weak(keys)

    def write(self, write: Write) -> WriteOutcome:
        self.counted[f"write {write.key.pk}"] += 1
        return super().write(write)


def plan_of_products(*embeds: dict[str, Any]) -> Plan:
    """Products p00, p01, .. of users, one for each of these embeds."""
    products = {
        f"p{n:02}.json": json.dumps({"product": f"p{n:02}", "root": "user", "fields": ["id"], "embed": embed})
        for n, embed in enumerate(embeds)
    }
    return plan_alone(load({"entities.yaml": ENTITIES, **products}), 20)


def started(plan: Plan) -> tuple[Trial, CountingStore]:
    store = CountingStore()
    return Trial(plan=plan, settings=Settings(), other_store=store), store


def row(entity: str, offset: int, **columns: Any) -> Record:
    return Record(topic=entity, partition=0, offset=offset, key=None, value=json.dumps(columns).encode())


def sent(trial: Trial) -> Counter[str]:
    return Counter(message.topic for message in trial.published.messages)


@pytest.mark.parametrize(("products", "groups"), [(1, 1), (20, 1), (21, 2)])
def test_products_of_a_root_read_and_write_one_ledger_item_for_each_twenty(products: int, groups: int) -> None:
    trial, store = started(plan_of_products(*[{"stars": STARS}] * products))
    trial.batch([row("user", 0, id=1, name="ada")])
    ledgers = [f"LEDGER#user#{n}" for n in range(groups)]
    assert [store.counted[f"get {pk}"] for pk in ledgers] == [1] * groups
    assert [store.counted[f"write {pk}"] for pk in ledgers] == [1] * groups
    assert store.counted["get TABLE#user"] == 1
    assert sum(sent(trial).values()) == products


def test_a_change_that_one_product_reads_publishes_and_writes_for_this_product_alone() -> None:
    plain = {**STARS, "fields": ["id"]}
    trial, _ = started(plan_of_products({"stars": plain}, {"stars": STARS}))
    trial.batch([row("user", 0, id=1, name="ada"), row("star", 0, id=7, name="ada", note="old")])
    trial.finish()
    before = sent(trial)
    trial.batch([row("star", 1, id=7, name="ada", note="new")])
    assert sent(trial) - before == {"p01": 1}


def test_an_assembly_that_fails_stops_only_the_products_that_use_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared assembly fails, so the task assembles each product alone."""

    def failing(plan: Plan, tree: Any, *args: Any, **kw: Any) -> Any:
        if any(node.join.join.entity == "fork" for node in tree.nodes):
            raise ValueError("a fork that nobody foresaw")
        return assemble.assemble_tree(plan, tree, *args, **kw)

    monkeypatch.setattr(publish_stage, "assemble_tree", failing)
    trial, _ = started(plan_of_products({"stars": STARS}, {"forks": FORKS}, {"stars": STARS}))
    trial.batch([row("user", 0, id=1, name="ada"), row("star", 0, id=7, name="ada", note="n")])
    assert sent(trial) == {"p00": 1, "p02": 1}
    assert list(trial.driver.progress.backlog.stopped) == ["p01"]


def test_products_that_share_rows_do_not_change_each_other_s_documents() -> None:
    """One product leaves rows out and orders the others; its neighbour shows them all."""
    some = {**STARS, "where": "note = 'b'", "order_by": ["-id"]}
    trial, _ = started(plan_of_products({"stars": some}, {"stars": STARS}, {"stars": {**STARS, "limit": 1}}))
    stars = [row("star", n, id=n, name="ada", note="ab"[n % 2]) for n in range(4)]
    trial.batch([row("user", 0, id=1, name="ada"), *stars])
    shown = {m.topic: [star["id"] for star in json.loads(m.value or b"")["stars"]] for m in trial.published.messages}
    assert shown == {"p00": [3, 1], "p01": [0, 1, 2, 3], "p02": [0]}


def test_products_with_equal_joins_have_the_documents_that_each_of_them_has_alone() -> None:
    """The products share rows and embeds at each level: equal ones, and ones with other conditions or joins below."""
    forks = {"forks": {**FORKS, "on": {"id": "id"}}}
    shown = {**STARS, "order_by": ["-note"], "limit": 2, "total": True, "embed": forks}
    embeds: list[dict[str, Any]] = [
        {"stars": shown},
        {"stars": shown},
        {"stars": {**shown, "fields": ["note"], "limit": 3}},
        {"stars": {**shown, "embed": {"forks": {**forks["forks"], "required": True}}}},
        {"stars": {**shown, "where": "count(forks) = 0"}},
        {"stars": {**shown, "where": "note = parent.name"}},
        {"stars": {**STARS, "fields": {"n": "count(*)", "last": "max(note)"}}, "one": {**STARS, "one": "star"}},
    ]
    embeds[-1]["one"].pop("many")
    records = [row("user", n, id=n, name=name) for n, name in enumerate(["ada", "bo", "é"])]
    records += [row("star", n, id=n, name=["ada", "bo", "é"][n % 3], note=f"{n % 4}é") for n in range(20)]
    records += [
        row("star", 20, id=20, name="ada", note="ada"),
        *(row("fork", n, id=n, name="x") for n in range(0, 20, 4)),
    ]
    together = documents(plan_of_products(*embeds), records)
    for name, embed in [(f"p{n:02}", embed) for n, embed in enumerate(embeds)]:
        alone = documents(plan_of_products(embed), records)
        assert together[name] == alone["p00"], name


def test_a_root_at_the_end_of_a_chunk_is_read_and_reserved_once_for_all_its_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish_stage, "CHUNK", 4)
    trial, store = started(plan_of_products(*[{"stars": STARS}] * 3))
    trial.batch([row("user", n, id=n, name=f"u{n}") for n in range(5)])
    assert [store.counted[name] for name in ("get LEDGER#user#0", "write LEDGER#user#0")] == [5, 5]
    assert sum(sent(trial).values()) == 15


def test_the_text_of_a_document_has_its_names_as_they_are_and_each_of_them_once() -> None:
    """The user has an undeclared column with the name of the embed, which takes its place."""
    stars = {**STARS, "fields": {"50% of é": "note"}, "limit": 1, "total": True}
    products = {
        "whole.json": json.dumps({"product": "whole", "root": "user", "embed": {"stars": stars}}),
        "some.json": json.dumps({"product": "some", "root": "user", "fields": ["id"], "embed": {"stars": stars}}),
    }
    trial, _ = started(plan_alone(load({"entities.yaml": ENTITIES, **products}), 20))
    trial.batch([row("user", 0, id=1, name="ada", a="%s", stars=3), row("star", 0, id=7, name="ada", note="n")])
    values = {message.topic: (message.value or b"").decode() for message in trial.published.messages}
    shown = '"stars":[{"50% of é":"n"}],"stars_total":1}'
    assert values == {"whole": '{"id":1,"name":"ada","a":"%s",' + shown, "some": '{"id":1,' + shown}


def documents(plan: Plan, records: list[Record]) -> dict[str, dict[bytes | None, bytes | None]]:
    """Topic -> key -> value of the last message."""
    trial, _ = started(plan)
    trial.batch(records)
    trial.finish()
    last: dict[str, dict[bytes | None, bytes | None]] = {}
    for message in trial.published.messages:
        last.setdefault(message.topic, {})[message.key] = message.value
    return last


def test_the_work_of_two_products_of_a_root_adds_up_to_what_the_task_asked_and_sent() -> None:
    """Both read the ledger and the stars, and share the write; the forks are of one product alone. The way up shows the user."""
    trial, store = started(plan_of_products({"stars": STARS}, {"stars": STARS, "forks": FORKS}))
    rows = [row("star", 0, id=7, name="ada", note="n"), row("fork", 0, id=3, name="ada")]
    trial.batch([row("user", 0, id=1, name="ada"), *rows])
    tally = trial.tally
    reads = [tally[f"reads/1000 of {name}"] for name in ("p00", "p01")]
    writes = [tally[f"ledger writes/1000 of {name}"] for name in ("p00", "p01")]
    assert reads == [1_000, 2_000]
    assert writes == [500, 500]
    assert sum(writes) == 1_000 * store.counted["write LEDGER#user#0"]
    sizes = {one.topic: len(one.key or b"") + len(one.value or b"") for one in trial.published.messages}
    assert {name: tally[f"bytes of {name}"] for name in sizes} == sizes
    assert min(tally[f"render us of {name}"] for name in sizes) > 0


def test_a_part_of_a_read_that_three_products_share_is_not_lost() -> None:
    trial, _ = started(plan_of_products(*[{"stars": STARS}] * 3))
    trial.batch([row("user", 0, id=1, name="ada")])
    assert [trial.tally[f"ledger writes/1000 of p{n:02}"] for n in range(3)] == [334, 333, 333]
    assert sum(trial.tally[f"reads/1000 of p{n:02}"] for n in range(3)) == 3_000


def test_a_change_that_one_product_reads_is_the_work_of_this_product_alone() -> None:
    trial, _ = started(plan_of_products({"stars": {**STARS, "fields": ["id"]}}, {"stars": STARS}))
    trial.batch([row("user", 0, id=1, name="ada"), row("star", 0, id=7, name="ada", note="old")])
    trial.finish()
    before = Counter(trial.tally)
    trial.batch([row("star", 1, id=7, name="ada", note="new")])
    more = Counter(trial.tally) - before
    assert {name for name in more if name.endswith(" of p00")} == set()
    assert more["ledger writes/1000 of p01"] == 1_000
    assert more["reads/1000 of p01"] == 2_000  # the ledger and the stars; the way up shows the user

"""The diff of two definitions over one state equals the documents that two jobs publish from the beginning, one by each
definition. The state lacks the slots and the edges that the new definition needs. Then the differences between two documents.
"""

import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from processor.cli.choices import empty_registry
from processor.engine.plan.planning import plan_alone, plan_of, requirements_of
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.tools.inspect.diff import (
    ChangeGroups,
    DefinitionDiff,
    DiffSide,
    ProductDiff,
    document_changes,
    filled_accesses,
    scan_unfilled,
)
from processor.tools.inspect.preview import planned_state
from processor.values.record import Record
from registry.edits.apply import apply
from registry.edits.edit import edited

ENTITIES = """
user: {key: [id], columns: {id: int, name: string, city: string, age: int, ids: "int[]"}}
star: {key: [id], columns: {id: int, who: string, note: string}}
"""
LIVE = """
product: profile
root: user
where: age < 8
fields: [id, name, city]
embed:
  stars: {many: star, on: {who: name}, fields: [id], order_by: [id], limit: 2}
"""
CHANGED = {
    "a field is added, one is removed": LIVE.replace("[id, name, city]", "{id: id, name: name, ages: age}"),
    "a field has another type": LIVE.replace("[id, name, city]", "{id: id, name: name, city: age}"),
    "a field is null for some": LIVE.replace("[id, name, city]", "{id: id, name: name, city: \"nullif(city, 'c1')\"}"),
    "lists get longer": LIVE.replace("limit: 2", "limit: 3"),
    "lists get shorter": LIVE.replace("limit: 2", "limit: 2, where: note = 'n1'"),
    "roots come and go": LIVE.replace("age < 8", "age > 4"),
    "a join needs a slot that no row has": LIVE.replace("{who: name}", "{note: city}"),
    "siblings share a slot that no row has": LIVE
    + "  notes: {many: star, on: {note: city}, value: id, order_by: [id]}\n"
    "  same: {many: user, on: {city: city}, value: id, order_by: [id]}\n",
    "a join needs edges that no row has": LIVE + "  few: {many: star, on: {id: 'ids[]'}, value: note}\n",
    "a strong join": LIVE.replace("limit: 2", "limit: 2, strong: true"),
    "a `one` with several rows": LIVE + "  first: {one: star, on: {who: name}, value: id, order_by: [-id]}\n",
    "another topic": "topic: elsewhere" + LIVE,
}


def records() -> list[Record]:
    """60 users, of whom three go, and 90 stars; each tenth value is null."""
    random = Random(28)
    users = [
        {
            "id": n,
            "name": f"u{n}",
            "city": f"c{n % 4}" if n % 10 else None,
            "age": n % 12,
            "ids": [n, 2**70 if n == 26 else n + 1],
        }
        for n in range(60)
    ]
    users[26]["ids"] = [2**70]
    stars = [{"id": n, "who": f"u{random.randrange(70)}", "note": f"c{n % 5}"} for n in range(90)]
    lines = [("user", user, user) for user in users] + [("star", star, star) for star in stars]
    lines += [("user", user, None) for user in users[:3]]  # type: ignore[misc]  # a deleted row
    return [
        Record(
            topic=entity,
            partition=0,
            offset=n,
            key=json.dumps({"id": row["id"]}).encode(),
            value=None if value is None else json.dumps(value).encode(),
        )
        for n, (entity, row, value) in enumerate(lines)
    ]


def trial(plan: Any) -> Trial:
    made = Trial(plan=plan, settings=Settings())
    *rows, last, other, third = records()
    for batch in (rows, [last, other, third]):
        made.batch(batch)
    made.finish()
    return made


def last_documents(made: Trial, topic: str) -> dict[str, Any]:
    last = {(one.key or b"").decode(): one.value for one in made.published.messages if one.topic == topic}
    return {key: json.loads(value) for key, value in last.items() if value is not None}


def compared(live: Definitions, new: Definitions, product: str, sample: int | None = None) -> tuple[ProductDiff, Trial]:
    """The diff over the state of a job by the live definitions, and that job."""
    nothing = empty_registry(Settings())
    stored = edited(nothing, apply(nothing, requirements_of(live), frozenset()))
    job = trial(plan_of(stored))
    state = planned_state(new, stored, frozenset(live.entities))
    products = list(state.plan.products.values())
    runner = StepRunner(store=job.store)
    unfilled = scan_unfilled(state.plan, products, filled_accesses(stored, job.plan), job.store)
    diff = DefinitionDiff(
        live=DiffSide(plan=job.plan, runner=runner),
        planned=DiffSide(plan=state.plan, runner=runner, unfilled=unfilled),
        random=Random(1),
        sample=sample,
    )
    return diff.product(product, publishes=True), job


@pytest.mark.parametrize("what", CHANGED)
def test_each_counted_difference_is_real_and_none_is_left_out(what: str) -> None:
    live = load({"entities.yaml": ENTITIES, "p.yaml": LIVE})
    new = load({"entities.yaml": ENTITIES, "p.yaml": CHANGED[what]})
    found, job = compared(live, new, "profile")
    topic = new.products["profile"].topic
    before, after = last_documents(job, "profile"), last_documents(trial(plan_alone(new, 20)), topic)
    differ = {key for key in before | after if before.get(key) != after.get(key)}
    assert (found.roots, found.compared, found.differ) == (57, 57, len(differ))
    assert (found.before.documents, found.after.documents) == (len(before), len(after))
    sizes = [len(json.dumps(one, separators=(",", ":"))) for one in after.values()]
    assert (found.after.total, found.after.largest) == (sum(sizes), max(sizes))
    assert sum(one.documents for one in found.groups if one.kind == "document gone") == len(
        before.keys() - after.keys()
    )
    assert sum(one.documents for one in found.groups if one.kind == "new document") == len(after.keys() - before.keys())
    for group in found.groups:
        one, other = (documents.get(group.key) for documents in (before, after))
        assert one != other
        if group.kind.startswith("list") and one and other:
            assert len(one[group.place]) != len(other[group.place])
            longer = group.kind == "list longer"
            changed = [
                k for k in before.keys() & after.keys() if (len(after[k]["stars"]) > len(before[k]["stars"])) == longer
            ]
            assert group.documents == sum(len(after[k]["stars"]) != len(before[k]["stars"]) for k in changed)
    gone = 3 if what == "another topic" else 0  # their tombstones are in the former topic
    assert (found.tombstones, found.left) == (len(before.keys() - after.keys()), gone)
    assert found.messages == len(after) + found.tombstones + found.left


def test_a_new_product_has_its_documents_and_the_joins_that_find_nothing_or_too_much() -> None:
    live = load({"entities.yaml": ENTITIES, "p.yaml": LIVE})
    other = """
    product: other
    root: user
    fields: [id]
    embed:
      wrong: {one: star, on: {note: name}}
      city: {one: star, on: {note: city}, where: id < 40}
    """
    new = load({"entities.yaml": ENTITIES, "p.yaml": LIVE, "q.yaml": other})
    found, _ = compared(live, new, "other")
    after = last_documents(trial(plan_alone(new, 20)), "other")
    assert (found.new, found.after.documents, found.messages) == (True, len(after), len(after))
    wrong, city = found.joins
    assert (wrong.path, wrong.asked, wrong.nothing, wrong.several) == ("wrong", 57, 57, 0)
    without = sum(document["city"] is None for document in after.values())
    assert (city.path, city.asked, city.nothing, city.several) == ("city", 57, without, 57 - without)


def test_a_sample_states_its_share_and_expects_the_messages_of_all_roots() -> None:
    live = load({"entities.yaml": ENTITIES, "p.yaml": LIVE})
    new = load({"entities.yaml": ENTITIES, "p.yaml": LIVE.replace("[id, name, city]", "[id]")})
    found, _ = compared(live, new, "profile", sample=19)
    assert (found.roots, found.compared) == (57, 19)
    assert found.share == pytest.approx(1 / 3)
    assert found.differ == found.before.documents
    assert found.messages == 3 * (found.after.documents + found.tombstones)


def test_a_document_that_does_not_fit_its_avro_schema_is_counted_and_is_no_message() -> None:
    live = load({"entities.yaml": ENTITIES, "p.yaml": LIVE})
    new = load({"entities.yaml": ENTITIES, "p.yaml": "format: avro" + LIVE.replace("id, name, city", "id, ids")})
    found, _ = compared(live, new, "profile")
    (unfit,) = [group for group in found.groups if group.kind == "cannot be published"]
    assert (unfit.documents, unfit.key) == (1, '{"id":26}')
    assert (found.after.documents, found.messages) == (found.before.documents - 1, found.before.documents - 1)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": Decimal("1.0")}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": True}, [("another type", "a")]),
        ({"a": 1}, {"a": "1"}, [("another type", "a")]),
        ({"a": 1}, {"a": 2}, [("another value", "a")]),
        ({"a": 1}, {"a": 1, "b": None}, [("field added", "b")]),
        ({"a": 1, "b": None}, {"a": 1}, [("field removed", "b")]),
        ({"a": {"b": 1}}, {"a": {"b": None}}, [("null now", "a.b")]),
        ({"a": {"b": None}}, {"a": {"b": 1}}, [("null no more", "a.b")]),
        ({"a": [1]}, {"a": [1, 2]}, [("list longer", "a")]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}]}, [("list shorter", "a")]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{}, {}]}, [("field removed", "a[].b"), ("field removed", "a[].b")]),
        ({"a": [1]}, {"a": {"b": 1}}, [("another type", "a")]),
        (None, {"a": 1}, [("new document", "")]),
        ({"a": 1}, None, [("document gone", "")]),
        (None, None, []),
        (5, "5", [("another type", "")]),
    ],
)
def test_each_difference_has_its_kind_and_its_place(before: Any, after: Any, changes: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.place) for one in document_changes(before, after)] == changes


def test_a_group_counts_a_document_once_and_keeps_its_first_example() -> None:
    groups = ChangeGroups()
    groups.add("k1", document_changes({"a": [{"b": 1}, {"b": 2}], "c": 1}, {"a": [{"b": 3}, {"b": 4}], "c": 1}))
    groups.add("k2", document_changes({"a": [], "c": 1}, {"a": [], "c": 1}))
    groups.add("k3", document_changes({"a": [{"b": 1}], "c": 1}, {"a": [{"b": 5}], "c": None}))
    assert groups.differ == 2
    first, second = groups.found()
    assert (first.kind, first.place, first.documents, first.key) == ("another value", "a[].b", 2, "k1")
    assert (first.before, first.after) == (1, 3)
    assert (second.kind, second.place, second.documents, second.key) == ("null now", "c", 1, "k3")

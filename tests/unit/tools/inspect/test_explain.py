"""The access paths of a product, and its tree as a Mermaid diagram.

Why a document is as it is: what each join looked for and found, which rows do not count, and where values come from.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, product_of
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.explain import (
    LEFT_OUT,
    Lineage,
    explain,
    explanation_lines,
    lineage,
    lineage_lines,
    mermaid_lines,
)
from processor.tools.inspect.rows import former_topics
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from registry.model import EpochBoundary

EXAMPLE = read_directory(Path(__file__).parents[4] / "examples" / "github")
PEOPLE = """
person:
  key: [id]
  shards: 4
  columns: {id: int, boss: int, city: string}
city:
  key: [name]
  columns: {name: string}
"""
TREE = """
product: persons
root: person
fields: [id]
join:
  city: {one: city, on: {name: city}}
embed:
  boss: {one: person, on: {id: boss}}
  reports: {many: person, on: {boss: id}, fields: [id]}
  others: {many: person, on: {boss: id}, limit: 1}
"""


def people() -> Plan:
    return plan_alone(load({"entities.yaml": PEOPLE, "person.yaml": TREE}), slots=20)


def explained(plan: Plan, product: str) -> str:
    return "\n".join(explanation_lines(explain(plan, plan.products[product])))


def test_explain_prints_the_access_paths_of_the_example() -> None:
    assert (
        explained(plan_alone(load(EXAMPLE), slots=20), "user_profile")
        == """\
user_profile, version 1: a document for each user, by email
  topic user_profile; rebuilt when email, id, username of user changes
  starred_repos: many star on username = user.username
    down  Query GSI_1 = <user.username>, shared; the same request answers pull_requests
    up    Query GSI_1 = <star.username> AND begins_with(GSI_SK, 'user#'), pinned
    repo: one repo on owner = star.repo_owner, name = star.repo_name (join: not shown itself)
      down  BatchGetItem PK = 'TABLE#repo' AND SK = <star.repo_owner>#<star.repo_name>
      up    Query GSI_2 = <repo.owner>#<repo.name> AND begins_with(GSI_SK, 'star#'), pinned
  pull_requests: many pull_request on author = user.username
    down  Query GSI_1 = <user.username>, shared; the same request answers starred_repos
    up    Query GSI_1 = <pull_request.author> AND begins_with(GSI_SK, 'user#'), pinned
  payment_verified: one payment_info on user_id = user.id
    down  Query GSI_1 = <user.id> AND begins_with(GSI_SK, 'payment_info#'), pinned
    up    Query GSI_2 = <payment_info.user_id> AND begins_with(GSI_SK, 'user#'), pinned
one document, where every join finds one row: 2 BatchGetItem, 2 Query (keys go out 100 to a request)"""
    )


def test_explain_prints_self_joins_shards_and_requests_that_siblings_share() -> None:
    assert (
        explained(people(), "persons")
        == """\
persons, version 1: a document for each person, by id
  topic persons; rebuilt when boss, city, id of person changes
  city: one city on name = person.city (join: not shown itself)
    down  BatchGetItem PK = 'TABLE#city' AND SK = <person.city>
    up    Query GSI_1 = <city.name> AND begins_with(GSI_SK, 'person#'), pinned
  boss: one person on id = person.boss
    down  BatchGetItem PK = 'TABLE#person#<shard>' AND SK = <person.boss>
    up    Query GSI_2 = <person.id> AND begins_with(GSI_SK, 'person#'), pinned
  reports: many person on boss = person.id
    down  Query GSI_2 = <person.id> AND begins_with(GSI_SK, 'person#'), pinned; the same request answers others
    up    no request: the key of the person is known
  others: many person on boss = person.id
    down  Query GSI_2 = <person.id> AND begins_with(GSI_SK, 'person#'), pinned; the same request answers reports
    up    no request: the key of the person is known
one document, where every join finds one row: 2 BatchGetItem, 1 Query (keys go out 100 to a request)"""
    )


def test_explain_prints_filters_and_required_joins() -> None:
    product = "product: p\nroot: person\nwhere: city = 'Oslo'\nfields: [id]\nembed: {boss: {one: person, on: {id: boss}, where: "
    product += "city is null, required: true, fields: [id]}}\n"
    text = explained(plan_alone(load({"entities.yaml": PEOPLE, "p.yaml": product}), slots=20), "p")
    assert "a document for each person where city = 'Oslo', by id\n" in text
    assert "\n  boss: one person on id = person.boss where city is null, required\n" in text


def test_explain_counts_the_requests_that_a_document_takes() -> None:
    trial = trial_of(people(), {"id": 1, "boss": 2, "city": "Rome"}, {"id": 2, "boss": 2, "city": "Oslo"})
    before = trial.store.requests.copy()
    product = trial.plan.products["persons"]
    StepRunner(store=trial.store).run([lineage(trial.plan, product, "1", {})])
    requests = trial.store.requests - before
    requests["BatchGetItem"] -= 1  # lineage reads the rows again for their versions
    assert dict(requests) == explain(trial.plan, product).requests


def test_an_error_about_an_unknown_product_names_the_nearest_product() -> None:
    with pytest.raises(PlanError, match="there is no product `persom`; did you mean 'persons'"):
        product_of(people(), "persom")


def trial_of(plan: Plan, *rows: dict[str, object]) -> Trial:
    """A trial that has processed these people in one batch."""
    trial = Trial(plan=plan, settings=Settings())
    keys = [canonical_json.encode({"id": row["id"]}) for row in rows]
    trial.batch(
        Record(topic="person", partition=0, offset=n, epoch=1, key=key, value=canonical_json.encode(row))
        for n, (key, row) in enumerate(zip(keys, rows, strict=True))
    )
    return trial


def test_a_product_with_a_gate_says_what_its_documents_wait_for() -> None:
    files = {
        "entities.yaml": "user: {key: [id], columns: {id: int}}",
        "p.yaml": "{product: p, root: user, publish: {quiet: 2 s, every: 5 min}}",
    }
    plan = plan_alone(load(files), slots=1)
    lines = list(explanation_lines(explain(plan, plan.products["p"])))
    assert lines[2] == "  a document waits at its gate: quiet 2 s, every 5 min, at_most 5 min"


EXAMPLES = Path(__file__).parents[4] / "examples"


def diagram(definitions: dict[str, str], product: str) -> list[str]:
    plan = plan_alone(load(definitions), slots=20)
    return list(mermaid_lines(plan, plan.products[product]))


def test_each_join_is_an_arrow_and_a_join_that_is_not_shown_a_dotted_one() -> None:
    assert diagram(read_directory(EXAMPLES / "github"), "user_profile") == [
        "flowchart LR",
        '    root["user_profile<br>a document for each user, by email"]',
        '    root -->|"starred_repos: many"| n0["star<br>username = user.username"]',
        '    n0 -.->|"repo: one"| n1["repo<br>owner = star.repo_owner, name = star.repo_name"]',
        '    root -->|"pull_requests: many"| n2["pull_request<br>author = user.username"]',
        '    root -->|"payment_verified: one"| n3["payment_info<br>user_id = user.id"]',
    ]


def test_signs_of_mermaid_in_names_are_written_as_their_codes() -> None:
    entities = "user:\n  key: [id]\n  columns: {id: int, 'a\"b': int}\npet:\n  key: [id]\n  columns: {id: int, '<br>&#`': int}\n"
    product = "product: p\nroot: user\nembed: {pets: {many: pet, on: {'<br>&#`': 'a\"b'}}}\n"
    assert diagram({"entities.yaml": entities, "p.yaml": product}, "p")[2] == (
        '    root -->|"pets: many"| n0["pet<br>#lt;br#gt;#amp;#35;#96; = user.a#quot;b"]'
    )


ENTITIES = """
user:
  key: [id]
  columns: {id: int, name: string, active: bool, city: string, tags: "string[]"}
order:
  key: [id]
  columns: {id: int, user_id: int, status: string, at: int}
city:
  key: [name]
  columns: {name: string, country: string}
tag:
  key: [name]
  columns: {name: string}
"""
PRODUCT = """
product: p
root: user
where: active
fields: [id, name]
embed:
  city: {one: city, on: {name: city}}
  first: {one: order, on: {user_id: id}, fields: [id]}
  orders: {many: order, on: {user_id: id}, where: status <> 'draft', order_by: [at], limit: 2, fields: [id, at]}
  tags: {many: tag, on: {name: "tags[]"}}
"""
ADA = {"id": 1, "name": "Ada", "active": True, "city": "Oslo", "tags": ["red", "blue"]}


class Job:
    """A trial that takes rows, and explains documents."""

    def __init__(self, product: str = PRODUCT) -> None:
        plan = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": product}), slots=20)
        self.trial = Trial(plan=plan, settings=Settings())
        self.offset = 0

    def takes(self, topic: str, value: dict[str, Any], *, deleted: bool = False) -> "Job":
        key = canonical_json.encode({name: value[name] for name in self.trial.plan.entities[topic].entity.key})
        body = None if deleted else canonical_json.encode(value)
        self.trial.batch([Record(topic=topic, partition=0, offset=self.offset, epoch=1, key=key, value=body)])
        self.offset += 1
        return self

    def explains(self, root: str) -> Lineage:
        plan = self.trial.plan
        (found,) = StepRunner(store=self.trial.store).run([lineage(plan, plan.products["p"], root, {})])
        return found

    def lines(self, root: str) -> list[str]:
        return list(lineage_lines(self.explains(root), {}))


def test_each_join_shows_what_it_looked_for_and_found_and_each_row_its_record() -> None:
    job = Job().takes("user", ADA).takes("city", {"name": "Oslo", "country": "NO"})
    job.takes("order", {"id": 7, "user_id": 1, "status": "open", "at": 5}).takes("tag", {"name": "blue"})
    assert job.lines("1") == [
        "user 1; topic user, partition 0, offset 0, epoch 1; by PK = 'TABLE#user' AND SK = '1'",
        "  city: one city, by PK = 'TABLE#city' AND SK = 'Oslo': 1 row",
        "    city Oslo; topic city, partition 0, offset 1, epoch 1",
        "  first: one order, by GSI_1 = '1' AND begins_with(GSI_SK, 'order#'): 1 row",
        "    order 7; topic order, partition 0, offset 2, epoch 1",
        "  orders: many order, by GSI_1 = '1' AND begins_with(GSI_SK, 'order#'): 1 row",
        "    order 7; topic order, partition 0, offset 2, epoch 1",
        "  tags: many tag, by PK = 'TABLE#tag' AND SK = 'red', PK = 'TABLE#tag' AND SK = 'blue': 1 row",
        "    tag blue; topic tag, partition 0, offset 3, epoch 1",
    ]
    assert job.explains("1").reason == ""


def test_a_row_that_where_or_limit_or_one_leaves_out_says_why() -> None:
    job = Job().takes("user", ADA)
    for number, status in enumerate(["draft", None, "open", "open", "open"], start=1):
        job.takes("order", {"id": number, "user_id": 1, "status": status, "at": number})
    orders = next(join for join in job.explains("1").root.joins if join.name == "orders")  # type: ignore[union-attr]
    assert [(row.key, row.left_out) for row in orders.rows] == [
        ("3", ""),
        ("4", ""),
        ("5", "`limit: 2` ends the list before it"),
        ("1", "`where: status <> 'draft'` is false"),
        ("2", "`where: status <> 'draft'` is null, because status is null"),
    ]
    lines = job.lines("1")
    assert "  orders: many order, by GSI_1 = '1' AND begins_with(GSI_SK, 'order#'): 5 rows, 3 left out" in lines
    assert "      left out: `where: status <> 'draft'` is false" in lines
    assert lines.count("      left out: a `one` shows the first row only") == 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            [],
            "the table has no row user 1: no record of it came from topic user, `statestore dead-letters list` has it, or",
        ),
        ([ADA, None], "the row user 1 is deleted, by the record at topic user, partition 0, offset 1, epoch 1"),
        ([ADA | {"active": False}], "the row of the root is stored, but `where: active` is false"),
        (
            [ADA | {"active": None}],
            "the row of the root is stored, but `where: active` is null, because active is null",
        ),
    ],
)
def test_a_missing_document_has_a_reason_of_its_own(changes: list[dict[str, Any] | None], reason: str) -> None:
    job = Job()
    for change in changes:
        job.takes("user", change or ADA, deleted=change is None)
    assert job.explains("1").reason.startswith(reason)


def test_a_list_of_several_joins_says_which_rows_its_limit_leaves_out() -> None:
    product = """
    product: p
    root: city
    fields: [name]
    embed:
      orders:
        many: order
        through: {many: user, on: {city: name}}
        on: {user_id: id}
        order_by: [-at]
        limit: 2
        fields: [id]
    """
    job = Job(dedent(product)).takes("city", {"name": "Oslo"})
    job.takes("user", ADA).takes("user", {**ADA, "id": 2})
    for number in range(1, 5):
        job.takes("order", {"id": number, "user_id": number % 2 + 1, "at": number})
    (users,) = job.explains("Oslo").root.joins  # type: ignore[union-attr]
    orders = [row for user in users.rows for join in user.joins for row in join.rows]
    cut = "`limit: 2` ends the list before it"
    assert {row.key: row.left_out for row in orders} == {"4": "", "3": "", "2": cut, "1": cut}


def test_a_null_of_an_aggregate_is_no_cause_and_that_of_a_one_is() -> None:
    product = "product: p\nroot: user\nwhere: sum(orders.at) > 1 and city.country <> 'NO'\njoin:\n"
    product += "  orders: {many: order, on: {user_id: id}}\n  city: {one: city, on: {name: city}}\n"
    job = Job(product).takes("user", ADA).takes("city", {"name": "Oslo", "country": None})
    assert job.explains("1").reason.endswith(" is null, because city.country is null")
    job.takes("city", {"name": "Oslo", "country": "SE"})
    assert job.explains("1").reason.endswith("and city.country <> 'NO'` is null")


def test_a_required_join_without_a_row_that_counts_is_named() -> None:
    product = (
        "product: p\nroot: user\nembed: {orders: {many: order, on: {user_id: id}, where: at > 3, required: true}}\n"
    )
    job = Job(product).takes("user", ADA).takes("order", {"id": 1, "user_id": 1, "status": "open", "at": 2})
    assert job.explains("1").reason == (
        "the row of the root is stored, but the required join `orders` has no row that counts"
    )
    assert "      left out: `where: at > 3` is false" in job.lines("1")


@pytest.mark.parametrize(
    "example", ["orders", "person", "playlists", "timeline", "github_products", "sales", "masked", "categories"]
)
def test_exactly_the_roots_without_a_document_have_a_reason(example: str) -> None:
    directory = Path(__file__).parents[4] / "examples" / example
    plan = plan_alone(load(read_directory(directory)), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    trial.batch(read_records(str(directory / "topics.jsonl")))
    runner = StepRunner(store=trial.store)
    for product in plan.products.values():
        entity = plan.entities[product.product.root]
        roots = [item["SK"] for partition in entity.partitions() for item in trial.store.partition(partition)]
        bodies = runner.run([encoded_document(plan, product, root, Counter()) for root in roots])
        found = runner.run([lineage(plan, product, root, {}) for root in roots])
        assert [one.reason == "" for one in found] == [body.value is not None for body in bodies]
        assert all(bool(list(lineage_lines(one, {}))) == (one.root is not None) for one in found)


def test_a_join_that_looks_for_nothing_names_the_null_column() -> None:
    job = Job().takes("user", ADA | {"city": None, "tags": []})
    lines = job.lines("1")
    assert "  city: one city, looks for nothing: no row; `city` of the user is null" in lines
    assert "  tags: many tag, looks for nothing: no row; `tags` has no elements" in lines
    assert "  without a value: city (null since offset 0 or longer)" in lines


def test_a_key_read_that_finds_a_deleted_row_says_so() -> None:
    oslo = {"name": "Oslo", "country": "NO"}
    job = Job().takes("user", ADA).takes("city", oslo).takes("city", oslo, deleted=True)
    line = next(line for line in job.lines("1") if line.startswith("  city: one city"))
    assert line.endswith(
        "SK = 'Oslo': no row; the row is deleted, by the record at topic city, partition 0, offset 2, epoch 1"
    )


def test_a_column_that_no_record_had_differs_from_a_null() -> None:
    job = Job().takes("user", ADA).takes("order", {"id": 1, "user_id": 1, "status": "open", "at": 1})
    entities, product = (
        ENTITIES.replace("at: int}", "at: int, note: string}"),
        PRODUCT.replace("[id, at]", "[id, note]"),
    )
    grown = plan_alone(load({"entities.yaml": entities, "p.yaml": product}), slots=20)
    (found,) = StepRunner(store=job.trial.store).run([lineage(grown, grown.products["p"], "1", {})])
    assert "      without a value: note (no record of the row had a value)" in list(lineage_lines(found, {}))


def test_rows_of_a_former_topic_name_that_topic() -> None:
    boundary = EpochBoundary(topic="old.user", topic_id="x", partition=0, from_offset=0, epoch=1, entity="user")
    topics = former_topics([boundary, replace(boundary, topic="user", epoch=2)])
    job = Job().takes("user", ADA)
    plan = job.trial.plan
    (found,) = StepRunner(store=job.trial.store).run([lineage(plan, plan.products["p"], "1", topics)])
    assert next(lineage_lines(found, {})).startswith("user 1; topic old.user, partition 0, offset 0, epoch 1;")
    came = {next(found.origins()): "2015-01-01"}
    assert "offset 0, epoch 1; came 2015-01-01; by PK" in next(lineage_lines(found, came))


def test_the_text_shows_the_first_rows_that_a_join_leaves_out() -> None:
    job = Job().takes("user", ADA)
    for number in range(LEFT_OUT + 3):
        job.takes("order", {"id": number, "user_id": 1, "status": "draft", "at": 1})
    lines = job.lines("1")
    assert lines.count("      left out: `where: status <> 'draft'` is false") == LEFT_OUT
    assert "    and 3 more rows that are left out" in lines

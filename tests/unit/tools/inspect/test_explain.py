"""The access paths of a product, and its tree as a Mermaid diagram."""

from pathlib import Path

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, product_of
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.explain import explain, explanation_lines, lineage, mermaid_lines
from processor.values import canonical_json
from processor.values.record import Record

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

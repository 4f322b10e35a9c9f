"""The tree of a product as a Mermaid diagram."""

from pathlib import Path

from processor.definitions.load import load, read_directory
from processor.inspect.explain import mermaid_lines
from processor.plan.planning import plan_alone

EXAMPLES = Path(__file__).parents[3] / "examples"


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

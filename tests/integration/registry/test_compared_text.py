"""Columns that say how their text compares, in the database: products wait for slots of folded text."""

from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from registry.model import SlotPath
from registry.repository import Registry

PLAIN = """
country: {key: [code], columns: {code: string, name: string}}
customer: {key: [id], columns: {id: int, country: string, tags: "string[]"}}
"""
FOLDED = PLAIN.replace("code: string", "code: {type: string, compare: [ci, trimmed]}")
PRODUCT = """
product: customers
root: customer
embed:
  home: {one: country, on: {code: country}, value: name}
  tagged: {many: country, on: {code: "tags[]"}, value: name}
"""


def definitions(entities: str) -> Definitions:
    return load({"entities.yaml": entities, "product.yaml": PRODUCT})


def apply(registry: Registry, entities: str) -> None:
    given = definitions(entities)
    registry.apply(requirements_of(given), who="me", why="test", check=check_after(given, "rejects"))


def test_a_job_reads_slots_and_edges_of_folded_text_as_they_were_applied(registry: Registry) -> None:
    apply(registry, FOLDED)
    compiled = plan_of(registry.snapshot())
    assert compiled.entities["country"].slots == {1: ("code::ci+trimmed",)}
    assert {**compiled.entities["customer"].edges} == {"tags[]::ci+trimmed": ("tags[]::ci+trimmed",)}
    assert registry.apply(requirements_of(definitions(FOLDED)), who="me", why="again").changes == ()


def test_a_live_product_compares_as_before_until_its_next_version_has_its_slots(registry: Registry) -> None:
    apply(registry, PLAIN)
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, registry.snapshot().version)
    apply(registry, FOLDED)
    found = registry.snapshot()
    assert [(one.version, one.definition.get("compare")) for one in (*found.products, *found.waiting)] == [
        (1, None),
        (2, {"country": {"code": ["ci", "trimmed"]}}),
    ]
    home, tagged = plan_of(found).products["customers"].nodes
    assert (home.child_columns, tagged.parent_columns) == (("code",), ("tags[]",))
    assert not isinstance(home.down, SlotPath)

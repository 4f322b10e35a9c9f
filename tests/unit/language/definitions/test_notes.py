"""Descriptions and owners: readers of the files see them, and no registry does."""

from collections.abc import Mapping
from pathlib import Path

from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Note
from processor.tools.inspect.preview import preview
from processor.tools.source.draft import DraftColumn, DraftEntity, entities_text
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import Snapshot

EXAMPLE = read_directory(Path(__file__).parents[4] / "examples" / "orders")
EMPTY = Snapshot(version=0, slots=20, entities=(), products=(), assignments=(), joins=())


def described(texts: Mapping[str, str]) -> dict[str, str]:
    """The example with an owner and a description of an entity, of a column, and of each product."""
    entities = texts["entities.yaml"].replace("customer:\n", "customer:\n  owner: sales\n  description: who buys\n", 1)
    entities = entities.replace("name: string", "name: {type: string, description: in full}", 1)
    others = {name: f"{text}owner: crew\ndescription: |\n  an order\n  and its lines\n" for name, text in texts.items()}
    return {**others, "entities.yaml": entities}


def test_authors_describe_entities_columns_and_products() -> None:
    found = load(described(EXAMPLE))
    assert found.entity_notes["customer"] == Note(description="who buys", owner="sales", columns={"name": "in full"})
    assert found.product_notes["order_enriched"] == Note(description="an order\nand its lines", owner="crew")


def test_an_edit_of_words_is_no_change_for_the_registry_and_no_new_version() -> None:
    plain, worded = load(EXAMPLE), load(described(EXAMPLE))
    stored = edited(EMPTY, apply(EMPTY, requirements_of(plain), frozenset()))
    has_run = frozenset(plain.entities)
    assert requirements_of(worded) == requirements_of(plain)
    assert preview(worded, stored, has_run).changes == ()
    assert not apply(stored, requirements_of(worded), has_run).changes


def test_a_product_given_as_sql_has_words_too() -> None:
    sql = "product: p\nowner: crew\ndescription: all\nsql: select u.id from users u\n"
    found = load({"entities.yaml": "users: {key: [id], columns: {id: int}}", "p.yaml": sql})
    assert found.product_notes == {"p": Note(description="all", owner="crew")}


def test_comments_of_a_source_become_descriptions() -> None:
    column = DraftColumn("decimal(12,2)", "maybe", 'in "euro": {net},\nno tax # yet')
    draft = DraftEntity(
        name="on", topic="t", key=("id",), columns={"id": DraftColumn("int"), "no": column}, comment="a: b"
    )
    text = entities_text([draft], ["# header"])
    note = load({"entities.yaml": text}).entity_notes["on"]
    assert note == Note(description="a: b", columns={"no": 'in "euro": {net}, no tax # yet'})
    assert "  # guess: maybe\n" in text

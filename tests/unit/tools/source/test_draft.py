"""Drafted products: the joins that lead to rows of the root, and none that lead to rows of others. The differences between
entities.yaml and what the source shows now."""

import pytest

from processor.language.definitions.load import load
from processor.language.product.product import Join
from processor.tools.source.draft import (
    DraftColumn,
    DraftEntity,
    ForeignKey,
    drift_lines,
    entities_text,
    product_name,
    product_text,
)


def table(name: str, **parents: str) -> DraftEntity:
    """A table whose columns refer to the key `id` of other tables."""
    columns = {"id": DraftColumn("int"), **{column: DraftColumn("int") for column in parents}}
    keys = tuple(ForeignKey(columns=(c,), parent=parent, parent_columns=("id",)) for c, parent in parents.items())
    return DraftEntity(name=name, topic=name, key=("id",), columns=columns, references=keys)


def paths(tables: list[DraftEntity], root: str, depth: int) -> list[str]:
    """The joins of the draft as paths, each join to a list with `*`."""
    texts = {"entities.yaml": entities_text(tables, ["# top"]), "p.yaml": product_text(tables, root, depth, ["# top"])}
    product = load(texts).products[product_name(root)]

    def walk(joins: tuple[Join, ...], above: str) -> list[str]:
        found = []
        for join in joins:
            at = f"{above}{join.name}{'*' * join.many}"
            found += [at, *walk(join.joins, f"{at}.")]
        return found

    return walk(product.joins, "")


def test_a_draft_goes_down_and_then_up_and_never_down_again() -> None:
    mail = [
        table("shop"),
        table("customer"),
        table("orders", customer_id="customer", shop_id="shop"),
        table("mail", shop_id="shop", customer_id="customer"),
    ]
    assert paths(mail, "customer", 5) == ["orders*", "orders*.shop", "mail*", "mail*.shop"]


def test_a_root_that_refers_to_a_row_has_no_list_of_its_siblings() -> None:
    employees = [table("region"), table("company", region_id="region"), table("person", company_id="company")]
    assert paths(employees, "person", 4) == ["company", "company.region"]


def test_two_lists_over_the_same_parent_stay_lists_of_the_root() -> None:
    library = [
        table("author"),
        table("book", author_id="author"),
        table("reader"),
        table("loan", book_id="book", reader_id="reader"),
        table("review", book_id="book", reader_id="reader"),
    ]
    assert paths(library, "reader", 4) == [
        "loan*", "loan*.book", "loan*.book.author", "review*", "review*.book", "review*.book.author",
    ]  # fmt: skip
    assert paths(library, "author", 4) == [
        "book*", "book*.loan*", "book*.loan*.reader", "book*.review*", "book*.review*.reader",
    ]  # fmt: skip


def test_a_table_that_refers_to_itself_shows_its_parents_or_its_children_and_no_siblings() -> None:
    folders = [table("folder", parent_id="folder"), table("file", folder_id="folder")]
    assert paths(folders, "folder", 2) == [
        "folder", "folder_by_parent_id*", "folder_by_parent_id*.file*", "file*",
    ]  # fmt: skip


DECLARED = load(
    {
        "entities.yaml": "user: {topic: app.user, key: [id], columns: {id: int, name: string, weight: decimal, extra: json}}\n"
        "other: {topic: b.other, key: [id], columns: {id: int}}\n"
    }
).entities
COLUMNS = {"id": "int", "name": "string", "weight": "int", "extra": "string"}


def user(key: str = "id", **columns: str) -> DraftEntity:
    drafts = {name: DraftColumn(text) for name, text in (COLUMNS | columns).items() if text != "gone"}
    return DraftEntity(name="user", topic="app.user", key=(key,), columns=drafts)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (user(), []),
        (user(phone="string"), ["  user:", "+     phone: string"]),
        (user(name="gone"), ["  user:", "-     name: string"]),
        (user(name="int"), ["  user:", "!     name: string here, int in the source"]),
        (user(weight="decimal(12,2)"), []),
        (user(weight="int[]"), ["  user:", "!     weight: decimal here, int[] in the source"]),
        (user(extra="int[]"), []),
        (user(key="name"), ["  user:", "!   key: [id] here, [name] in the source"]),
    ],
)
def test_each_difference_is_a_line(found: DraftEntity, lines: list[str]) -> None:
    assert drift_lines(DECLARED, [found], whole=["app."]) == lines


def test_a_new_table_is_a_block_to_paste_and_a_lost_one_is_named() -> None:
    new = DraftEntity(name="order", topic="app.order", key=("id",), columns={"id": DraftColumn("int")})
    assert drift_lines(DECLARED, [new], whole=["app."]) == [
        "+ order:", "+   topic: app.order", "+   key: [id]", "+   columns:", "+     id: int",
        "- user: the source has no table for topic app.user",
    ]  # fmt: skip


def test_a_sample_of_records_proves_nothing_gone() -> None:
    assert drift_lines(DECLARED, [user(name="gone")], whole=[]) == []
    assert drift_lines(DECLARED, [], whole=[]) == []


def test_a_guess_is_no_difference() -> None:
    guessed = DraftEntity(name="user", topic="app.user", key=("id",), columns={"name": DraftColumn("int", "by values")})
    assert drift_lines(DECLARED, [guessed], whole=[]) == []

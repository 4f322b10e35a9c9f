"""Valid definitions: what `load` makes of them, in YAML and JSON, and which files `read_directory` reads."""

import json
from pathlib import Path

import pytest

from processor.language.definitions.load import load, read_directory
from processor.language.definitions.problems import DefinitionError
from processor.language.product.expressions.expression import Column
from processor.language.product.product import BareValue, Definitions, Fields, Join, OrderTerm, Product, WholeRow
from processor.values.entity import ColumnType, Entity

EXAMPLE = Path(__file__).parents[4] / "examples" / "github"
USER = "user: {key: [id], columns: {id: int, boss: int, name: string}}\n"


def load_product(text: str, entities: str = USER) -> Product:
    return next(iter(load({"entities.yaml": entities, "p.yaml": text}).products.values()))


def test_the_example_is_read_as_its_author_means_it() -> None:
    found = load(read_directory(EXAMPLE))
    assert list(found.entities) == ["user", "repo", "pull_request", "star", "payment_info"]
    assert found.entities["star"] == Entity(
        name="star",
        topic="star",
        key=("username", "repo_name", "repo_owner"),
        columns={
            "username": ColumnType(name="string"),
            "repo_name": ColumnType(name="string"),
            "repo_owner": ColumnType(name="string"),
            "created_at": ColumnType(name="timestamp"),
        },
    )
    repo = Join(
        name="repo",
        entity="repo",
        many=False,
        shown=False,
        on=(("owner", "repo_owner"), ("name", "repo_name")),
    )
    newest = (OrderTerm(by=Column(name="created_at"), descending=True),)
    described = ("description", Column(name="description", path=("repo",)))
    starred = Join(
        name="starred_repos",
        entity="star",
        many=True,
        shown=True,
        on=(("username", "username"),),
        order_by=newest,
        selection=Fields(
            members=(("owner", Column(name="repo_owner")), ("name", Column(name="repo_name")), described),
        ),
        joins=(repo,),
    )
    pull_columns = ("repo", "repo_owner", "index", "title", "status", "created_at")
    pulls = Join(
        name="pull_requests",
        entity="pull_request",
        many=True,
        shown=True,
        on=(("author", "username"),),
        order_by=newest,
        limit=1000,
        selection=Fields(members=tuple((name, Column(name=name)) for name in pull_columns)),
    )
    payment = Join(
        name="payment_verified",
        entity="payment_info",
        many=False,
        shown=True,
        on=(("user_id", "id"),),
        selection=BareValue(expression=Column(name="verified")),
    )
    assert found.products == {
        "user_profile": Product(
            name="user_profile",
            topic="user_profile",
            root="user",
            selection=Fields(members=(("email", Column(name="email")), ("username", Column(name="username")))),
            joins=(starred, pulls, payment),
        )
    }


def test_neither_fields_nor_value_selects_the_whole_row() -> None:
    assert load_product("{product: p, root: user, topic: t.p}") == Product(
        name="p", topic="t.p", root="user", selection=WholeRow(), joins=()
    )


def test_joins_nest_to_any_depth_and_paths_go_through_one_joins_of_the_level() -> None:
    product = load_product("""
        product: p
        root: user
        join: {up: {one: user, on: {id: boss}, join: {up: {one: user, on: {id: boss}}}}}
        fields: {name: name, grandboss: up.up.name}
        embed:
          down: {many: user, on: {boss: id}, order_by: name, embed: {down: {many: user, on: {boss: id}}}}
    """)
    assert product.selection == Fields(
        members=(("name", Column(name="name")), ("grandboss", Column(name="name", path=("up", "up"))))
    )
    assert [(above, join.name, join.many, join.shown) for above, join in product.walk()] == [
        ("user", "up", False, False),
        ("user", "up", False, False),
        ("user", "down", True, True),
        ("user", "down", True, True),
    ]
    assert product.joins[1].order_by == (OrderTerm(by=Column(name="name")),)


def test_expressions_name_an_embedded_one_like_a_join() -> None:
    product = load_product(
        "{product: p, root: user, fields: {b: boss.name}, embed: {boss: {one: user, on: {id: boss}}}}"
    )
    assert product.selection == Fields(members=(("b", Column(name="name", path=("boss",))),))


def test_a_list_of_fields_names_columns_even_where_a_join_has_that_name() -> None:
    product = load_product("{product: p, root: user, fields: [boss], join: {boss: {one: user, on: {id: boss}}}}")
    assert product.selection == Fields(members=(("boss", Column(name="boss")),))


def test_a_name_that_is_not_an_identifier_is_written_in_double_quotes() -> None:
    entities = "t: {key: [id], columns: {id: int, order-id: int, 'a\"b.c': int, größe: int}}"
    product = load_product(
        """{product: p, root: t, fields: {a: '"order-id"', b: '"a""b.c"', c: größe, order-id: id}}""", entities
    )
    names = [column.name for _, column in product.selection.members]  # type: ignore[union-attr]
    assert names == ["order-id", 'a"b.c', "größe", "id"]


def test_fields_may_be_empty_where_there_are_embeds() -> None:
    product = load_product("{product: p, root: user, fields: [], embed: {b: {one: user, on: {id: boss}}}}")
    assert product.selection == Fields(members=())


def test_an_anchor_is_read_at_each_use() -> None:
    product = load_product("""
        product: p
        root: user
        fields: []
        embed:
          a: {many: user, on: &on {boss: id}}
          b: {many: user, on: *on}
    """)
    assert [join.on for join in product.joins] == [(("boss", "id"),)] * 2


@pytest.mark.parametrize("indent", [None, "\t", 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_is_yaml(indent: str | int | None, ascii_only: bool) -> None:
    entities = {"t": {"key": ["id"], "columns": {"id": "int", "😀/\\": "string"}}}
    product = {"product": "p", "root": "t", "fields": {"🙂": '"😀/\\"'}}
    dumps = [json.dumps(value, indent=indent, ensure_ascii=ascii_only) for value in (entities, product)]
    found = load({"entities.yaml": dumps[0], "products/p.json": dumps[1].replace("/", "\\/")})
    assert found.products["p"].selection == Fields(members=(("🙂", Column(name="😀/\\")),))


def test_products_have_the_order_of_their_file_names() -> None:
    files = {"products/a.yaml": "{product: z, root: user}", "b.yaml": "{product: y, root: user}"}
    found = load({**files, "entities.yaml": USER, "a.yml": "{product: x, root: user}"})
    assert list(found.products) == ["x", "y", "z"]


def test_a_directory_is_its_definition_files_and_those_under_products(tmp_path: Path) -> None:
    definition_files = ["a.json", "b.yml", "entities.yaml", "products/c.yaml"]
    for name in [
        *definition_files,
        "README.md",
        ".hidden.yaml",
        "products/deeper/d.yaml",
        "tests/e.yaml",
        "events.jsonl",
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "b.yml").write_bytes(b"\xef\xbb\xbfb.yml")  # a byte order mark is not part of the text
    assert read_directory(tmp_path) == {name: name for name in definition_files}


def test_an_unreadable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DefinitionError, match="none: the directory cannot be read: No such file or directory; give"):
        read_directory(tmp_path / "none")
    with pytest.raises(DefinitionError, match="file: the directory cannot be read: Not a directory; give"):
        read_directory(tmp_path / "file")


def test_all_files_that_are_not_text_are_reported(tmp_path: Path) -> None:
    (tmp_path / "entities.yaml").write_bytes(b"a: \xff")
    (tmp_path / "p.yaml").symlink_to(tmp_path / "gone")
    with pytest.raises(DefinitionError) as caught:
        read_directory(tmp_path)
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/entities.yaml: the file is not UTF-8 (byte 3); save it as UTF-8",
        f"{tmp_path}/p.yaml: the file cannot be read: No such file or directory; make it readable, or remove it",
    ]


def test_a_directory_without_products_is_valid() -> None:
    assert load({"entities.yaml": USER}) == Definitions(
        entities={
            "user": Entity(
                name="user",
                topic="user",
                key=("id",),
                columns={
                    "id": ColumnType(name="int"),
                    "boss": ColumnType(name="int"),
                    "name": ColumnType(name="string"),
                },
            )
        },
        products={},
    )


def test_an_entity_has_as_many_columns_as_one_write_holds() -> None:
    def wide(count: int) -> dict[str, str]:
        columns = "".join(f"    c{number}: int\n" for number in range(count))
        return {"entities.yaml": f"wide:\n  key: [c0]\n  columns:\n{columns}"}

    assert len(load(wide(300)).entities["wide"].columns) == 300
    with pytest.raises(DefinitionError) as caught:
        load(wide(301))
    assert str(caught.value) == (
        "entities.yaml:4: entity `wide` declares 301 columns; one write holds 300 at most; "
        "declare only the columns that products use; the job stores the others undeclared"
    )

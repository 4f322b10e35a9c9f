"""A definitions file runs nothing, reads no other file, and takes bounded time and memory. Its SQL is one query."""

import os
from pathlib import Path

import pytest
import sqlglot
from sqlglot import expressions as exp

from processor.language.definitions.load import load, read_directory
from processor.language.definitions.problems import DefinitionError
from processor.language.product.sql_printer import product_sql, table_ddl

ENTITIES = "t: {key: [id], columns: {id: int, s: string}}"
INJECTIONS = [
    "x'; drop table t; --",
    'x"; drop table t; --',
    "x\\'; drop table t; --",
    "$$; drop table t; $$",
    "/* x */ '' --",
]


def error_of(product: str, entities: str = ENTITIES) -> str:
    with pytest.raises(DefinitionError) as error:
        load({"entities.yaml": entities, "p.yaml": product})
    return str(error.value)


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.mkdir", "!!python/name:os.mkdir", "!include", "!!binary", "!ENV"]
)
def test_a_tag_of_yaml_runs_nothing(tag: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    error_of(f"{{product: p, root: {tag} [{made}]}}")
    assert not made.exists()


def test_a_definition_reads_no_variable() -> None:
    os.environ.setdefault("HOME", "/home")
    assert "$HOME" in error_of("{product: p, root: '${HOME} $HOME'}")


@pytest.mark.parametrize(
    "where",
    [
        "(" * 5_000 + "1 = 1" + ")" * 5_000,
        "not " * 5_000 + "true",
        " || ".join(["s"] * 3) + "(" * 300 + " = 's'",
        "case when " * 500 + "true" + " then 1 end" * 500,
        "-" * 5_000 + "1 = 1",
    ],
)
def test_an_expression_that_is_too_deep_or_wrong_is_an_error(where: str) -> None:
    assert len(error_of(f"product: p\nroot: t\nwhere: {where!r}\n")) < 10_000


@pytest.mark.parametrize(
    "where",
    ["pg_sleep(10) is null", "pg_read_file('/etc/passwd') = s", "s = (select 1)", "current_setting('x') = s", "random() < 1",
     "dblink('x', 'y') is null", "s = 'x'; drop table t", "lo_import('/etc/passwd') > 0", "now() is null", "version() = s"],
)  # fmt: skip
def test_an_expression_calls_only_the_functions_of_the_catalogue(where: str) -> None:
    assert error_of(f"product: p\nroot: t\nwhere: {where!r}\n")


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_text_leaves_its_quotes_in_the_sql_of_a_product(text: str) -> None:
    """Column names, member names and literals. The parser is not ours."""
    quoted = "'" + text.replace("'", "''") + "'"
    yaml_text = "'" + text.replace("'", "''") + "'"
    expression = "'" + f"s = {quoted}".replace("'", "''") + "'"
    loaded = load({
        "entities.yaml": f"t: {{key: [id], columns: {{id: int, s: string, {yaml_text}: string}}}}",
        "p.yaml": f"product: p\nroot: t\nwhere: {expression}\nfields: {{{yaml_text}: s}}\n",
    })  # fmt: skip
    query = product_sql(loaded.products["p"], loaded.entities)
    (parsed,) = sqlglot.parse(query, read="postgres")
    assert isinstance(parsed, exp.Query)
    assert text in {found.this for found in parsed.find_all(exp.Literal)}
    assert {found.name for found in parsed.find_all(exp.Table)} <= {"t", ""}
    (made,) = sqlglot.parse(table_ddl(loaded.entities["t"]), read="postgres")
    assert isinstance(made, exp.Create)
    assert text in {found.name for found in made.find_all(exp.ColumnDef)}


@pytest.mark.parametrize("name", [*INJECTIONS, "../x", "a,b", "a b", "é", "\x1b[2J", "a" * 250])
def test_no_topic_and_no_product_has_a_name_that_another_program_reads_otherwise(name: str) -> None:
    quoted = "'" + name.replace("'", "''") + "'" if name.isprintable() else '"\\e[2J"'
    assert "topic" in error_of(f"{{product: p, root: t, topic: {quoted}}}")
    if name != "é" and name != "a" * 250:
        assert error_of(f"{{product: {quoted}, root: t}}")


def test_a_link_in_the_directory_leads_to_text_that_must_be_a_definition(tmp_path: Path) -> None:
    (tmp_path / "entities.yaml").write_text(ENTITIES)
    (tmp_path / "p.yaml").symlink_to("/etc/passwd")
    with pytest.raises(DefinitionError, match=r"p.yaml:\d+: "):
        load(read_directory(tmp_path))


@pytest.mark.rest
@pytest.mark.parametrize(
    ("term", "table", "wrong"),
    [
        ("id, x + x as x", "a{}", "grow with each use"),
        ("p.id, p.x", "a{0} p join a{0} q on q.id = p.id", "more than 200 tables"),
    ],
)
def test_a_query_that_doubles_with_each_name_of_with_is_refused(term: str, table: str, wrong: str) -> None:
    names = [f"a{n} as (select {term} from {table.format(n - 1)})" for n in range(1, 40)]
    query = "with a0 as (select id, id as x from t), " + ", ".join(names) + " select id, x from a39"
    with pytest.raises(DefinitionError, match=wrong):
        load({"entities.yaml": "t: {key: [id], columns: {id: int}}", "p.yaml": f"product: p\nsql: |\n  {query}"})

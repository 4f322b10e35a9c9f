"""How a source compares text: `init` drafts it, `doctor --source` and `init --check` name what is declared otherwise."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load, read_directory
from processor.tools.doctor.source import check_source
from processor.values.entity import Compare

TABLES = """
create type SCHEMA.citext;
create function SCHEMA.read(cstring) returns SCHEMA.citext as 'textin' language internal immutable strict;
create function SCHEMA.write(SCHEMA.citext) returns cstring as 'textout' language internal immutable strict;
create type SCHEMA.citext (input = SCHEMA.read, output = SCHEMA.write, like = pg_catalog.text, collatable = true);
create collation SCHEMA.folded (locale = 'C');
create collation SCHEMA.bare (locale = 'C');
update pg_collation set collprovider = 'i', collisdeterministic = false, collcollate = null, collctype = null,
  colllocale = case collname when 'bare' then 'und-u-ks-level1' else 'und-u-ks-level2' end
  where collnamespace = 'SCHEMA'::regnamespace;
create domain SCHEMA.padded as char(4);
create domain SCHEMA.mail as SCHEMA.citext;
create table SCHEMA.depot (
  id int primary key, code text collate SCHEMA.folded, zip char(5), part SCHEMA.padded, sizes char(2)[],
  town text collate SCHEMA.bare, plain text, n int, mail SCHEMA.mail, tag SCHEMA.citext
);
create table SCHEMA.parcel (id int primary key, depot text collate SCHEMA.folded, town text);
"""
"""The embedded server lacks citext and ICU: `create` takes what its catalogue then says of them."""
PLAIN = """
depot:
  source: SCHEMA.depot
  key: [id]
  columns:
    {id: int, tag: string, code: string, zip: {type: string, compare: trimmed}, town: {type: string, compare: ci}, plain: string}
parcel:
  source: SCHEMA.parcel
  key: [id]
  columns: {id: int, depot: {type: string, compare: ci}, town: string}
"""
PRODUCT = """
product: parcels
root: parcel
fields: [id]
embed: {depot: {one: depot, on: {code: depot}, value: plain}, near: {many: depot, on: {town: town}, value: plain}}
"""
SHOP = (
    "create database SHOP collate utf8mb4_general_ci",
    "create table SHOP.country (code char(2) primary key, name varchar(40) collate utf8mb4_bin, iso varbinary(3))",
    "create table SHOP.customer (id int primary key, country char(2), nick varchar(9) collate utf8mb4_unicode_nopad_ci, "
    "key_ varchar(9) collate utf8mb4_nopad_bin, kind enum('a'), body json, foreign key (country) references SHOP.country (code))",
)


def warnings(address: str, texts: dict[str, str]) -> list[str]:
    around: Any = SimpleNamespace(plan=plan_alone(load(texts), 5))
    return [one.text for one in check_source(address, around) if "compares" in one.text or "equal" in one.text]


def compares(directory: Path) -> dict[str, dict[str, Compare]]:
    entities = load(read_directory(directory)).entities
    return {
        name: {c: kind.compare for c, kind in one.columns.items() if kind.compare} for name, one in entities.items()
    }


def init(directory: Path, monkeypatch: pytest.MonkeyPatch, address: str, *words: str) -> int:
    monkeypatch.setenv("SOURCE", address)
    return main(["init", str(directory), "--database", "env:SOURCE", "--topic-prefix", "app", *words])


@pytest.fixture
def depots(psql: Engine, schema: str, postgres_url: str) -> str:
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}")
        connection.exec_driver_sql(TABLES.replace("SCHEMA", schema))
    return postgres_url.replace("+psycopg", "")


def test_init_drafts_how_columns_of_postgres_compare(
    tmp_path: Path, depots: str, schema: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path, monkeypatch, depots, "--schemas", schema) == 0
    assert compares(tmp_path) == {
        "depot": {
            "code": ("ci",),
            "zip": ("trimmed",),
            "part": ("trimmed",),
            "sizes": ("trimmed",),
            "town": ("ci",),
            "mail": ("ci",),
            "tag": ("ci",),
        },
        "parcel": {"depot": ("ci",)},
    }
    assert "    code: {type: string, compare: ci}" in (tmp_path / "entities.yaml").read_text()
    assert init(tmp_path, monkeypatch, depots, "--schemas", schema, "--check") == 0
    entities = (tmp_path / "entities.yaml").read_text()
    (tmp_path / "entities.yaml").write_text(entities.replace("{type: string, compare: trimmed}", "string"))
    capsys.readouterr()
    assert init(tmp_path, monkeypatch, depots, "--schemas", schema, "--check") == 1
    assert "!     zip: compare is [] here, trimmed in the source" in capsys.readouterr().out


def test_doctor_names_what_postgres_compares_otherwise(depots: str, schema: str) -> None:
    texts = {"entities.yaml": PLAIN.replace("SCHEMA", schema), "p.yaml": PRODUCT}
    expansions = "expansions, as ß and ss"
    assert warnings(depots, texts) == [
        f"{schema}.depot compares text in another way than entity depot: tag ci (citext), here as it is, code ci (folded), "
        "here as it is",
        f"{schema}.depot: folded of code also makes equal {expansions}; joins of products do not",
        f"{schema}.depot: bare of town also makes equal letters with and without accents, as é and e, and {expansions}; "
        "joins of products do not",
        f"{schema}.parcel: folded of depot also makes equal {expansions}; joins of products do not",
    ]


@pytest.fixture
def shop(mariadb_port: int) -> Iterator[str]:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}/equal"
    server = create_engine(address.replace("mysql", "mysql+pymysql").removesuffix("/equal"))
    with server.begin() as connection:
        for statement in SHOP:
            connection.exec_driver_sql(statement.replace("SHOP", "equal"))
    yield address
    with server.begin() as connection:
        connection.exec_driver_sql("drop database equal")
    server.dispose()


@pytest.mark.rest
def test_init_and_doctor_know_the_collations_of_mariadb(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert init(tmp_path, monkeypatch, shop, "--root", "customer") == 0
    assert compares(tmp_path) == {
        "country": {"code": ("ci", "trimmed"), "name": ("trimmed",)},
        "customer": {"country": ("ci", "trimmed"), "nick": ("ci",), "kind": ("ci", "trimmed"), "body": ("trimmed",)},
    }
    accents = "letters with and without accents, as é and e, and expansions, as ß and ss; joins of products do not"
    texts = read_directory(tmp_path)
    assert warnings(shop, texts) == [
        f"equal.country: utf8mb4_general_ci of code also makes equal {accents}",
        f"equal.customer: utf8mb4_general_ci of country also makes equal {accents}",
    ]
    entities = texts["entities.yaml"].replace("code: {type: string, compare: [ci, trimmed]}", "code: string")
    assert "code: string" in entities
    assert (
        "equal.country compares text in another way than entity country: code ci, trimmed (utf8mb4_general_ci), here as it is"
        in warnings(shop, {**texts, "entities.yaml": entities})
    )

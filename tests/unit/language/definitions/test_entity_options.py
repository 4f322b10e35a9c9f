"""The options of an entity: what they mean, and what is refused."""

import json

import pytest

from processor.language.definitions.describe import describe_entity
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.values.entity import DeleteFlag


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("ignored", "there is no choice `ignored` for `truncate`; did you mean 'ignore'?"),
        ("1", "`truncate` is `1`, not text; write one of refuse, ignore, delete"),
    ],
)
def test_another_choice_for_a_truncate_is_refused(choice: str, problem: str) -> None:
    text = f"user: {{key: [id], columns: {{id: int}}, truncate: {choice}}}"
    with pytest.raises(DefinitionError) as error:
        load({"entities.yaml": text})
    assert str(error.value) == f"entities.yaml:1: {problem}"


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("byte", "there is no choice `byte` for `decimals`; did you mean 'bytes'?"),
        ("{pric: text}", "entity `item` has no column `pric` for its `decimals`; did you mean 'price'?"),
        ("{price: txt}", "there is no choice `txt` for `decimals`; did you mean 'text'?"),
        (
            "{id: text}",
            "column `id` of entity `item` is int, which takes no text of numbers; "
            "name columns of type decimal or float in `decimals`",
        ),
        ("[text]", "`decimals` is a list, not text; write one of text, bytes"),
    ],
)
def test_another_form_of_decimals_is_refused(choice: str, problem: str) -> None:
    text = f"item: {{key: [id], columns: {{id: int, price: decimal}}, decimals: {choice}}}"
    with pytest.raises(DefinitionError) as error:
        load({"entities.yaml": text})
    assert str(error.value) == f"entities.yaml:1: {problem}"


def test_an_entity_says_the_form_of_all_its_decimals_or_of_some() -> None:
    text = "item: {key: [id], columns: {id: int, price: decimal, size: float}, decimals: %s}"
    assert load({"entities.yaml": text % "bytes"}).entities["item"].decimals == "bytes"
    found = load({"entities.yaml": text % "{price: bytes, size: text}"}).entities["item"]
    assert [found.decimal_form(name) for name in ("price", "size", "id")] == ["bytes", "text", None]


def test_an_entity_keeps_its_options_and_the_order_of_its_columns() -> None:
    text = """
        orders:
          topic: shop.public.orders
          format: flattened
          shards: 100
          key: [id, shop]
          columns:
            shop: string
            id: int
            price: decimal(12,2)
            at: timestamp(us)
            tags: string[]
            on: bool
            lines: "json[]"
    """
    entity = load({"entities.yaml": text}).entities["orders"]
    assert (entity.topic, entity.format, entity.shards) == ("shop.public.orders", "flattened", 100)
    assert entity.key == ("id", "shop")
    assert {name: str(column) for name, column in entity.columns.items()} == {
        "shop": "string",
        "id": "int",
        "price": "decimal(12,2)",
        "at": "timestamp(us)",
        "tags": "string[]",
        "on": "bool",
        "lines": "json[]",
    }
    assert list(entity.columns)[:2] == ["shop", "id"]


def test_an_entity_keeps_what_it_says_else_what_the_file_says() -> None:
    body = "{key: [id], columns: {id: int}%s}"
    text = f"keep: declared\nuser: {body % ''}\nitem: {body % ', keep: all'}\n"
    assert {name: one.keep for name, one in load({"entities.yaml": text}).entities.items()} == {
        "user": "declared",
        "item": "all",
    }
    assert load({"entities.yaml": f"user: {body % ''}"}).entities["user"].keep == "all"
    assert [*load({"entities.yaml": f"keep: {body % ''}"}).entities] == ["keep"]


def test_an_entity_has_its_own_transaction_topic_else_that_of_the_file() -> None:
    body = "{key: [id], columns: {id: int}%s}"
    text = f"transactions: app.transaction\nkeep: declared\nuser: {body % ''}\nitem: {body % ', transactions: b.tx'}\n"
    entities = load({"entities.yaml": text}).entities
    assert {name: one.transactions for name, one in entities.items()} == {"user": "app.transaction", "item": "b.tx"}
    described = {name: describe_entity(one) for name, one in entities.items()}
    assert load({"entities.yaml": json.dumps(described)}).entities == entities
    assert load({"entities.yaml": f"user: {body % ''}"}).entities["user"].transactions == ""
    assert [*load({"entities.yaml": f"transactions: {body % ''}"}).entities] == ["transactions"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("transactions: a b\nuser: {key: [id], columns: {id: int}}", "`a b` is not a valid Kafka topic name"),
        ("user: {key: [id], columns: {id: int}, transactions: []}", "`transactions` is an empty list"),
        ("transactions: user\nuser: {key: [id], columns: {id: int}}", "which entity `user` already has"),
        ("transactions: app.transaction", "the file has no entity"),
    ],
)
def test_a_wrong_transaction_topic_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        load({"entities.yaml": text})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("keep: used\nuser: {key: [id], columns: {id: int}}", "there is no choice `used` for `keep`"),
        ("user: {key: [id], columns: {id: int}, keep: declare}", "there is no choice `declare` for `keep`"),
        ("keep: declared", "the file has no entity"),
    ],
)
def test_another_choice_of_kept_columns_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        load({"entities.yaml": text})


def test_an_entity_says_what_was_not_sent_else_what_the_file_says() -> None:
    body = "{key: [id], columns: {id: int, name: string, tags: {type: 'string[]', not_null: true, description: d}}%s}"
    more = ", unavailable: 'hex:00FF', absent: {name: keep, tags: null}"
    text = f"unavailable: __none__\nuser: {body % ', absent: null'}\nitem: {body % more}\nlast: {body % ', absent: keep'}\n"
    entities = load({"entities.yaml": text}).entities
    assert [one.unavailable for one in entities.values()] == ["__none__", "hex:00FF", "__none__"]
    assert [one.absent for one in entities.values()] == ["null", {"name": "keep", "tags": "null"}, "keep"]
    assert [one.absent_choice("name") for one in entities.values()] == ["null", "keep", "keep"]
    assert {one.not_null for one in entities.values()} == {frozenset({"tags"})}
    described = {name: describe_entity(one) for name, one in entities.items()}
    assert load({"entities.yaml": json.dumps(described)}).entities == entities


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("nul", "there is no choice `nul` for `unrepresentable`; did you mean 'null'?"),
        ("{att: null}", "entity `item` has no column `att` for its `unrepresentable`; did you mean 'at'?"),
        ("{at: drop}", "there is no choice `drop` for `unrepresentable`"),
        ("{id: null}", "column `id` is in the key of entity `item`, which is never null; remove `id`"),
        ("[null]", "`unrepresentable` is a list, not text; write one of refuse, null"),
    ],
)
def test_another_choice_for_values_that_a_type_cannot_hold_is_refused(choice: str, problem: str) -> None:
    text = f"item: {{key: [id], columns: {{id: int, at: timestamp}}, unrepresentable: {choice}}}"
    with pytest.raises(DefinitionError) as error:
        load({"entities.yaml": text})
    assert problem in str(error.value)


def test_an_entity_says_what_becomes_of_values_that_a_type_cannot_hold() -> None:
    body = "{key: [id], columns: {id: int, at: timestamp, day: date}, unrepresentable: %s}"
    choices = ("null", "refuse", "{at: null, day: refuse}")
    text = "".join(f"e{n}: {body % choice}\n" for n, choice in enumerate(choices))
    entities = load({"entities.yaml": text}).entities
    nulled = [[name for name in one.columns if one.nulls(name)] for one in entities.values()]
    assert nulled == [["at", "day"], [], ["at"]]
    described = {name: describe_entity(one) for name, one in entities.items()}
    assert load({"entities.yaml": json.dumps(described)}).entities == entities


def test_an_entity_that_says_nothing_of_values_that_were_not_sent_is_described_as_before() -> None:
    entity = load({"entities.yaml": "user: {key: [id], columns: {id: int, n: {type: int, not_null: false}}}"}).entities[
        "user"
    ]
    assert (entity.absent, entity.absent_choice("n"), entity.not_null) == (None, None, frozenset())
    assert describe_entity(entity) == {
        "topic": "user",
        "key": ["id"],
        "columns": {"id": "int", "n": "int"},
        "shards": 1,
    }
    assert [*load({"entities.yaml": "unavailable: {key: [id], columns: {id: int}}"}).entities] == ["unavailable"]


FLAGGED = "user: {key: [id], columns: {id: int}, %s}"


def test_an_entity_says_the_flags_of_deletes_and_its_table() -> None:
    text = "table: shop.users, deleted: {column: op_type, values: [D, true, True, 1, 2.0, 'x']}"
    found = load({"entities.yaml": FLAGGED % text}).entities["user"]
    assert found.table == "shop.users"
    assert found.deleted == (DeleteFlag("op_type", ("D", "true", "true", "1", "2.0", "x")),)
    truncates = load({"entities.yaml": FLAGGED % "format: row, deleted: {column: op, values: [D], truncates: [T, 9]}"})
    assert truncates.entities["user"].deleted == (DeleteFlag("op", ("D",), ("T", "9")),)
    several = load({"entities.yaml": FLAGGED % "deleted: [{column: _op, values: [d]}, {column: _cdc.gone}]"})
    assert several.entities["user"].deleted == (DeleteFlag("_op", ("d",)), DeleteFlag("_cdc.gone"))


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("deleted: {colum: op}", "`colum`"),
        ("deleted: {values: [D]}", "`deleted` of entity `user` has no `column`"),
        ("deleted: op_type", "`deleted` of entity `user` is `op_type`, not a mapping"),
        ("deleted: {column: 7, values: [D]}", "`column` is `7`, not text"),
        ("deleted: {column: op, values: D}", "`values` is a list of texts, numbers, true or false"),
        ("deleted: {column: op, values: []}", "`values` is a list of texts, numbers, true or false"),
        ("deleted: {column: op, values: [null]}", "`values` is a list of texts, numbers, true or false"),
        ("deleted: {column: op, values: [{a: 1}]}", "`values` is a list of texts, numbers, true or false"),
        (
            "format: debezium, deleted: {column: op, values: [d]}",
            "pins `format: debezium`, whose `op` says the deletes",
        ),
        ("format: dms, deleted: {column: op}", "pins `format: dms`, whose `metadata.operation` says the deletes"),
        ("format: row", "entity `user` pins `format: row` and has no `deleted`"),
        ("format: goldengat", "did you mean 'goldengate'?"),
        ("deleted: {column: op, values: [D], truncate: [T]}", "did you mean 'truncates'?"),
        ("deleted: {column: op, truncates: [T]}", "`truncates` needs `values`"),
        ("deleted: {column: op, values: [D, T], truncates: [T]}", "`T` says a delete and a truncate"),
        ("deleted: {column: op, values: [D], truncates: T}", "`truncates` is a list of texts, numbers, true or false"),
        ("table: [a, b]", "`table` is a list, not text"),
        ("tabel: a", "did you mean 'table'?"),
        ("delete: {column: op}", "did you mean 'deleted'?"),
    ],
)
def test_a_wrong_flag_or_table_is_refused(word: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as error:
        load({"entities.yaml": FLAGGED % word})
    assert problem in str(error.value)

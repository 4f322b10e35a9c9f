"""The JSON Schemas of editors and the readers of definitions, fed with the same good and bad files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from processor.environment.settings.settings import read_settings
from processor.errors import SettingError
from processor.language.definitions.json_schemas import (
    SCHEMAS,
    generated_schemas,
    schema_line,
    schema_text,
    write_schemas,
)
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError

ROOT = Path(__file__).parents[4]
GOOD = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if path.parent.name != "workflows")
WRONG = sorted((Path(__file__).parent / "wrong").glob("*.txt"))
ENTITIES = (ROOT / "examples" / "github" / "entities.yaml").read_text()
LOADER_ALONE = (
    "aggregate_", "all_problems", "deep_level", "embed_", "entities_missing", "entities_share", "entity_column_like",
    "entity_key_column_unknown", "entity_key_of_json", "entity_key_twice", "entity_names_yaml",
    "entity_type_in_flow", "entity_written", "expression_", "fields_member_twice", "fields_path", "fields_unknown", "flow_",
    "join_and_embed", "compared_like",
    "join_unknown_entity", "limit_", "on_by_yaml", "on_json", "on_list", "on_path", "on_turned", "on_types",
    "computed_columns", "on_expressions", "recursive_joins", "recursive_other", "recursive_second", "recursive_words",
    "union_types", "on_unknown", "order_by_", "parent_", "product_avro", "product_topic_of", "product_unknown_root",
    "ordered",
    "counted", "products_share", "message_keys", "sql_", "total_", "where_", "yaml_",
)  # fmt: skip
"""Bad files whose mistakes are names, expressions, YAML itself, or rules of several files: only the readers see them."""


def errors(name: str, text: str) -> list[str]:
    value = json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))
    return [error.message for error in Draft7Validator(json.loads(schema_text(name))).iter_errors(value)]


def kind_of(path: Path) -> str:
    return "tests" if path.parent.name == "tests" else "entities" if path.stem == "entities" else "product"


@pytest.mark.parametrize("path", GOOD, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_a_good_file_of_the_examples_is_good_for_an_editor(path: Path) -> None:
    assert errors(kind_of(path), path.read_text()) == []


@pytest.mark.parametrize("case", WRONG, ids=lambda path: path.stem)
def test_an_editor_marks_a_bad_file_unless_only_the_reader_can_see_its_mistake(case: Path) -> None:
    pieces = re.split(r"^=== (.+)\n", case.read_text(), flags=re.MULTILINE)
    texts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    texts.pop("error")
    if case.stem.startswith(LOADER_ALONE):
        return
    assert any(errors(kind_of(Path(file)), text) for file, text in texts.items()), "add it to LOADER_ALONE, or a rule"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "entities",
            "a: {key: [id], columns: {id: int, p: ' decimal( 12 , 2 ) [ ] ', t: 'timestamp( us )'}, shards: 100}",
        ),
        (
            "entities",
            "a.b-c: {key: [x], columns: {x: string}, topic: T, decimals: {}, truncate: delete, format: plain}",
        ),
        ("entities", "a: {key: [id], owner: '', description: d, columns: {id: {type: 'int', description: a number}}}"),
        ("entities", "a: {key: [x], columns: {x: {type: string, compare: ci}}}"),
        ("entities", "a: {key: [x], columns: {x: {type: string, compare: [trimmed, ci]}}}"),
        ("product", "{product: p, root: user, compare: {user: {username: trimmed}}}"),
        ("product", "{product: p, root: user, compare: {}}"),
        ("product", "{product: p, root: user, description: 'two\\nlines', owner: crew}"),
        ("entities", "keep: declared\na: {key: [x], columns: {x: string}, keep: all}"),
        ("entities", "keep: {key: [x], columns: {x: string}}"),
        ("entities", "a: {key: [x], columns: {x: string}, table: s.t, deleted: {column: op, values: [D, 1, true]}}"),
        ("entities", "a: {key: [x], columns: {x: string}, deleted: [{column: op, values: [D]}, {column: _cdc.at}]}"),
        ("entities", "transactions: app.tx\na: {key: [x], columns: {x: string}, transactions: b.tx}"),
        ("entities", "transactions: {key: [x], columns: {x: string}}"),
        ("product", "{product: p, root: user, where: true, fields: {a: 1, b: 1.5, c: null, d: true, e: username}}"),
        ("product", "{product: p, root: user, fields: []}"),
        (
            "product",
            "{product: p, root: user, embed: {s: {many: star, on: {username: username}, order_by: -created_at}}}",
        ),
        ("product", "{product: p, sql: 'select u.email from \"user\" u', topic: t, format: json}"),
    ],
)
def test_what_the_reader_takes_an_editor_takes(kind: str, text: str) -> None:
    load({"entities.yaml": ENTITIES, "p.yaml": text} if kind == "product" else {"entities.yaml": text})
    assert errors(kind, text) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("entities", "a: {key: [id], columns: {id: int}, shards: 101}"),
        ("entities", "a: {key: [id], columns: {id: bigint}}"),
        ("entities", "a: {key: [id], columns: {id: int}, truncate: drop}"),
        ("entities", "a: {key: [id], columns: {id: int}, owner: 7}"),
        ("entities", "a: {key: [id], columns: {id: int}, deleted: {values: [D]}}"),
        ("entities", "a: {key: [id], columns: {id: int}, deleted: {column: op, values: []}}"),
        ("entities", "a: {key: [id], columns: {id: int}, deleted: op}"),
        ("entities", "a: {key: [id], columns: {id: {description: d}}}"),
        ("entities", "a: {key: [x], columns: {x: {type: string, compare: upper}}}"),
        ("product", "{product: p, root: user, compare: {user: ci}}"),
        ("product", "{product: p, root: user, description: [d]}"),
        ("entities", "a: {key: [id, id], columns: {id: int}}"),
        ("entities", "keep: used\na: {key: [id], columns: {id: int}}"),
        ("entities", "a: {key: [id], columns: {id: int}, keep: used}"),
        ("entities", "transactions: a b\na: {key: [id], columns: {id: int}}"),
        ("product", "{product: p, root: user, limit: 1}"),
        ("product", "{product: p}"),
        ("product", "{product: p, root: user, embed: {s: {one: star, many: star, on: {username: username}}}}"),
        ("product", "{product: p, root: user, embed: {s: {many: star}}}"),
        ("product", "{product: p, root: user, embed: {s: {many: star, on: {username: username}, total: 1}}}"),
    ],
)
def test_both_refuse_a_wrong_shape(kind: str, text: str) -> None:
    with pytest.raises(DefinitionError):
        load({"entities.yaml": ENTITIES, "p.yaml": text} if kind == "product" else {"entities.yaml": text})
    assert errors(kind, text)


@pytest.mark.parametrize(
    ("settings", "good"),
    [
        ({"batch_size": 5, "lanes": "4", "wait_seconds": 1.5, "table": "t"}, True),
        ({"kafka": {"security.protocol": "SSL", "client": {"id": "x"}}}, True),
        ({"rejects_topic": "dead"}, True),
        ({"batch_size": 0}, False),
        ({"batch_sise": 5}, False),
        ({"lanes": 1.5}, False),
        ({"table": True}, False),
        ({"kafka": {"security.protocol": "TLS"}}, False),
        ({"kafka": {"acks": "all"}}, False),
    ],
)
def test_the_settings_file_means_the_same_to_both(settings: dict[str, Any], good: bool, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    kafka = settings.get("kafka", {})
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items() if name != "kafka"]
    lines += ["[kafka]"] * bool(kafka)
    lines += [f'"{name}" = "{value}"' for name, value in kafka.items() if isinstance(value, str)]
    lines += [f'{name}.id = "{value["id"]}"' for name, value in kafka.items() if isinstance(value, dict)]
    file.write_text("\n".join(lines))
    try:
        read_settings({}, {}, str(file))
        taken = True
    except SettingError:
        taken = False
    assert (taken, not errors("settings", json.dumps(settings))) == (good, good)


def test_the_shipped_files_are_those_that_the_rules_make() -> None:
    made = generated_schemas()
    assert tuple(made) == SCHEMAS
    assert {name: schema_text(name) for name in SCHEMAS} == made, (
        "python -m processor.language.definitions.json_schemas"
    )


def test_every_key_has_a_description() -> None:
    for name in SCHEMAS:
        found = json.loads(schema_text(name))
        for properties in re.findall(r'"properties": (\{.*)', json.dumps(found)):
            assert properties
        mappings = [found, *found.get("definitions", {}).values()]
        for mapping in mappings:
            assert all("description" in member for member in mapping.get("properties", {}).values())


def test_the_line_of_a_file_leads_to_the_copy_in_its_directory(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    path = schema_line("product").partition("$schema=")[2]
    assert (tmp_path / path).read_text() == schema_text("product")

"""The names of planned edits and the JSON that the registry stores, of every definition of the examples and the tests.

`data/stored_bytes.json` has them as they were recorded. A release that makes other bytes of a definition would publish products
again, or refuse a plan that an operator has looked at. `python -m tests.unit.registry.test_stored_bytes` records them again.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load, load_directory
from processor.language.product.product import Definitions
from registry.edits.apply import apply
from registry.edits.edit import edited, plan_id
from registry.edits.operations import advance
from registry.model import Snapshot, json_text
from tests.simulator import edge_shapes, shape_definitions
from tests.unit.registry.conftest import EMPTY

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests/data/stored_bytes.json"


def _definitions() -> Iterator[tuple[str, Definitions]]:
    for folder in ("examples", "processor", "tests"):
        for path in sorted((ROOT / folder).rglob("entities.yaml")):
            name = path.parent.relative_to(ROOT).as_posix()
            yield "sample" if name.endswith("/sample") else name, load_directory(path.parent)
    for module in (edge_shapes, shape_definitions):
        for name, texts in vars(module).items():
            if isinstance(texts, dict) and "entities.yaml" in texts:
                yield name, load(texts)


def _stored(snapshot: Snapshot) -> str:
    """The content of a registry, as JSON, hashed."""
    rows = [
        [[one.name, one.topic, one.key, one.columns, one.dropped, one.definition] for one in snapshot.entities],
        [[one.name, one.topic, one.root, one.definition, one.version] for one in snapshot.products],
        [[one.name, one.topic, one.root, one.definition, one.version] for one in snapshot.waiting],
    ]
    return hashlib.sha256(json_text(rows).encode()).hexdigest()[:12]


def _history(definitions: Definitions) -> Iterator[list[str]]:
    """Over an empty registry: the apply of all. Over stored rows: the apply of the entities, of all, and each step of the job."""
    first = edited(EMPTY, apply(EMPTY, requirements_of(definitions), frozenset()))
    yield [plan_id(first), _stored(first)]
    bare = replace(definitions, products={})
    snapshot = edited(EMPTY, apply(EMPTY, requirements_of(bare), frozenset()))
    run = frozenset(definitions.entities)
    change = apply(snapshot, requirements_of(definitions), run)
    while change.changes:
        snapshot = edited(snapshot, change)
        yield [plan_id(snapshot), _stored(snapshot)]
        change = advance(snapshot, proven=run, published=())


CASES = dict(_definitions())


@pytest.mark.parametrize("name", CASES)
def test_the_registry_makes_the_same_bytes_of_a_definition_as_releases_before(name: str) -> None:
    assert list(_history(CASES[name])) == json.loads(RECORDED.read_text())[name]


def test_each_record_has_its_definition() -> None:
    assert json.loads(RECORDED.read_text()).keys() == CASES.keys()


if __name__ == "__main__":
    found = {name: list(_history(definitions)) for name, definitions in CASES.items()}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(steps)}" for name, steps in found.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")

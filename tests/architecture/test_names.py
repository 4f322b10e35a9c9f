"""A name means one thing: modules and public classes have names of their own over the whole project."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("statestore", "processor", "registry")
SHARED = {"__init__", "errors"}
"""Module names that each package may have: its face, and its errors."""


def test_module_names_are_unique() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in _files():
        if path.stem not in SHARED:
            modules[path.stem].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_names_of_public_classes_and_type_aliases_are_unique() -> None:
    definitions: dict[str, list[str]] = defaultdict(list)
    for path in _files():
        for name in _types(ast.parse(path.read_text(encoding="utf-8"))):
            definitions[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in definitions.items() if len(paths) > 1} == {}


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _types(module: ast.Module) -> Iterator[str]:
    """The public classes of a module, and its type aliases: names in CamelCase that it assigns."""
    for node in module.body:
        match node:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) if _is_camel_case(name):
                yield name


def _is_camel_case(name: str) -> bool:
    return len(name) > 1 and name[0].isupper() and not name.isupper() and "_" not in name

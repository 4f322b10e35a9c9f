"""The JSON Schemas as files of the package, and their copies in a directory of definitions, which its files name.

The copies travel with the definitions: a path into the package would be another one on each machine.
"""

from importlib.resources import files
from pathlib import Path
from typing import Final

FOLDER: Final = ".schemas"
SCHEMAS: Final = ("entities", "product", "tests", "settings")


def schema_text(name: str) -> str:
    """The text of a schema that the package ships."""
    return (files("processor.language.definitions") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


def schema_line(name: str) -> str:
    """The first line of a file in the directory, by which the YAML language server of an editor finds its schema."""
    return f"# yaml-language-server: $schema={FOLDER}/{name}.json"


def write_schemas(directory: Path) -> None:
    """Puts the copies of this release into the directory."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")

"""Reads the notes of definitions: what authors say to readers about entities, columns and products."""

from collections.abc import Iterable, Mapping

from processor.definitions.problems import Problems
from processor.definitions.shape import as_prose
from processor.definitions.yaml_nodes import Map, Scalar, YamlNode
from processor.product.product import Note


def read_entity_notes(root: YamlNode, problems: Problems) -> dict[str, Note]:
    """The note of each entity. `root`: of entities.yaml."""
    entries = root.entries.items() if isinstance(root, Map) else ()
    return {name: _read_note(node, problems) for name, (_, node) in entries if isinstance(node, Map)}


def read_product_notes(nodes: Iterable[YamlNode | None], problems: Problems) -> dict[str, Note]:
    """The note of each product. `nodes`: of the product files."""
    notes: dict[str, Note] = {}
    for node in nodes:
        if isinstance(node, Map) and isinstance(name := node.get("product"), Scalar):
            notes[name.text] = _read_note(node, problems)
    return notes


def _read_note(body: Map, problems: Problems) -> Note:
    columns = body.get("columns")
    entries: Mapping[str, tuple[Scalar, YamlNode]] = columns.entries if isinstance(columns, Map) else {}
    said = {
        name: as_prose(node.get("description"), f"`description` of column `{name}`", problems)
        for name, (_, node) in entries.items()
        if isinstance(node, Map)
    }
    return Note(
        description=as_prose(body.get("description"), "`description`", problems),
        owner=as_prose(body.get("owner"), "`owner`", problems),
        columns={name: text for name, text in said.items() if text},
    )

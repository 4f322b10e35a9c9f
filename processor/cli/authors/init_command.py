"""`statestore init`: writes entities.yaml, and a first product on request, from a database, from records, or from schemas.

It never changes a file of an author. Where entities.yaml is there, it prints what the source has in addition.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

from processor.cli.arguments import natural
from processor.cli.options import add_settings, load_settings, reachable_settings
from processor.environment.settings.resolve import database_address
from processor.errors import SettingError, StatestoreError
from processor.language.definitions.json_schemas import schema_line, write_schemas
from processor.language.definitions.load import ENTITIES, load_directory
from processor.text import nearest, visible, visible_line
from processor.tools.source.column_types import ConnectorModes, DecimalMode, TimeMode
from processor.tools.source.draft import DraftEntity
from processor.tools.source.text import drift_lines, entities_text, product_name, product_text
from processor.tools.source.topics import kafka_entities, recorded_entities

SOURCES = "--database URL, --from FILE, or --bootstrap-servers"
DEPTH = 1
GUESSES = "# The source does not show what is marked `guess`: check it."


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "write entities.yaml, and with --root a product, from a database, records or schemas"
    parser = verbs.add_parser("init", help=text)
    parser.add_argument("directory", metavar="DIR", type=Path)
    parser.add_argument("--database", metavar="URL", help="postgresql:// or mysql:// address of a source")
    password = "reference to its password: env:, file: or secret:"
    parser.add_argument("--password", metavar="REF", default="", help=password)
    help = "its schemas (MySQL: databases) to read"
    parser.add_argument("--schemas", metavar="A,B", default="", help=help)
    parser.add_argument("--topic-prefix", metavar="P", help="the connector's topic.prefix, of all topics to read")
    times, decimals = get_args(TimeMode), get_args(DecimalMode)
    parser.add_argument("--times", choices=times, metavar="MODE", help="its time.precision.mode")
    parser.add_argument("--decimals", choices=decimals, metavar="MODE", help="its decimal.handling.mode")
    parser.add_argument("--from", dest="source", metavar="FILE", help="recorded topics, as `try` takes them")
    parser.add_argument("--root", metavar="ENTITY", help="draft a product with this root, too")
    parser.add_argument("--depth", metavar="N", type=natural, default=DEPTH, help=f"its levels of joins ({DEPTH})")
    help = "write nothing; 1 if entities.yaml and source differ"
    parser.add_argument("--check", action="store_true", help=help)
    add_settings(parser, "bootstrap_servers")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    directory: Path = options.directory
    exists = (directory / ENTITIES).exists()
    if options.check and not exists:
        raise StatestoreError(f"{directory / ENTITIES} is missing: leave out --check to write it")
    found = _draft(options)
    _check_names(found)
    product = None if options.root is None or options.check else _product_text(found, options)
    if exists:
        differences = _drift(found, options)
        if options.check:
            return 1 if differences else 0
    else:
        header = [schema_line("entities"), "# Drafted by `statestore init`.", GUESSES]
        _write(directory / ENTITIES, entities_text(found, header))
    write_schemas(directory)
    if product is not None:
        _write(directory / f"{product_name(options.root)}.yaml", product)
    return 0


def _draft(options: argparse.Namespace) -> Sequence[DraftEntity]:
    """The entities of the source that the flags name."""
    if options.database and options.source:
        raise SettingError(f"--database and --from are two sources: give one of {SOURCES}")
    if options.database:
        return _tables(options)
    if options.source:
        return recorded_entities(load_settings(options), options.source)
    with reachable_settings(options) if options.embedded else nullcontext(load_settings(options)) as settings:
        if not settings.bootstrap_servers and not settings.schema_registry:
            raise SettingError(f"there is no source: give {SOURCES}, or --settings FILE with [schema_registry]")
        return kafka_entities(settings, options.topic_prefix)


def _check_names(found: Sequence[DraftEntity]) -> None:
    """Raises StatestoreError for a source without an entity, and for two topics that would have one name."""
    if not any(entity.is_whole for entity in found):
        seen = ", ".join(entity.topic for entity in found if not entity.refusal)
        why = f"nothing shows the keys of {seen}" if seen else "it has no table, or no topic with rows"
        why = next((f"topic {one.topic}: {one.refusal}" for one in found if one.refusal), why)
        if found and all(entity.unread for entity in found):
            why = "; ".join(entity.note for entity in found)
        raise StatestoreError(
            f"the source shows no entity: {why}; correct its address, schema or prefix, or write the file"
        )
    topics: dict[str, str] = {}
    for entity in found:
        if entity.name in topics:
            both = f"{topics[entity.name]} and {entity.topic}"
            raise StatestoreError(f"the entity `{entity.name}` would be {both}; give only one of them as the source")
        topics[entity.name] = entity.topic


def _tables(options: argparse.Namespace) -> Sequence[DraftEntity]:
    from processor.tools.source.database import TableSource, read_tables

    if not options.topic_prefix:
        raise SettingError("--topic-prefix is missing: give the connector's topic.prefix, with which its topics begin")
    modes = ConnectorModes(options.times, options.decimals)
    schemas = [name.strip() for name in options.schemas.split(",") if name.strip()]
    address = database_address(options.database, options.password)
    return read_tables(TableSource(url=address, prefix=options.topic_prefix, schemas=schemas, modes=modes))


def _product_text(found: Sequence[DraftEntity], options: argparse.Namespace) -> str:
    """The drafted product. Raises SettingError for a root that the source does not have, or that has no key."""
    names = [entity.name for entity in found if entity.is_whole]
    if options.root not in names:
        near = nearest(options.root, names)
        cure = f"did you mean {near!r}?" if near else f"the entities are {', '.join(names) or 'none'}"
        raise SettingError(f"--root: the source has no entity {options.root!r} with a key; {cure}")
    return product_text(found, options.root, options.depth, [schema_line("product")])


def _drift(found: Sequence[DraftEntity], options: argparse.Namespace) -> bool:
    """Prints how entities.yaml and the source differ, as a diff. Returns whether they do."""
    path = options.directory / ENTITIES
    schemas = {f"{entity.topic.rpartition('.')[0]}." for entity in found if options.database}
    lines = drift_lines(load_directory(options.directory).entities, found, whole=schemas)
    if not lines:
        print(visible_line(f"{path}: the source has nothing else"))
        return False
    print(visible("\n".join([f"--- {path}", "+++ the source", *lines])))
    return True


def _write(path: Path, text: str) -> None:
    """Writes a new file; one that is there stays as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
        print(visible_line(f"wrote {path}"))
    except FileExistsError:
        print(visible_line(f"{path} is there already, and stays as it is"), file=sys.stderr)

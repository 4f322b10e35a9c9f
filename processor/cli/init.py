"""`statestore init`: writes entities.yaml, and a first product on request, from a database, from records, or from schemas.

It never changes a file of an author. Where entities.yaml is there, it prints what the source has in addition.
"""

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

from processor.cli.options import KAFKA, load_settings, reachable_settings
from processor.cli.printing.output import row_lines, warn
from processor.cli.verb import AUTHORS, flag, natural, verb
from processor.environment.settings.resolve import database_address, resolve_schema_registry
from processor.errors import SettingError, StatestoreError
from processor.job.kafka.schemas import open_schemas
from processor.language.definitions.json_schemas import schema_line, write_schemas
from processor.language.definitions.load import ENTITIES, load, load_directory
from processor.text import nearest, visible, visible_line, visible_lines
from processor.tools.source.column_types import ConnectorModes, DecimalMode, TimeMode
from processor.tools.source.draft import DraftEntity, drift_lines, entities_text, product_name, product_text
from processor.tools.source.topics import kafka_entities, recorded_entities

SOURCES = "--database URL, --from FILE, or --bootstrap-servers"
DEPTH = 1
GUESSES = "# The source does not show what is marked `guess`: check it."


@verb(
    "init",
    AUTHORS,
    flag("directory", metavar="DIR", type=Path),
    flag("--database", "postgresql:// or mysql:// address of a source", "URL"),
    flag("--password", "reference to its password: env:, file: or secret:", "REF", default=""),
    flag("--schemas", "its schemas (MySQL: databases) to read", "A,B", default=""),
    flag("--topic-prefix", "the connector's topic.prefix, of all topics to read", "P"),
    flag("--times", "its time.precision.mode", "MODE", choices=get_args(TimeMode)),
    flag("--decimals", "its decimal.handling.mode", "MODE", choices=get_args(DecimalMode)),
    flag("--from", "recorded topics, as `try` takes them", "FILE", dest="source"),
    flag("--root", "draft a product with this root, too", "ENTITY"),
    flag("--depth", f"its levels of joins ({DEPTH})", "N", type=natural, default=DEPTH),
    flag("--check", "write nothing; 1 if entities.yaml and source differ"),
    settings=KAFKA,
)
def init(options: argparse.Namespace) -> int:
    """Write entities.yaml, and with --root a product, from a database, records or schemas."""
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
        text = entities_text(found, header)
        _write(directory / ENTITIES, text)
        _show_rows(found, text, options)
    write_schemas(directory)
    if product is not None:
        _write(directory / f"{product_name(options.root)}.yaml", product)
    return 0


def _show_rows(found: Sequence[DraftEntity], text: str, options: argparse.Namespace) -> None:
    """Prints how the job reads some records of each topic by the drafted file."""
    entities = load({ENTITIES: text}).entities
    known = [draft for draft in found if draft.samples and draft.name in entities]
    if known:
        print("Records as the job reads them:")
        schemas = open_schemas(resolve_schema_registry(load_settings(options).schema_registry))
        for draft in known:
            print(visible_lines(row_lines(draft.samples, entities, schemas)))


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
        warn(f"{path} is there already, and stays as it is")

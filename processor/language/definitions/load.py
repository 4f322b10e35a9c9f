"""Reads a directory of definitions: `entities.yaml`, and one file per product, next to it or under `products/`.

`read_directory` and `read_tests` read files. `load` is pure: it makes `Definitions` from texts, and reports all problems at once.
`load_directory` does both, and names files by the path that its caller gave. A note is what the author says to readers about an
entity, a column or a product.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from processor.language.definitions.entities import read_entities
from processor.language.definitions.problems import DefinitionError, Location, Problem, Problems
from processor.language.definitions.products import Heading, read_product
from processor.language.definitions.shape import as_prose
from processor.language.definitions.yaml import Map, Scalar, YamlNode, read_yaml
from processor.language.product.product import Definitions, Note, Product, keys_cannot_meet
from processor.values.entity import Entity

ENTITIES = "entities.yaml"
_SUFFIXES = {".yaml", ".yml", ".json"}


def load_directory(path: Path) -> Definitions:
    """The definitions of a directory. Raises: DefinitionError, whose files begin with `path`."""
    texts = read_directory(path)
    with files_below(path):
        return load(texts)


@contextmanager
def files_below(path: Path) -> Iterator[None]:
    """Puts the path of the directory before each file of a DefinitionError, so that a terminal can open the file."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(replace(p, file=str(path / p.file)) for p in error.problems) from None


def read_directory(path: Path) -> dict[str, str]:
    """The text of each definition file by its name relative to the directory, sorted.

    Ignores all other files. Raises: DefinitionError when the directory or one of these files cannot be read.
    """
    return _read(path, (path, path / "products"))


def read_tests(path: Path) -> dict[str, str]:
    """The text of each file of tests (`tests/*.yaml`, see `definitions.product_tests`), like `read_directory`."""
    return _read(path, (path / "tests",))


def _read(path: Path, folders: Iterable[Path]) -> dict[str, str]:
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    try:
        files = sorted(_files(path, folders))
    except OSError as error:
        what = f"the directory cannot be read: {error.strerror}"
        raise DefinitionError(
            [Problem(file=str(path), line=0, what=what, cure="give a directory of definitions")]
        ) from None
    for name in files:
        try:
            texts[name] = (path / name).read_text(encoding="utf-8-sig")
        except OSError as error:
            what = f"the file cannot be read: {error.strerror}"
            problems.append(Problem(file=str(path / name), line=0, what=what, cure="make it readable, or remove it"))
        except UnicodeDecodeError as error:
            what = f"the file is not UTF-8 (byte {error.start})"
            problems.append(Problem(file=str(path / name), line=0, what=what, cure="save it as UTF-8"))
    if problems:
        raise DefinitionError(problems)
    return texts


def _files(path: Path, folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        if folder == path or folder.is_dir():
            for file in folder.iterdir():
                if file.suffix in _SUFFIXES and not file.name.startswith(".") and not file.is_dir():
                    yield file.relative_to(path).as_posix()


def load(texts: Mapping[str, str]) -> Definitions:
    """The definitions in these texts, by the relative names of their files. Raises: DefinitionError with all problems."""
    return _load(texts, Problems())


def load_stored(texts: Mapping[str, str]) -> Definitions:
    """The definitions that a registry has. It may have them from a version that refused less."""
    return _load(texts, Problems(stored=True))


def _load(texts: Mapping[str, str], problems: Problems) -> Definitions:
    if ENTITIES not in texts:
        others = [file for file in ("entities.yml", "entities.json") if file in texts]
        cure = (
            f"rename {others[0]} to {ENTITIES}"
            if others
            else "create it: `statestore init DIR` writes it from the source"
        )
        raise DefinitionError([Problem(file=ENTITIES, line=0, what="the file is missing", cure=cure)])
    root = read_yaml(ENTITIES, texts[ENTITIES], problems)
    problems.raise_if_any()  # alone: a table that is written twice makes columns of products unknown
    nodes = {file: read_yaml(file, texts[file], problems) for file in sorted(texts) if file != ENTITIES}
    products: dict[str, Product] = {}
    entities = read_entities(root, problems) if root else {}
    if root:
        products = _read_products(nodes, entities, _entity_topics(root, entities, problems), problems)
    entity_notes = read_entity_notes(root, problems) if root else {}
    product_notes = read_product_notes(nodes.values(), problems)
    problems.raise_if_any()
    return Definitions(
        entities={name: e for name, e in entities.items() if e is not None},
        products=products,
        entity_notes=entity_notes,
        product_notes=product_notes,
    )


def _entity_topics(root: YamlNode, entities: Mapping[str, Entity | None], problems: Problems) -> dict[str, str]:
    """The owner of each topic, in words. Adds a problem for each entity whose topic another entity has, unless both name their
    tables."""
    owners: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {}
    for name, entity in entities.items():
        if entity is None or not isinstance(root, Map):
            continue
        sharing = tables.setdefault(entity.topic, {})
        if not entity.table or entity.topic not in owners or not sharing:
            _claim_topic(entity.topic, f"entity `{name}`", root.key_node(name), owners, problems)
        if entity.table:
            _claim_table(name, entity, root.key_node(name), sharing, problems)
    for name, entity in entities.items():
        if entity is not None and entity.transactions and isinstance(root, Map):
            _claim_topic(entity.transactions, "the transaction metadata", root.key_node(name), owners, problems)
            if len(tables[entity.topic]) > 1 and "." not in (entity.source or entity.table):
                what = f"entity `{name}` shares its topic and has `transactions`, and its `table` lacks the schema"
                problems.add(root.key_node(name), what, "write it as the ends of transactions do: `public.users`")
    return owners


def _read_products(
    nodes: Mapping[str, YamlNode | None],
    entities: Mapping[str, Entity | None],
    topics: dict[str, str],
    problems: Problems,
) -> dict[str, Product]:
    products: dict[str, Product] = {}
    headings: dict[str, Heading] = {}
    unread = set[str]()  # the topics of products with problems
    for node in nodes.values():
        heading, product = read_product(node, entities, problems) if node else (None, None)
        if heading is None:
            continue
        if heading.name in headings:
            other = headings[heading.name].name_node
            what = f"{other.file} already defines the product `{heading.name}`"
            problems.add(heading.name_node, what, "rename one of them")
            continue
        headings[heading.name] = heading
        sharing = [one for one in products.values() if one.topic == heading.topic]
        if product is not None and product.key and (sharing or heading.topic in unread):
            _share_topic(product, sharing, heading, problems)
        elif product is not None or not any(one.key for one in sharing):
            _claim_topic(heading.topic, f"product `{heading.name}`", heading.topic_node, topics, problems)
        if product is not None:
            products[product.name] = product
        else:
            unread.add(heading.topic)
    return products


def _share_topic(product: Product, sharing: Sequence[Product], heading: Heading, problems: Problems) -> None:
    """Adds a problem where another product of the topic may have the same keys, or one of them publishes Avro."""
    for other in sharing:
        both = f"products `{other.name}` and `{product.name}` of topic `{product.topic}`"
        if not keys_cannot_meet(product.key, other.key):
            cure = "give both a `key` with another constant under one name, `{kind: \"'user'\", id: id}`, or each its own `topic`"
            problems.add(heading.topic_node, f"{both} may have one key", cure)
        elif "avro" in (product.format, other.format):
            what = f"{both} share the subject `{product.topic}-value`, which has one schema"
            problems.add(heading.topic_node, what, "write `format: json` in both, or give each its own `topic`")


def _claim_table(name: str, entity: Entity, location: Location, tables: dict[str, str], problems: Problems) -> None:
    """Adds a problem where another entity of the topic picks the same table, or one with a shorter name of it."""
    own = f".{entity.table}"
    for table, other in tables.items():
        if own.endswith(f".{table}") or f".{table}".endswith(own):
            what = f"entities `{other}` and `{name}` of topic `{entity.topic}` pick the tables `{table}` and `{entity.table}`"
            problems.add(location, what, "give each entity of a topic its own table, such as `public.users`")
    tables[entity.table] = name


def _claim_topic(topic: str, owner: str, location: Location, owners: dict[str, str], problems: Problems) -> None:
    first = owners.setdefault(topic, owner)
    if first != owner:
        what = f"{owner} has the topic `{topic}`, which {first} already has"
        both = first.startswith("entity") and owner.startswith("entity")
        more = "; if it has several tables, write `table` in each of its entities" if both else ""
        problems.add(location, what, f"give each its own `topic`{more}")


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

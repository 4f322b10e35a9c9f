"""Reads `entities.yaml`: the tables of the source."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar, get_args

from processor.language.definitions.expressions import read_row_expression
from processor.language.definitions.names import NameScope
from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.shape import (
    COLUMN,
    ENTITY,
    FLAG,
    MOST_SHARDS,
    as_count,
    as_flag,
    as_map,
    as_name,
    as_text,
    as_texts,
    as_topic,
    check_keys,
    describe_node,
)
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.join_fields import parse_compared, parse_element, write_computed
from processor.values.entity import (
    PLACEHOLDER,
    AbsentChoice,
    ColumnType,
    Compare,
    CompareWord,
    ComputedColumn,
    DecimalForm,
    DeleteFlag,
    Entity,
    KeepChoice,
    TruncateChoice,
    UnrepresentableChoice,
    parse_type,
    placeholder_of,
    united,
)
from processor.values.envelopes.delete_flags import flag_text
from processor.values.envelopes.kinds import FORMATS
from registry.fields import computed_column
from statestore.values import MAX_COLUMNS

Choice = TypeVar("Choice", bound=str)
KEEP, TRANSACTIONS, UNAVAILABLE, DECIMALS = "keep", "transactions", "unavailable", "decimals"
UNREPRESENTABLE = "unrepresentable"
FILE_WORDS = (KEEP, TRANSACTIONS, UNAVAILABLE)
_KEEPS: tuple[KeepChoice, ...] = get_args(KeepChoice)
_ABSENT: tuple[AbsentChoice, ...] = get_args(AbsentChoice)
_UNREPRESENTABLE: tuple[UnrepresentableChoice, ...] = get_args(UnrepresentableChoice)
_FORMS: tuple[DecimalForm, ...] = get_args(DecimalForm)
_TRUNCATES: tuple[TruncateChoice, ...] = get_args(TruncateChoice)
_PATTERN = frozenset("*+?()[]{}|^$,\\")
"""The signs of patterns, and of lists in a text."""


class _FileWords(NamedTuple):
    """What the file says for each entity that does not say it."""

    keep: KeepChoice | None
    transactions: str | None
    unavailable: str | None


def read_entities(root: YamlNode, problems: Problems) -> dict[str, Entity | None]:
    """The entities in the order written. An entity with problems has None, so that no reader reports its name as unknown. `keep`,
    `transactions` and `unavailable` with a word in place of a mapping are no entities: the word counts for each entity that does
    not say it."""
    cure = "write `name: {key: [...], columns: {name: type}}`"
    entries = as_map(root, "the file", cure, problems)
    if entries is None:
        return {}
    said = {name: node for name in FILE_WORDS if isinstance(node := entries.get(name), Scalar)}
    found = {name: entry for name, entry in entries.entries.items() if name not in said}
    words = _read_words(said, problems)
    if not found:
        problems.add(next(iter(said.values())), "the file has no entity", cure)
    return {name: _read_entity(key, node, words, problems) for name, (key, node) in found.items()}


def _read_words(nodes: Mapping[str, YamlNode], problems: Problems) -> _FileWords:
    """The words of the file, or of an entity."""
    topic = nodes.get(TRANSACTIONS)
    return _FileWords(
        keep=_read_choice(nodes.get(KEEP), KEEP, _KEEPS, problems),
        transactions=as_topic(topic, problems, TRANSACTIONS) if topic else None,
        unavailable=_read_placeholder(nodes.get(UNAVAILABLE), problems),
    )


def _read_placeholder(node: YamlNode | None, problems: Problems) -> str | None:
    """The text of `unavailable`; None where it is undeclared."""
    cure = "write the connector's unavailable.value.placeholder, a text, or `hex:` with hex digits"
    text = as_text(node, f"`{UNAVAILABLE}`", cure, problems) if node else None
    if node is not None and text is not None:
        try:
            placeholder_of(text)
        except ValueError:
            problems.add(node, f"`{UNAVAILABLE}` has wrong hex digits: `{text}`", cure)
    return text


def _read_entity(key: Scalar, node: YamlNode, words: _FileWords, problems: Problems) -> Entity | None:
    before = len(problems)
    name = as_name(key, "the name of an entity", problems)
    body = as_map(node, f"entity `{key.text}`", "write `key` and `columns` below it", problems)
    if name is None or body is None:
        return None
    check_keys(body, f"entity `{name}`", ENTITY, problems)
    columns, expressions = _read_columns(name, key, body, problems)
    columns_read = len(problems) == before
    key_columns = _read_key(name, key, body, columns if columns_read else None, problems)
    topic, shards = _read_options(name, body, problems)
    record_format = _read_choice(body.get("format"), "format", tuple(FORMATS), problems)
    decimals = _read_by_column(name, body, DECIMALS, _FORMS, columns if columns_read else None, problems)
    truncate = _read_choice(body.get("truncate"), "truncate", _TRUNCATES, problems) or "refuse"
    absent = _read_by_column(name, body, "absent", _ABSENT, columns if columns_read else None, problems)
    unrepresentable = _read_by_column(
        name, body, UNREPRESENTABLE, _UNREPRESENTABLE, columns if columns_read else None, problems
    )
    if isinstance(unrepresentable, Mapping):
        _check_not_key(name, body, key_columns, problems)
    not_null = _read_not_null(body, problems)
    own = _read_words({name: value for name, (_, value) in body.entries.items()}, problems)
    flags = _read_flags(name, body, record_format, problems)
    source = _read_table(body, "source", problems)
    table = _read_table(body, "table", problems)
    if table and record_format and not FORMATS[record_format].names_table:
        what = f"entity `{name}` pins `format: {record_format}`, whose records name no table, so `table` picks none"
        problems.add(body.key_node("table"), what, "remove `table`, and give each table its own topic")
    if len(problems) > before:
        return None
    entity = Entity(
        name=name,
        topic=topic,
        key=key_columns,
        columns=columns,
        shards=shards,
        format=record_format,
        truncate=truncate,
        decimals=decimals,
        keep=own.keep or words.keep or "all",
        source=source,
        table=table,
        deleted=flags,
        transactions=own.transactions or words.transactions or "",
        unavailable=own.unavailable or words.unavailable or PLACEHOLDER,
        absent=absent,
        unrepresentable=unrepresentable,
        not_null=not_null,
    )
    entity = with_computed(entity, expressions, problems)
    return entity if len(problems) == before else None


def with_computed(
    entity: Entity, columns: Mapping[str, tuple[ColumnType, YamlNode]], problems: Problems, tzdata: str = ""
) -> Entity:
    """The entity with these computed columns alone, each with its type and its expression. `tzdata`: see `NameScope`."""
    entity = replace(entity, computed={})
    for column, (declared, node) in columns.items():
        scope = NameScope(entities={entity.name: entity}, entity=entity.name, tzdata=tzdata)
        computed = _read_computed(column, declared, node, scope, problems)
        if computed is not None:
            entity = replace(entity, computed={**entity.computed, column: computed})
    return entity


def _read_computed(
    column: str, declared: ColumnType, node: YamlNode, scope: NameScope, problems: Problems
) -> ComputedColumn | None:
    """A column that an expression makes of the entity's other columns, also of computed ones that come before it."""
    text = as_text(node, f"`as` of column `{column}`", "write an expression over columns of the row", problems)
    read = read_row_expression(text.strip(), node, scope, problems, as_type=declared) if text else None
    if text is None or read is None:
        return None
    compare = united([declared.compare, read.compare])
    field = write_computed(read.node, compare)
    return ComputedColumn(
        type=replace(declared, compare=compare), text=text.strip(), field=field, compare=declared.compare
    )


def _read_columns(
    name: str, key: Scalar, body: Map, problems: Problems
) -> tuple[dict[str, ColumnType], dict[str, tuple[ColumnType, YamlNode]]]:
    """The columns of the source, and the computed ones, each with the node of its expression."""
    cure = "write `columns: {name: type}`"
    if "columns" not in body.entries:
        problems.add(key, f"entity `{name}` has no `columns`", cure)
    columns = as_map(body.get("columns"), f"`columns` of entity `{name}`", cure, problems)
    if columns and len(columns.entries) > MAX_COLUMNS:
        what = f"entity `{name}` declares {len(columns.entries)} columns; one write holds {MAX_COLUMNS} at most"
        problems.add(columns, what, "declare only the columns that products use; the job stores the others undeclared")
    types: dict[str, ColumnType] = {}
    expressions: dict[str, tuple[ColumnType, YamlNode]] = {}
    for column, (column_key, node) in columns.entries.items() if columns else ():
        as_text(column_key, "the name of a column", "use text without control characters", problems)
        if parse_element(column) or parse_compared(column) or computed_column(column):
            meant = "elements" if parse_element(column) else "folded text" if parse_compared(column) else "expression"
            what = f"the column name `{column}` means the {meant} of another column"
            problems.add(column_key, what, "rename the column")
        if column_type := read_column(column_key, node, problems):
            expression = node.get("as") if isinstance(node, Map) else None
            if expression is None:
                types[column] = column_type
            else:
                expressions[column] = column_type, expression
    return types, expressions


def read_column(key: Scalar, node: YamlNode, problems: Problems) -> ColumnType | None:
    """A column: its type, or a mapping with the words of `members.COLUMN`."""
    column, said = key.text, node if isinstance(node, Map) else None
    type_node: YamlNode | None = node
    if said:
        check_keys(said, f"column `{column}`", COLUMN, problems)
        type_node = said.get("type")
        if type_node is None:
            problems.add(key, f"column `{column}` has no `type`", f"write `{column}: {{type: string}}`")
    found = _read_type(column, type_node, problems) if type_node else None
    if said is None or found is None:
        return found
    compare = read_compare(said.get("compare"), problems)
    if "as" in said.entries and "not_null" in said.entries:
        what = f"column `{column}` is computed, so the source never sends it"
        problems.add(said.key_node("not_null"), what, "remove `not_null`")
    if compare and found.name != "string":
        what = f"column `{column}` is {found}, which has no text to compare"
        problems.add(said.key_node("compare"), what, "leave out `compare`, or declare the column `string`")
    return replace(found, compare=compare)


def _read_type(column: str, node: YamlNode, problems: Problems) -> ColumnType | None:
    cure = 'write a type, e.g. `string` or `"string[]"`'
    text = as_text(node, f"the type of column `{column}`", cure, problems)
    try:
        return parse_type(text) if text else None
    except ValueError as error:
        problems.add(node, f"the type of column `{column}` cannot be read", str(error))
        return None


def read_compare(node: YamlNode | None, problems: Problems) -> Compare:
    """How the text of a column compares: a word, or a list of words."""
    if node is None:
        return ()
    words: tuple[CompareWord, ...] = get_args(CompareWord)
    items = node.items if isinstance(node, Sequence) else (node,)
    read = [_read_choice(item, "compare", words, problems) for item in items]
    return united([tuple(word for word in read if word)])


def _read_not_null(body: Map, problems: Problems) -> frozenset[str]:
    """The columns that say `not_null: true`."""
    columns = body.get("columns")
    maps = (
        {name: node for name, (_, node) in columns.entries.items() if isinstance(node, Map)}
        if isinstance(columns, Map)
        else {}
    )
    return frozenset(name for name, node in maps.items() if as_flag(node, "not_null", problems, f" of column `{name}`"))


def _read_key(
    name: str, key: Scalar, body: Map, columns: Mapping[str, ColumnType] | None, problems: Problems
) -> tuple[str, ...]:
    """The key columns. Checks that `columns` has each as a scalar; skips that check where `columns` is None (it has problems)."""
    node = body.get("key")
    cure = "write the primary key's columns, e.g. `key: [id]`"
    if node is None:
        problems.add(key, f"entity `{name}` has no `key`", cure)
        return ()
    parts = as_texts(node, f"`key` of entity `{name}`", cure, problems)
    if not parts and describe_node(node) == "an empty list":
        problems.add(node, f"`key` of entity `{name}` is empty", cure)
    seen: set[str] = set()
    for item, column in parts:
        if column in seen:
            problems.add(item, f"`key` of entity `{name}` names `{column}` twice", "name each column once")
        seen.add(column)
        if columns is None:
            continue
        if column not in columns:
            problems.add(item, f"entity `{name}` has no column `{column}` for its `key`", suggest(column, columns))
        elif columns[column].kind is None:
            what = f"key column `{column}` of entity `{name}` is {columns[column]}"
            problems.add(item, what, "use scalar columns in a key, not json or arrays")
    return tuple(column for _, column in parts)


def _read_options(name: str, body: Map, problems: Problems) -> tuple[str, int]:
    shards_node = body.get("shards")
    topic = _read_topic(name, body, problems)
    shards = as_count(shards_node, "`shards`", MOST_SHARDS, problems) if shards_node else 1
    return topic or name, shards or 1


def _read_topic(name: str, body: Map, problems: Problems) -> str | None:
    """The topic, by default the name of the entity. An entity has one topic (docs/kafka.md says why)."""
    node = body.get("topic") or Scalar(file=body.file, line=body.line, value=name, text=name)
    if isinstance(node, Sequence) or (isinstance(node, Scalar) and _PATTERN.intersection(node.text)):
        what = f"entity `{name}` has one topic, not a list or a pattern of topics"
        cure = "let the connector route the topics to one (ByLogicalTableRouter of Debezium), or make an entity of each"
        problems.add(node, what, cure)
        return None
    return as_topic(node, problems)


def _read_by_column(
    name: str,
    body: Map,
    word: str,
    choices: tuple[Choice, ...],
    columns: Mapping[str, ColumnType] | None,
    problems: Problems,
) -> Choice | Mapping[str, Choice] | None:
    """The choice of all columns, or of the named ones. `columns` None: they have problems, and the names are not checked."""
    node = body.get(word)
    if not isinstance(node, Map):
        return _read_choice(_null_word(node, choices), word, choices, problems)
    found: dict[str, Choice] = {}
    for column, (key, value) in node.entries.items():
        choice = _read_choice(_null_word(value, choices), word, choices, problems)
        if columns is not None and column not in columns:
            problems.add(key, f"entity `{name}` has no column `{column}` for its `{word}`", suggest(column, columns))
        elif columns is not None and word == DECIMALS and columns[column].name not in ("decimal", "float"):
            what = f"column `{column}` of entity `{name}` is {columns[column]}, which takes no text of numbers"
            problems.add(key, what, "name columns of type decimal or float in `decimals`")
        if choice is not None:
            found[column] = choice
    return found


def _check_not_key(name: str, body: Map, key: tuple[str, ...], problems: Problems) -> None:
    """Checks that `unrepresentable` names no column of the key, which is never null."""
    node = body.get(UNREPRESENTABLE)
    for column, (place, _) in node.entries.items() if isinstance(node, Map) else ():
        if column in key:
            what = f"column `{column}` is in the key of entity `{name}`, which is never null"
            problems.add(place, what, f"remove `{column}` from `{UNREPRESENTABLE}`")


def _null_word(node: YamlNode | None, choices: tuple[str, ...]) -> YamlNode | None:
    """The node; the word `null` for YAML's null, where it is a choice."""
    is_null = isinstance(node, Scalar) and node.value is None and node.text == "null" and "null" in choices
    return Scalar(file=node.file, line=node.line, value="null", text="null") if node and is_null else node


def _read_table(body: Map, key: str, problems: Problems) -> str:
    """A table in the source; empty where the entity names none."""
    node = body.get(key)
    cure = "write the table in the source, e.g. `public.users`"
    return (as_text(node, f"`{key}`", cure, problems) or "") if node else ""


def _read_flags(name: str, body: Map, record_format: str | None, problems: Problems) -> tuple[DeleteFlag, ...]:
    """The members that say a delete: one, or a list of them."""
    node = body.get("deleted")
    if node is None:
        if record_format == "row":
            what = f"entity `{name}` pins `format: row` and has no `deleted`"
            problems.add(
                body.key_node("format"), what, "write `deleted: {column: op_type, values: [D]}`, or `format: plain`"
            )
        return ()
    member = FORMATS[record_format].operation if record_format else ""
    if member:
        what = f"entity `{name}` pins `format: {record_format}`, whose `{member}` says the deletes"
        problems.add(node, what, "remove `deleted`")
    flags = []
    for item in node.items if isinstance(node, Sequence) else [node]:
        cure = "write `deleted: {column: op_type, values: [D]}`"
        flag = as_map(item, f"`deleted` of entity `{name}`", cure, problems)
        if flag is None:
            continue
        check_keys(flag, f"`deleted` of entity `{name}`", FLAG, problems)
        if "column" not in flag.entries:
            problems.add(item, f"`deleted` of entity `{name}` has no `column`", cure)
        column_node, values = flag.get("column"), flag.get("values")
        column = as_text(column_node, "`column`", cure, problems) if column_node else None
        texts = _flag_values("values", values, cure, problems) if values else ()
        empties = flag.get("truncates")
        emptied = _flag_values("truncates", empties, cure, problems) if empties else ()
        if emptied and not texts:
            problems.add(item, "`truncates` needs `values`: without them every value says a delete", cure)
        if both := set(texts) & set(emptied):
            problems.add(item, f"`{sorted(both)[0]}` says a delete and a truncate", "keep it in one of the lists")
        if column is not None:
            flags.append(DeleteFlag(column, texts, emptied))
    return tuple(flags)


def _flag_values(word: str, node: YamlNode, cure: str, problems: Problems) -> tuple[str, ...]:
    """The values as texts; YAML reads `true` and `1` as no text."""
    items = node.items if isinstance(node, Sequence) else ()
    wrong = [item for item in items if not isinstance(item, Scalar) or item.value is None or not item.text]
    if not items or wrong:
        problems.add(wrong[0] if wrong else node, f"`{word}` is a list of texts, numbers, true or false", cure)
    scalars = (item for item in items if isinstance(item, Scalar))
    return tuple(flag_text(item.value) if isinstance(item.value, bool) else item.text for item in scalars)


def _read_choice(node: YamlNode | None, key: str, choices: tuple[Choice, ...], problems: Problems) -> Choice | None:
    """The choice below a key; None where the entity has none of them."""
    if node is None:
        return None
    text = as_text(node, f"`{key}`", f"write one of {', '.join(choices)}", problems)
    choice = next((known for known in choices if known == text), None)
    if text is not None and choice is None:
        problems.add(node, f"there is no choice `{text}` for `{key}`", suggest(text, choices))
    return choice

"""Reads a product file: one document definition, with `publish`, which says when its documents go out.

A root may be a group: one document for each value of columns of a table.

    root: {group: sale, by: [item]}                         a document for each item
    root: {group: sale, by: {day: "at::date", shop: shop}, where: not cancelled, join: {...}}

The group becomes a root that no table has, whose first join finds its rows. The name of that join is the name of the table. So
the other readers see an ordinary tree, and aggregates without the name of a `many` read these rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

from processor.language.definitions.entities import read_column, read_compare, with_computed
from processor.language.definitions.expressions import computed_node, read_row_expression
from processor.language.definitions.joins import read_joins
from processor.language.definitions.names import NameScope, of_each_row, parse_path
from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.selections import check_members, read_selection, read_value, read_where
from processor.language.definitions.shape import (
    GROUP,
    PRODUCT,
    PUBLISH,
    as_map,
    as_name,
    as_text,
    as_texts,
    as_topic,
    check_keys,
    read_clock,
    read_duration,
    write_duration,
)
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.expressions.expression import (
    Column,
    Computed,
    Expression,
    ExpressionNode,
    Literal,
    aggregates,
    is_built,
    node_of,
    reads_clock,
    references,
)
from processor.language.product.expressions.zones import installed, package_of
from processor.language.product.join_fields import type_of, write_computed, zones_in
from processor.language.product.ordered import obstacles
from processor.language.product.product import (
    AT_MOST,
    OPEN,
    Compares,
    DocumentFormat,
    Gate,
    GroupColumn,
    GroupEntity,
    KeyPart,
    Product,
    compared_by_entity,
    group_entity,
)
from processor.values.entity import ColumnType, Compare, ComputedColumn, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The name and the topic of a product, with their nodes. The reader knows them even when the product's tree has problems."""

    name: str
    name_node: YamlNode
    topic: str
    topic_node: YamlNode


def read_product(
    root: YamlNode, entities: Mapping[str, Entity | None], problems: Problems
) -> tuple[Heading | None, Product | None]:
    """The heading and the product of a file. Each is None where it has problems."""
    before = len(problems)
    cure = "write at least `product: name` and `root: entity`; move a file that is not a product elsewhere"
    body = as_map(root, "a product file", cure, problems)
    if body is None:
        return None, None
    if "product" not in body.entries:
        problems.add(body, "the file has no `product:`", cure)
        return None, None
    check_keys(body, "a product", PRODUCT, problems)
    heading = _read_heading(body, problems)
    if (compare := body.get("compare")) is not None:
        entities = _read_compares(compare, entities, problems)
    pinned = _read_release(body, problems)
    if (computed := body.get("computed")) is not None:
        entities = _read_computed(computed, entities, pinned, problems)
    if "sql" in body.entries:
        from processor.language.definitions.sql import read_sql  # few products need it: `check` starts sooner

        body = read_sql(body, entities, problems)
    reads: set[tuple[str, str]] = set()
    clock = 0 if (step := body.get("clock") if body else None) is None else read_clock(step, problems)
    by: tuple[GroupColumn, ...] = ()
    if body and isinstance(groups := body.get("root"), Map):
        scope = NameScope(entities=entities, entity="", reads=reads, tzdata=pinned)
        grouped = _read_group(groups, body, scope, problems)
        if grouped is None:
            return heading, None
        group, by, body = grouped
        entity, with_group = group.rows, {**entities, group.name: group}
        scope = NameScope(entities=with_group, entity=group.name, rows=entity, reads=reads, clock=clock, tzdata=pinned)
    else:
        named = _read_root(body, entities, problems) if body else None
        if body is None or named is None:
            return heading, None
        entity, scope = named, NameScope(entities=entities, entity=named, reads=reads, clock=clock, tzdata=pinned)
    joins = read_joins(body, scope, problems)
    scope = replace(scope, joins=joins)
    selection = read_selection(body, scope, problems)
    where = read_where(body.get("where"), scope, problems)
    check_members(body, selection, joins, scope, problems)
    message_key = tuple(_read_key(body, scope, problems))
    headers = tuple(_read_headers(body, scope, problems))
    partition_by = tuple(_read_partition_by(body, scope, problems))
    document_format = _read_format(body, problems)
    gate = read_gate(body.get("publish"), problems)
    if heading is None or len(problems) > before:
        return heading, None
    valid_joins = tuple(join for join in joins.values() if join is not None)
    product = Product(
        name=heading.name,
        topic=heading.topic,
        root=entity,
        selection=selection,
        joins=valid_joins,
        where=where,
        format=document_format,
        gate=gate,
        by=by,
        key=message_key,
        headers=headers,
        partition_by=partition_by,
        clock=clock,
    )
    product = replace(product, compare=_compares(product, entities), computed=_computed(reads, entities))
    product = replace(product, tzdata=next((release for _, release in zones_in(product)), ""))
    for what, cure in obstacles(product, entities):
        problems.add(body.key_node("product"), what, cure)
    if gate.whole:
        _check_transactions(body, product, entities, problems)
    if document_format == "avro":
        _check_names(body, product, entities, problems)
    return heading, product


def _read_release(body: Map, problems: Problems) -> str:
    """The release of the time zones that the product pins; empty: none, so that the installed one counts."""
    node, cure = body.get("tzdata"), "write the release that is installed, `tzdata: 2026f`, or remove the word"
    text = (as_text(node, "`tzdata`", cure, problems) or "") if node else ""
    if node and text and not re.fullmatch(r"\d{4}[a-z]", text):
        problems.add(node, f"`tzdata` is `{text}`", cure)
        return ""
    if node and text and not problems.stored and text != installed():
        problems.add(
            node, f"`tzdata` is {text}, and {installed()} is installed", f"pip install {package_of(text)}, or remove it"
        )
    return text


def _read_compares(
    node: YamlNode, entities: Mapping[str, Entity | None], problems: Problems
) -> Mapping[str, Entity | None]:
    """The entities with the columns as they compare in the product. A column that `compare` does not name compares as it is."""
    said: dict[tuple[str, str], Compare] = {}
    cure = "write `compare: {entity: {column: ci}}`"
    body = None if isinstance(node, Map) and not node.entries else as_map(node, "`compare`", cure, problems)
    for name, (key, of_entity) in body.entries.items() if body else ():
        columns = as_map(of_entity, f"`compare` of `{name}`", cure, problems)
        entity = entities.get(name)
        if name not in entities:
            problems.add(key, f"there is no entity `{name}`", suggest(name, entities))
        for column, (column_key, words) in columns.entries.items() if columns and entity else ():
            said[name, column] = read_compare(words, problems)
            declared = entity.columns.get(column) if entity else None
            if entity and declared is None:
                problems.add(column_key, f"entity `{name}` has no column `{column}`", suggest(column, entity.columns))
            elif declared and declared.name != "string":
                what = f"`{name}.{column}` is {declared}, which has no text to compare"
                problems.add(column_key, what, "name columns of type string in `compare`")
    return {name: entity and _compared(entity, said, problems) for name, entity in entities.items()}


def _read_computed(
    node: YamlNode, entities: Mapping[str, Entity | None], tzdata: str, problems: Problems
) -> Mapping[str, Entity | None]:
    """The entities with the computed columns of the product, in place of their own."""
    cure = "write `computed: {entity: {column: {type: T, as: expression}}}`"
    body = as_map(node, "`computed`", cure, problems)
    found: dict[str, dict[str, tuple[ColumnType, YamlNode]]] = {}
    for name, (key, of_entity) in body.entries.items() if body else ():
        if name not in entities:
            problems.add(key, f"there is no entity `{name}`", suggest(name, entities))
        columns = as_map(of_entity, f"`computed` of `{name}`", cure, problems)
        for column, (column_key, said) in columns.entries.items() if columns else ():
            declared, expression = (
                read_column(column_key, said, problems),
                said.get("as") if isinstance(said, Map) else None,
            )
            if expression is None:
                problems.add(column_key, f"column `{column}` has no `as`", cure)
            elif declared:
                found.setdefault(name, {})[column] = declared, expression
    return {
        name: entity and with_computed(entity, found.get(name, {}), problems, tzdata)
        for name, entity in entities.items()
    }


def _computed(
    reads: Iterable[tuple[str, str]], entities: Mapping[str, Entity | None]
) -> Mapping[str, Mapping[str, ComputedColumn]]:
    """The computed columns that the product reads, with those that their expressions name, in the order of their entities."""
    named: dict[str, set[str]] = {}
    for name, column in reads:
        named.setdefault(name, set()).add(column)
    found: dict[str, dict[str, ComputedColumn]] = {}
    for name in sorted(named):
        entity = entities[name]
        computed = entity.computed if entity else {}
        for column, made in reversed(list(computed.items())):  # an expression names columns before it
            if column in named[name]:
                named[name] |= {other for other in computed if re.search(rf"\b{re.escape(other)}\b", made.text)}
        found[name] = {column: made for column, made in computed.items() if column in named[name]}
    return found


def _compared(entity: Entity, said: Mapping[tuple[str, str], Compare], problems: Problems) -> Entity:
    found = {name: said.get((entity.name, name), ()) for name in entity.columns}
    if all(column.compare == found[name] for name, column in entity.columns.items()):
        return entity
    columns = {name: replace(column, compare=found[name]) for name, column in entity.columns.items()}
    again = {name: (replace(c.type, compare=c.compare), _text_node(c.text)) for name, c in entity.computed.items()}
    return with_computed(replace(entity, columns=columns), again, problems)


def _text_node(text: str) -> Scalar:
    return Scalar(file="entities.yaml", line=1, value=text, text=text)


def _compares(product: Product, entities: Mapping[str, Entity | None]) -> Compares:
    """How the columns compare that the product compares, without those that compare as they are."""
    found: dict[str, dict[str, Compare]] = {}
    for name, columns in compared_by_entity(product).items():
        entity = entities[name]
        for column in sorted(columns) if entity else ():
            if entity and (declared := entity.columns.get(column)) and declared.compare:
                found.setdefault(name, {})[column] = declared.compare
    return found


def _read_heading(body: Map, problems: Problems) -> Heading | None:
    name_node = body.entries["product"][1]
    name = as_name(name_node, "the name of a product", problems)
    topic_node = body.get("topic")
    if name is None:
        return None
    topic = as_topic(topic_node or name_node, problems)
    return Heading(name=name, name_node=name_node, topic=topic or name, topic_node=topic_node or name_node)


def _read_root(body: Map, entities: Mapping[str, Entity | None], problems: Problems) -> str | None:
    node = body.get("root")
    if node is None:
        problems.add(body.key_node("product"), "the product has no `root`", "write `root: entity`")
        return None
    entity = as_text(node, "`root`", "write the name of an entity", problems)
    if entity is not None and entity not in entities:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, entities))
        return None
    return entity


def _read_format(body: Map, problems: Problems) -> DocumentFormat:
    node = body.get("format")
    if node is None:
        return "json"
    formats: tuple[DocumentFormat, ...] = get_args(DocumentFormat)
    text = as_text(node, "`format`", f"write one of {', '.join(formats)}", problems)
    found = next((known for known in formats if known == text), None)
    if text is not None and found is None:
        problems.add(node, f"there is no format `{text}`", suggest(text, formats))
    return found or "json"


RESERVED: Final = "statestore."
_HEADERS: Final = "write `headers: {tenant: tenant_id}`, a name and a column or an expression of the root"


CONSTANTS: Final = ("string", "int")
"""The types of constants in a key."""


def _read_key(body: Map, scope: NameScope, problems: Problems) -> Iterator[KeyPart]:
    """The members of `key`: each column of the root's key once, and constants."""
    cure = "write `key: {kind: \"'user'\", id: id}`, constants and the columns of the root's key"
    said, entity = as_map(body.get("key"), "`key`", cure, problems), scope.entities.get(scope.entity)
    named: list[str] = []
    for name, (_, node) in said.entries.items() if said and entity else ():
        before, path = len(problems), parse_path(node.text.strip()) if isinstance(node, Scalar) else None
        if entity and path and path[0] not in entity.columns:
            what = f"entity `{scope.entity}` has no column `{path[0]}`"
            problems.add(node, what, f"a constant has the quotes of SQL: `{name}: \"'{path[0]}'\"`")
            continue
        read = read_value(node, f"`{name}` of `key`", NameScope(entities=scope.entities, entity=scope.entity), problems)
        match read.expression:
            case Column(name=column) if read.valid and entity and column in entity.key and column not in named:
                named.append(column)
                yield KeyPart(name, column=column)
                continue
            case Computed(node=Literal(value=str() | int() as constant)) if read.valid and read.type in CONSTANTS:
                yield KeyPart(name, constant=constant)
                continue
        if len(problems) == before:
            what = f"`{name}` of `key` is neither a constant nor a column of the root's key that is not there yet"
            problems.add(node, what, cure)
    lacking = [column for column in entity.key if column not in named] if said and entity else []
    if lacking and said:
        what = f"`key` lacks `{lacking[0]}` of the key of `{scope.entity}`, so two roots could have one key"
        problems.add(body.key_node("key"), what, f"add `{lacking[0]}: {lacking[0]}`")


def _read_headers(body: Map, scope: NameScope, problems: Problems) -> Iterator[tuple[str, Expression]]:
    """The headers of `headers`, over the columns of the root alone."""
    said = as_map(body.get("headers"), "`headers`", _HEADERS, problems)
    for name, (key, node) in said.entries.items() if said else ():
        if as_text(key, "the name of a header", _HEADERS, problems) and name.lower().startswith(RESERVED):
            what = f"the header `{name}` begins with `{RESERVED}`, as those that statestore gives each message"
            problems.add(key, what, "give it another name")
        read = read_value(node, f"the header `{name}`", scope, problems)
        if read.valid and (what := _beyond_the_root(node_of(read.expression))):
            problems.add(node, f"the header `{name}` {what}", "show the value in `fields`")
        yield name, read.expression


def _read_partition_by(body: Map, scope: NameScope, problems: Problems) -> Iterator[tuple[str, Expression]]:
    """The columns of the root that choose the partition of its messages."""
    node, cure = body.get("partition_by"), "write `partition_by: [tenant_id]`, columns of the root"
    columns = as_texts(node, "`partition_by`", cure, problems) if node is not None else []
    if node is not None and isinstance(node, Sequence) and not node.items:
        problems.add(body.key_node("partition_by"), "`partition_by` is empty", cure)
    for item, name in columns:
        type_ = scope.type_of(name)
        if scope.columns is not None and name not in scope.names:
            problems.add(item, f"`{scope.entity}` has no column `{name}`", suggest(name, scope.names))
            continue
        if [name for _, name in columns].count(name) > 1:
            problems.add(item, f"`partition_by` names `{name}` twice", "name each column once")
        elif type_ and (type_.array or type_.name in ("json", "float")):
            what = f"`{name}` is {type_}, whose equal values may look different"
            problems.add(item, what, "partition by another column, or by a computed one")
        column = Column(name=name)
        yield name, computed_node(column, scope) or column


def _beyond_the_root(node: ExpressionNode) -> str:
    """Why an expression is no value of the root's own columns; empty where it is one."""
    if is_built(node):
        return "builds json"
    if reads_clock(node):
        return "reads the clock, whose time is not in the row"
    own = all(isinstance(one, Column) and not (one.path or one.up) for one in references(node))
    return (
        "" if own and not any(True for _ in aggregates(node)) else "reads a join, and not the columns of the root alone"
    )


def _check_names(body: Map, product: Product, entities: Mapping[str, Entity | None], problems: Problems) -> None:
    """Adds a problem where Avro cannot tell two members apart."""
    from processor.language.product.avro import NAMES_CURE, avro_schema  # few products need it: `check` starts sooner

    try:
        avro_schema(product, {name: entity for name, entity in entities.items() if entity is not None})
    except ValueError as error:
        problems.add(body.key_node("format"), str(error), NAMES_CURE)


def _check_transactions(body: Map, product: Product, entities: Mapping[str, Entity | None], problems: Problems) -> None:
    """Adds a problem where no table of the product says where its transactions end."""
    names = {product.root, *(join.entity for _, join in product.walk())}
    read = [entity for entity in map(entities.get, names) if entity is not None]
    if not any(entity.transactions for entity in read):
        problems.add(
            body.key_node("publish"),
            "`transactions: whole` needs the connector's transaction metadata, and no entity of the product names its topic",
            "write `transactions: TOPIC` in entities.yaml, and set provide.transaction.metadata = true in the connector",
        )


DURATIONS: Final = ("quiet", "every", "at_most")


def read_gate(node: YamlNode | None, problems: Problems) -> Gate:
    """The gate of a product; `OPEN` where it has none, or has problems."""
    before = len(problems)
    body = as_map(node, "`publish`", "write one of `transactions`, `quiet` and `every` below it", problems)
    if body is None:
        return OPEN
    check_keys(body, "`publish`", PUBLISH, problems)
    found = {name: _read_wait(body, name, problems) for name in DURATIONS}
    waits = {name: seconds for name, seconds in found.items() if seconds is not None}
    whole = _read_transactions(body, problems)
    longest = max(waits.get("quiet", 0.0), waits.get("every", 0.0))
    at_most = waits.pop("at_most", max(AT_MOST, longest))
    if at_most < longest:
        what = f"`at_most` is {write_duration(at_most)}, and `quiet` or `every` is {write_duration(longest)}"
        problems.add(body.key_node("at_most"), what, f"write `at_most: {write_duration(longest)}` or more")
    if len(problems) == before and not whole and not waits:
        cure = "write one of `transactions: whole`, `quiet: 2 s` and `every: 30 s`"
        problems.add(body.key_node("at_most"), "`at_most` bounds a wait, and `publish` asks for none", cure)
    return Gate(whole=whole, at_most=at_most, **waits) if len(problems) == before else OPEN


def _read_wait(body: Map, name: str, problems: Problems) -> float | None:
    node = body.get(name)
    return None if node is None else read_duration(node, f"`{name}`", problems)


def _read_transactions(body: Map, problems: Problems) -> bool:
    node = body.get("transactions")
    if node is None:
        return False
    cure = "write `transactions: whole`, or leave it out"
    text = as_text(node, "`transactions`", cure, problems)
    if text is not None and text != "whole":
        problems.add(node, f"`transactions` is `{text}`", cure)
    return text == "whole"


_BY = "write the columns of a group, `by: [item]`, or `by: {day: at::date}`"
_CURES = {
    "float": "cast it to decimal or text",
    "json": "take a part of it, `(data ->> 'kind')`",
}


def _read_group(
    root: Map, body: Map, scope: NameScope, problems: Problems
) -> tuple[GroupEntity, tuple[GroupColumn, ...], Map] | None:
    """The group that `root` of a product means, its columns, and the product's mapping with the join that finds its rows.
    `scope`: of the product. None: `root` has problems."""
    before, entities = len(problems), scope.entities
    check_keys(root, "`root`", GROUP, problems)
    for word in ("group", "by"):
        if word not in root.entries:
            problems.add(root, f"`root` has no `{word}`", "write `root: {group: entity, by: [column]}`")
    node = root.get("group")
    name = as_text(node, "`group`", "write the name of an entity", problems) if node is not None else None
    if node is not None and name is not None and name not in entities:
        problems.add(node, f"there is no entity `{name}`", suggest(name, entities))
    rows = entities.get(name or "")
    if rows is None or len(problems) > before:
        return None
    by = tuple(_group_columns(root, rows, replace(scope, entity=rows.name), problems))
    if len(problems) > before:
        return None
    fields = [column.field for column in by]
    if not by or len({*fields}) < len(fields):
        problems.add(root.key_node("by"), "`by` names a column twice" if by else "`by` is empty", _BY)
    elif {*rows.key} <= {*fields}:
        what = f"`by` has the whole key of `{rows.name}`, so each row is a group"
        problems.add(root.key_node("by"), what, f"write `root: {rows.name}`")
    joined = _with_rows(root, body, rows.name, by, problems)
    if len(problems) > before:
        return None
    return group_entity(rows, by), by, joined


def _group_columns(root: Map, rows: Entity, scope: NameScope, problems: Problems) -> Iterator[GroupColumn]:
    """The columns of `by`: a list of columns, or a mapping from a name to a column or an expression."""
    node = root.get("by")
    named: list[tuple[YamlNode, str, YamlNode]]
    if isinstance(node, Map):
        named = [(key, name, value) for name, (key, value) in node.entries.items()]
    else:
        named = [(item, text, item) for item, text in as_texts(node, "`by`", _BY, problems)] if node else []
    for key, name, value in named:
        text = as_text(value, f"`{name}` of `by`", _BY, problems)
        field = None if text is None else _group_field(text.strip(), value, scope, problems)
        if text is None or field is None:
            continue
        type_ = type_of(field, rows)
        if what := _no_group(type_):
            cure = _CURES.get(
                "json" if type_.array else type_.name,
                "write `compare: {}` in the product, and group by `lower(...)` of it",
            )
            problems.add(key, f"`{text}` is {what}", cure)
        yield GroupColumn(name, field, text.strip())


def _group_field(text: str, node: YamlNode, scope: NameScope, problems: Problems) -> str | None:
    """The field of the rows that holds a column of the group."""
    if text in scope.computed:
        scope.reads.add((scope.entity, text))
        return scope.computed[text].field
    if text in (scope.columns or ()):
        return text
    path = parse_path(text)
    if path is not None:
        what = f"entity `{scope.entity}` has no column `{text}`"
        problems.add(node, what, suggest(text, scope.names) if not path[1:] else "group by columns of the row itself")
        return None
    made = read_row_expression(of_each_row(text, scope), node, scope, problems)
    return None if made is None else write_computed(made.node, made.compare)


def _no_group(type_: ColumnType) -> str:
    """Why a value of this type makes no group; empty where it does. Two values are one group only where they are one key."""
    if type_.array or type_.name in ("json", "float"):
        return f"{type_}, whose equal values may look different: a document needs one key"
    if type_.compare:
        compare = " and ".join(type_.compare)
        return f"text that compares by {compare}: equal texts may look different, and a document needs one key"
    return ""


def _with_rows(root: Map, body: Map, rows: str, by: tuple[GroupColumn, ...], problems: Problems) -> Map:
    """The product's mapping, with the join that finds the rows of a group before its other joins."""
    at = root.entries["group"][0]

    def scalar(text: str | bool) -> Scalar:
        return Scalar(file=at.file, line=at.line, value=text, text=str(text))

    def entry(key: str, value: YamlNode) -> tuple[Scalar, YamlNode]:
        return replace(at, value=key, text=key), value

    on = Map(file=at.file, line=at.line, entries={c.text: entry(c.text, scalar(c.name)) for c in by})
    words = {"many": entry("many", scalar(rows)), "on": entry("on", on), "required": entry("required", scalar(True))}
    words |= {word: root.entries[word] for word in ("where", "join") if word in root.entries}
    join = body.get("join")
    others = as_map(join, "`join`", "write `join: {name: {one: entity, on: ...}}`", problems) if join else None
    shown = body.get("embed")
    named: dict[str, tuple[Scalar, YamlNode]] = {**(others.entries if others else {})}
    for other in (named, shown.entries if isinstance(shown, Map) else {}):
        if rows in other:
            what = f"`{rows}` is the name of the rows of a group, and of a join"
            problems.add(other[rows][0], what, "rename the join")
    joined = {rows: entry(rows, Map(file=at.file, line=at.line, entries=words)), **named}
    entries = {**body.entries, "join": entry("join", Map(file=at.file, line=at.line, entries=joined))}
    return replace(body, entries=entries)

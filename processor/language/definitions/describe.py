"""Writes the model as definitions: JSON values that `load` reads back to equal model values.

The values are equal for every model that `load` can make: there, the `join`s of a level come before its `embed`s.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from processor.language.definitions.names import write_path
from processor.language.definitions.shape import UNION, write_duration
from processor.language.product.expressions.expression import Column, Expression, Path
from processor.language.product.product import (
    BareValue,
    Fields,
    Gate,
    Join,
    KeyPart,
    OrderTerm,
    Product,
    Selection,
    WholeRow,
    embeds,
    members_below,
)
from processor.values import canonical_json
from processor.values.entity import PLACEHOLDER, ComputedColumn, Entity


def write_expression(expression: Expression) -> str:
    """The expression as an author writes it."""
    return write_path(expression) if isinstance(expression, Column) else expression.text


def describe_entity(entity: Entity) -> dict[str, Any]:
    """The entity's value in `entities.yaml`; the key there is the entity's name."""
    described: dict[str, Any] = {
        "topic": entity.topic,
        "key": list(entity.key),
        "columns": {name: _column(name, entity) for name in entity.columns}
        | {name: _computed(column) for name, column in entity.computed.items()},
        "shards": entity.shards,
    }
    if entity.truncate != "refuse":
        described["truncate"] = entity.truncate
    if entity.keep != "all":
        described["keep"] = entity.keep
    if entity.source:
        described["source"] = entity.source
    if entity.transactions:
        described["transactions"] = entity.transactions
    if entity.unavailable != PLACEHOLDER:
        described["unavailable"] = entity.unavailable
    if entity.table:
        described["table"] = entity.table
    if entity.deleted:
        described["deleted"] = [
            {"column": flag.column}
            | ({"values": list(flag.values)} if flag.values else {})
            | ({"truncates": list(flag.truncates)} if flag.truncates else {})
            for flag in entity.deleted
        ]
    by_column = {"decimals": entity.decimals, "absent": entity.absent, "unrepresentable": entity.unrepresentable}
    choices = {name: dict(one) if isinstance(one, Mapping) else one for name, one in by_column.items()}
    return described | {name: one for name, one in {"format": entity.format, **choices}.items() if one is not None}


def _column(name: str, entity: Entity) -> Any:
    """A column: its type, or a mapping with its words."""
    column = entity.columns[name]
    words: dict[str, Any] = {"compare": list(column.compare)} if column.compare else {}
    words |= {"not_null": True} if name in entity.not_null else {}
    return {"type": str(column), **words} if words else str(column)


def _computed(column: ComputedColumn) -> dict[str, Any]:
    compare = {"compare": list(column.compare)} if column.compare else {}
    return {"type": str(column.type), "as": column.text, **compare}


def describe_product(product: Product) -> dict[str, Any]:
    """The value of the product's file."""
    heading: dict[str, Any] = {"product": product.name, "root": _root(product), "topic": product.topic}
    if product.format != "json":
        heading["format"] = product.format
    if product.key:
        heading["key"] = describe_key(product)
    if product.headers:
        heading["headers"] = {name: write_expression(of) for name, of in product.headers}
    if product.partition_by:
        heading["partition_by"] = [name for name, _ in product.partition_by]
    if product.gated:
        heading["publish"] = describe_gate(product.gate)
    if product.clock:
        heading["clock"] = write_duration(product.clock)
    if product.tzdata:
        heading["tzdata"] = product.tzdata
    if product.compare:
        compare = {name: {c: list(words) for c, words in of.items()} for name, of in product.compare.items()}
        heading["compare"] = compare
    if product.computed:
        heading["computed"] = {
            name: {column: _computed(made) for column, made in of.items()} for name, of in product.computed.items()
        }
    if product.where is not None:
        heading["where"] = write_expression(product.where)
    described = heading | _selection(product.selection) | _joins(product.joins)
    if product.by:  # the root has its join
        described["join"] = {name: join for name, join in described["join"].items() if name != product.root}
        described = {word: value for word, value in described.items() if word != "join" or value}
    return described


def describe_key(product: Product) -> dict[str, str]:
    """The value of `key` of a product; empty where its messages have the key of the root."""
    return {part.name: _key_part(part) for part in product.key}


def describe_messages(product: Product) -> dict[str, str]:
    """What a product says of its messages, for people: `key`, `headers` and `partition_by`, each where it has it."""
    headers = {name: write_expression(of) for name, of in product.headers}
    found = {
        "messages by": ", ".join(f"{name} = {of}" for name, of in describe_key(product).items()),
        "headers": ", ".join(f"{name} = {of}" for name, of in headers.items()),
        "partition by": ", ".join(name for name, _ in product.partition_by),
    }
    return {name: text for name, text in found.items() if text}


def _key_part(part: KeyPart) -> str:
    """A column, or a constant as SQL writes it."""
    if part.column:
        return write_path(Column(name=part.column))
    if isinstance(part.constant, str):
        return "'" + part.constant.replace("'", "''") + "'"
    return canonical_json.dumps(part.constant)


def _root(product: Product) -> Any:
    """The root: an entity, or a group with the words of the join that finds its rows."""
    if not product.by:
        return product.root
    names = [column.name for column in product.by]
    plain = all(column.name == column.text for column in product.by)
    by: Any = names if plain else {column.name: column.text for column in product.by}
    rows = _join(product.joins[0], ())
    return {"group": product.root, "by": by} | {word: rows[word] for word in ("where", "join") if word in rows}


_PLAIN: Final = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_][\w.]*(?: [\w.]+)*", re.ASCII | re.IGNORECASE)
_FLOW_WIDTH: Final = 100


def definition_lines(described: Mapping[str, Any], margin: str = "") -> Iterator[str]:
    """A definition as the lines of a file."""
    for name, value in described.items():
        flow = f"{margin}{_flow(name)}: {_flow(value)}"
        if isinstance(value, Mapping) and (len(flow) > _FLOW_WIDTH or margin == "" or "{" in _flow(value)[1:]):
            yield f"{margin}{_flow(name)}:"
            yield from definition_lines(value, margin + "  ")
        else:
            yield flow


def _flow(value: Any) -> str:
    match value:
        case Mapping():
            return f"{{{', '.join(f'{_flow(name)}: {_flow(one)}' for name, one in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case str() if _PLAIN.fullmatch(value):
            return value
    return canonical_json.dumps(value)


def describe_gate(gate: Gate) -> dict[str, str]:
    """The value of `publish` of a product with this gate."""
    waits = {"quiet": gate.quiet, "every": gate.every, "at_most": gate.at_most}
    whole = {"transactions": "whole"} if gate.whole else {}
    return whole | {name: write_duration(seconds) for name, seconds in waits.items() if seconds}


def _selection(selection: Selection) -> dict[str, Any]:
    match selection:
        case WholeRow():
            return {}
        case BareValue(expression=expression):
            return {"value": write_expression(expression)}
        case Fields(members=members):
            if all(expression == Column(name=name) for name, expression in members):
                return {"fields": [name for name, _ in members]}
            return {"fields": {name: write_expression(expression) for name, expression in members}}


def _joins(joins: tuple[Join, ...]) -> dict[str, Any]:
    """The joins of a level, each under its word."""
    joins = tuple(join for join in joins if join.level < 2)
    members = [*members_below(joins)]
    names = {path: (join.name,) for path, join in members}
    written = {join.name: _join(join, names.get(path[:-1], path[:-1])) for path, join in members}
    hidden = {join.name: written[join.name] for _, join in members if not (join.shown or join.part)}
    shown = {join.name: written[join.name] for _, join in embeds(joins)}
    for _, first in (one for one in members if one[1].parts):
        parts = {join.name: (join.part, written[join.name]) for _, join in members if join.part}
        found = [parts[name] for name in (first.name, *first.parts)]
        words = {word: _by_fields(value, first) for word, value in written[first.name].items() if word in UNION}
        union = {part: {w: v for w, v in of.items() if w not in UNION} for part, of in found}
        shown[first.name] = {"union": union, **words}
    return {word: below for word, below in (("join", hidden), ("embed", shown)) if below}


def _by_fields(value: Any, join: Join) -> Any:
    """The value of a word of a union, with the fields of its parts in place of expressions."""
    members = join.selection.members if isinstance(join.selection, Fields) else ()
    names = {write_expression(expression): name for name, expression in reversed(members)}
    if isinstance(value, list):
        return [_by_fields(one, join) for one in value]
    if not isinstance(value, str):
        return value
    descending, text = ("-", value[1:]) if value.startswith("-") else ("", value)
    return f"{descending}{names.get(text, text)}"


def _join(join: Join, above: Path) -> dict[str, Any]:
    """A join. `above`: the path of the join whose rows it joins; empty for the row of its level."""
    on = {
        child: write_path(Column(name=parent, path=above)) if above else parent
        for child, parent in join.written or join.on
    }
    described: dict[str, Any] = {"many" if join.many else "one": join.entity, "on": on}
    if join.where is not None:
        described["where"] = write_expression(join.where)
    if join.required:
        described["required"] = True
    if join.strong:
        described["strong"] = True
    if join.order_by:
        described["order_by"] = [_term(term) for term in join.order_by]
    if join.limit is not None:
        described["limit"] = join.limit
    if join.ordered:
        described["ordered"] = True
    if join.total:
        described["total"] = True
    if join.distinct:
        described["distinct"] = True
    if join.key is not None:
        described["key"] = write_expression(join.key)
    if join.recursive:
        described["recursive"] = join.recursive
    if join.as_list:
        described["as_list"] = True
    return described | _selection(join.selection) | _joins(join.joins)


def _term(order: OrderTerm) -> str:
    return ("-" if order.descending else "") + write_expression(order.by)

"""A product as one PostgreSQL query: its meaning, and the oracle of the tests.

The query reads tables named like the entities, with their declared columns (`table_ddl`). It answers one row per root,
in key order: the root's key columns, then `document` as json. What is stored but not declared has no SQL form.
Each level is a correlated subquery; a `one` join whose columns are used by name is a LATERAL join beside its level.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from textwrap import indent

from processor.model.entity import ColumnType, Entity
from processor.model.product import Bare, Column, Fields, Join, Order, Product, Selection, Whole
from processor.model.sql_text import as_json, json_object, quote, sortable, sql_type, subquery, table_name


def product_sql(product: Product, entities: Mapping[str, Entity], schema: str | None = None) -> str:
    """The query whose rows are the product's documents, without a semicolon; no parameters, no `%` escapes."""
    return _Writer(entities, schema).query(product)


def table_ddl(entity: Entity, schema: str | None = None) -> str:
    """CREATE TABLE for the entity's declared columns. `decimal(p,s)` keeps every digit that comes, like the store."""
    columns = [f"{quote(name)} {sql_type(column)}" for name, column in entity.columns.items()]
    key = ", ".join(map(quote, entity.key))
    body = ",\n  ".join([*columns, f"PRIMARY KEY ({key})"])
    return f"CREATE TABLE {table_name(entity.name, schema)} (\n  {body}\n)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A row that expressions can name: an alias in the query, and its entity."""

    alias: str
    entity: Entity

    def column(self, name: str) -> str:
        return f"{self.alias}.{quote(name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """The rows of one level by path: `()` its own, `("repo",)` a `one` join; `text`: the FROM clause of them."""

    sources: Mapping[tuple[str, ...], _Source]
    text: str

    @property
    def own(self) -> _Source:
        return self.sources[()]

    def find(self, column: Column) -> tuple[str, ColumnType]:
        """The SQL name of a column, and its type."""
        source = self.sources[column.path]
        return source.column(column.name), source.entity.columns[column.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that a join finds: FROM and WHERE as `text`, and the whole order of them."""

    level: _Level
    text: str
    order: str


class _Writer:
    """Writes the parts of one query; aliases are numbered in the order written."""

    def __init__(self, entities: Mapping[str, Entity], schema: str | None) -> None:
        self._entities = entities
        self._schema = schema
        self._numbers = count()

    def query(self, product: Product) -> str:
        level = self._level(product.root, product.joins, _columns(product.selection))
        document = self._value(product.selection, product.joins, level)
        keys = [level.own.column(name) for name in level.own.entity.key]
        selected = ",\n".join([*keys, f"{document} AS document"])
        order = ", ".join(_key_order(level.own))
        return f"SELECT\n{indent(selected, '  ')}\n{level.text}\nORDER BY {order}"

    def _level(self, entity: str, joins: tuple[Join, ...], used: Iterable[Column]) -> _Level:
        """The level's own row and the `one` joins that the used columns name, each after the one that it hangs on."""
        own = self._source(entity)
        sources: dict[tuple[str, ...], _Source] = {(): own}
        clauses = [f"FROM {table_name(entity, self._schema)} AS {own.alias}"]
        for path in _prefixes(used):
            join = _at(joins, path)
            first = self._matching(join, sources[path[:-1]], ())
            rows = f"SELECT {first.level.own.alias}.*\n{first.text}\nORDER BY {first.order}\nLIMIT 1"
            sources[path] = source = self._source(join.entity)
            clauses.append(f"LEFT JOIN LATERAL (\n{indent(rows, '  ')}\n) AS {source.alias} ON true")
        return _Level(sources=sources, text="\n".join(clauses))

    def _source(self, entity: str) -> _Source:
        return _Source(alias=f"t{next(self._numbers)}", entity=self._entities[entity])

    def _matching(self, join: Join, above: _Source, selected: Iterable[Column]) -> _Rows:
        """The rows of a join to one row above, from which `selected` columns are to be read."""
        level = self._level(join.entity, join.joins, [*selected, *(term.by for term in join.order_by)])
        where = "\n  AND ".join(_equal(level.own, child, above, parent) for child, parent in join.on)
        order = ", ".join([*_terms(join.order_by, level), *_key_order(level.own)])
        return _Rows(level=level, text=f"{level.text}\nWHERE {where}", order=order)

    def _joined(self, join: Join, above: _Source) -> str:
        """What an embed shows: an object or value or null, or a list; always json."""
        rows = self._matching(join, above, _columns(join.selection))
        value = self._value(join.selection, join.joins, rows.level)
        if not join.many:
            return subquery(f"SELECT {value}\n{rows.text}\nORDER BY {rows.order}\nLIMIT 1")
        limit = "" if join.limit is None else f"\nLIMIT {join.limit}"
        numbered = f"row_number() OVER (ORDER BY {rows.order}) AS n"
        below = f"SELECT {value} AS v,\n  {numbered}\n{rows.text}\nORDER BY n{limit}"
        return subquery(f"SELECT coalesce(json_agg(r.v ORDER BY r.n), '[]')\nFROM {subquery(below)} AS r")

    def _value(self, selection: Selection, joins: tuple[Join, ...], level: _Level) -> str:
        """What a level is, as json: the bare value, or the object of selected members and embeds."""
        match selection:
            case Bare(of=column):
                return f"to_json({as_json(*level.find(column))})"
            case Fields(members=selected):
                named = selected
            case Whole():
                named = tuple((name, Column(name=name)) for name in level.own.entity.columns)
        members = [(name, as_json(*level.find(column))) for name, column in named]
        members += [(join.name, self._joined(join, level.own)) for join in joins if join.shown]
        return json_object(members)


def _columns(selection: Selection) -> tuple[Column, ...]:
    """The columns that a selection names by an expression."""
    match selection:
        case Bare(of=column):
            return (column,)
        case Fields(members=members):
            return tuple(column for _, column in members)
        case Whole():
            return ()


def _prefixes(used: Iterable[Column]) -> Iterator[tuple[str, ...]]:
    """The paths of `one` joins that columns are reached by, each once, shorter ones first."""
    paths = dict.fromkeys(column.path[:length] for column in used for length in range(1, len(column.path) + 1))
    return iter(sorted(paths, key=len))


def _at(joins: tuple[Join, ...], path: tuple[str, ...]) -> Join:
    join = next(join for join in joins if join.name == path[0])
    return _at(join.joins, path[1:]) if path[1:] else join


def _equal(child: _Source, child_column: str, above: _Source, parent_column: str) -> str:
    """The join condition. A float meets an int or a decimal by its shortest decimal form, not rounded to a double."""
    sides = ((child, child_column), (above, parent_column))
    mixed = len({source.entity.columns[name].name == "float" for source, name in sides}) > 1
    left, right = (
        f"{source.column(name)}::text::numeric"
        if mixed and source.entity.columns[name].name == "float"
        else source.column(name)
        for source, name in sides
    )
    return f"{left} = {right}"


def _terms(order_by: Iterable[Order], level: _Level) -> Iterator[str]:
    for term in order_by:
        yield f"{sortable(*level.find(term.by))} {'DESC' if term.descending else 'ASC'} NULLS LAST"


def _key_order(source: _Source) -> list[str]:
    return [sortable(source.column(name), source.entity.columns[name]) for name in source.entity.key]

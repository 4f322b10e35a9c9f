"""Draws random flat products as trees, and writes each as SQL in one of many equal forms.

A `Drawn` is the meaning: a root, its joins, conditions and members. `as_tree` writes it as a product file, always in one way.
`as_sql` writes it as an analyst might: tables as CTEs, subqueries, LATERAL, with commas, in brackets or with USING; lists grouped
in the query, in subqueries of FROM or of SELECT; the first row by LIMIT, DISTINCT ON or row_number(); EXISTS, IN and anti-joins;
and equal expressions: flipped comparisons, casts in both spellings, other orders, brackets, letter case, comments.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from textwrap import indent
from typing import Any, Final, NamedTuple

COLUMNS: Final[dict[str, dict[str, str]]] = {
    "users": {
        "id": "int", "name": "string", "city": "int", "plan": "string", "score": "decimal(12,2)", "born": "date", "ok": "bool",
    },
    "city": {"id": "int", "name": "string", "country": "string", "size": "int"},
    "country": {"code": "string", "title": "string"},
    "orders": {
        "id": "int", "user_id": "int", "status": "string", "total": "decimal(12,2)", "at": "date", "paid": "bool",
    },
    "line": {"order_id": "int", "number": "int", "item": "string", "qty": "int", "price": "decimal(12,2)"},
    "item": {"sku": "string", "title": "string", "weight": "int"},
    "address": {"id": "int", "user_id": "int", "street": "string", "main": "bool"},
}  # fmt: skip
KEYS: Final = {
    "users": ["id"], "city": ["id"], "country": ["code"], "orders": ["id"], "line": ["order_id", "number"], "item": ["sku"],
    "address": ["id"],
}  # fmt: skip
ENTITIES: Final = {name: {"key": KEYS[name], "columns": columns} for name, columns in COLUMNS.items()}
ONES: Final = {
    "users": [("city", "id", "city")], "city": [("country", "code", "country")], "orders": [("users", "id", "user_id")],
    "line": [("orders", "id", "order_id"), ("item", "sku", "item")], "address": [("users", "id", "user_id")],
    "country": [], "item": [],
}  # fmt: skip
"""Entity -> the entities whose row it names, each with the child's and the own column."""
MANYS: Final = {
    "users": [("orders", "user_id", "id"), ("address", "user_id", "id")], "orders": [("line", "order_id", "id")],
    "city": [("users", "city", "id")], "country": [("city", "country", "code")], "item": [("line", "item", "sku")],
    "line": [], "address": [],
}  # fmt: skip
VALUES: Final[dict[str, list[Any]]] = {
    "int": [0, 1, 2, 3, -1], "string": ["a", "b", "B", "ab", "", "it's"], "decimal": ["0.00", "1.50", "-2.25", "3.00"],
    "bool": [True, False], "date": ["2020-01-01", "2020-02-29", "2021-06-01"],
}  # fmt: skip
TYPES: Final = ("int", "string", "decimal", "bool", "date")


class Node(NamedTuple):
    """An expression. `kind`: `column` (of the join `args[0]`), `literal`, `aggregate`, or the name of an operator or function."""

    kind: str
    args: tuple[Any, ...]
    type: str


Term = tuple[Node, str]
"""A term of an order, and its direction."""
WAYS: Final = ("", "desc nulls last", "desc nulls first", "nulls first")


def key_order(entity: str, join: str) -> list[Term]:
    """The order by the key, which no two rows share."""
    return [(Node("column", (join, key), "int"), "") for key in KEYS[entity]]


@dataclass(slots=True, kw_only=True)
class Joined:
    """A join. way: `one` (by the key), `first` (the first row of `order`), `many` (aggregates read it), `exists` or `absent` (a
    condition asks for its rows), `found` (an expression does). `up`: the column above; `on`: the own one. `listed`: the rows of
    another list below, which the aggregates read in place of its own."""

    name: str
    entity: str
    way: str
    above: str
    on: str
    up: str
    inner: bool = False
    where: list[Node] = field(default_factory=list)
    order: list["Term"] = field(default_factory=list)
    below: list["Joined"] = field(default_factory=list)
    listed: "Joined | None" = None

    @property
    def correlated(self) -> bool:
        """Whether a condition of the rows names the row above."""
        return any(column.args[0] == "" for condition in self.where for column in columns_in(condition))


@dataclass(slots=True, kw_only=True)
class Drawn:
    """A flat product. `by`: the columns of a group of the root's rows, by their names. `having`: conditions over aggregates."""

    root: str
    by: dict[str, str] = field(default_factory=dict)
    joins: list[Joined] = field(default_factory=list)
    where: list[Node] = field(default_factory=list)
    having: list[Node] = field(default_factory=list)
    members: dict[str, Node] = field(default_factory=dict)


def kind_of(declared: str) -> str:
    return declared.partition("(")[0]


def columns_of(entity: str, join: str) -> list[Node]:
    return [Node("column", (join, name), kind_of(of)) for name, of in COLUMNS[entity].items()]


def columns_in(node: Node | None) -> Iterator[Node]:
    """The columns that an expression reads."""
    if node is not None and node.kind == "column":
        yield node
    for part in node.args if node is not None else ():
        if isinstance(part, Node):
            yield from columns_in(part)


class Author:
    """Draws one product. The root is the join ``."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.names = rng, 0

    def may(self, chance: float) -> bool:
        return self.rng.random() < chance

    def drawn(self) -> Drawn:
        return self.group() if self.may(0.12) else self.rows_of_root()

    def group(self) -> Drawn:
        """A product of groups: its only join has the rows of the group, and no name in the tree."""
        rng = self.rng
        root = rng.choice(["users", "orders", "line", "address", "city"])
        own = columns_of(root, "")
        by = rng.sample([c for c in own if c.args[1] not in KEYS[root] or len(KEYS[root]) > 1], rng.choice([1, 1, 2]))
        if {column.args[1] for column in by} >= {*KEYS[root]}:
            by = by[:1]
        drawn = Drawn(root=root, by={f"k{n}": column.args[1] for n, column in enumerate(by)})
        drawn.where = [Node("is not null", (column,), "bool") for column in by]
        if self.may(0.5):
            drawn.where.append(self.condition(own))
        rows = Joined(name="", entity=root, way="many", above="", on="", up="")
        rows.order = key_order(root, "")
        drawn.members = {name: Node("column", ("", column), "string") for name, column in drawn.by.items()}
        drawn.members |= {f"m{n}": self.aggregate(rows) for n in range(rng.choice([0, 1, 2, 3]))}
        if self.may(0.25):
            drawn.having.append(self.counted(rows))
        return drawn

    def counted(self, join: Joined) -> Node:
        count = Node("aggregate", (join.name, "count", None, None, (), False), "int")
        return Node(self.rng.choice([">", "<", "="]), (count, Node("literal", (1,), "int")), "bool")

    def rows_of_root(self) -> Drawn:
        rng = self.rng
        drawn = Drawn(root=rng.choice(list(COLUMNS)))
        seen = columns_of(drawn.root, "")
        for entity, on, up in ONES[drawn.root]:
            if self.may(0.6):
                drawn.joins += self.ones(entity, on, up, "", seen, inner=self.may(0.4))
        for entity, on, up in MANYS[drawn.root]:
            for way, chance in (("many", 0.6), ("first", 0.3), ("exists", 0.25), ("found", 0.2)):
                if self.may(chance):
                    drawn.joins.append(self.rows(entity, on, up, way, seen))
        lists = [join for join in drawn.joins if join.way == "many"]
        if lists and MANYS[lists[0].entity] and not lists[0].below and self.may(0.3):
            entity, on, up = MANYS[lists[0].entity][0]
            lists[0].listed = self.rows(entity, on, up, "many", [], above=lists[0].name)
            lists[0].where = [one for one in lists[0].where if not lists[0].correlated]
        seen += [c for join in drawn.joins if join.way == "first" for c in columns_of(join.entity, join.name)]
        seen += [Node("found", (join.name,), "bool") for join in drawn.joins if join.way == "found"] * 2
        if self.may(0.4):
            drawn.where.append(self.condition([c for c in seen if c.args[0] == ""]))
        if self.may(0.3):
            drawn.where.append(self.condition(seen))
        drawn.members = {f"k{n}": Node("column", ("", key), kind_of(COLUMNS[drawn.root][key]))
                         for n, key in enumerate(KEYS[drawn.root])}  # fmt: skip
        for n in range(rng.choice([1, 2, 3])):
            drawn.members[f"m{n}"] = self.expression(seen, rng.choice(TYPES))
        for join in drawn.joins:
            if join.way == "first":
                drawn.members[f"{join.name}_c"] = rng.choice(columns_of(join.entity, join.name))
            if join.way == "many":
                for n in range(rng.choice([1, 2, 3])):
                    drawn.members[f"{join.name}_{n}"] = self.around(self.aggregate(join.listed or join), seen)
                if self.may(0.25):
                    drawn.having.append(self.counted(join.listed or join))
        return drawn

    def name(self) -> str:
        self.names += 1
        return f"j{self.names}"

    def ones(self, entity: str, on: str, up: str, above: str, seen: list[Node], *, inner: bool) -> list[Joined]:
        join = Joined(name=self.name(), entity=entity, way="one", above=above, on=on, up=up, inner=inner)
        seen += columns_of(entity, join.name)
        found = [join]
        for below, below_on, below_up in ONES[entity]:
            if self.may(0.4):
                found += self.ones(below, below_on, below_up, join.name, seen, inner=inner and self.may(0.5))
        return found

    def around(self, aggregate: Node, seen: Sequence[Node]) -> Node:
        """The aggregate, or an expression of it."""
        type_ = aggregate.type
        if type_ == "json":
            return Node("listed", (aggregate,), "json") if self.may(0.4) else aggregate
        own = [one for one in seen if one.kind == "column"]
        if self.may(0.2):
            return Node("coalesce", (aggregate, self.expression(own, type_, 1)), type_)
        if type_ in ("int", "decimal") and self.may(0.2):
            return Node("+", (aggregate, self.expression(own, "int", 1)), "decimal")
        if self.may(0.1):
            return Node("case", (self.condition(own, 1), aggregate, Node("null", (), type_)), type_)
        return aggregate

    def rows(self, entity: str, on: str, up: str, way: str, seen: list[Node], *, above: str = "") -> Joined:
        rng = self.rng
        if way == "exists":
            way = rng.choice(["exists", "absent"])
        join = Joined(name=self.name(), entity=entity, way=way, above=above, on=on, up=up)
        own = columns_of(entity, join.name)
        if self.may(0.5):
            join.where.append(self.condition(own))
        if not above and self.may(0.15):
            type_ = rng.choice(TYPES)
            mine, others = ([c for c in cs if c.type == type_] for cs in (own, [c for c in seen if c.args[0] == ""]))
            if mine and others:
                join.where.append(Node(rng.choice(["<", "<=", "<>"]), (rng.choice(mine), rng.choice(others)), "bool"))
        if way == "many":
            for below, below_on, below_up in ONES[entity]:
                if below_up != on and self.may(0.4):
                    join.below.append(
                        Joined(name=self.name(), entity=below, way="one", above=join.name, on=below_on, up=below_up)
                    )
        if way == "first":
            join.order = [(column, rng.choice(WAYS)) for column in rng.sample(own, rng.choice([0, 1, 2]))]
        join.order += key_order(entity, join.name)
        return join

    def aggregate(self, join: Joined) -> Node:
        rng = self.rng
        own = columns_of(join.entity, join.name)
        own += [c for below in join.below for c in columns_of(below.entity, below.name)]
        name = rng.choice(
            [*["count"] * 3, *["sum"] * 2, *["array_agg"] * 2, "min", "max", "avg", "bool_or", "bool_and", "string_agg"]
        )
        types = {"sum": ("int", "decimal"), "avg": ("int", "decimal"), "min": ("int", "decimal", "string", "date"),
                 "bool_or": ("bool",), "bool_and": ("bool",), "string_agg": ("string",)}  # fmt: skip
        type_ = rng.choice(types.get("min" if name == "max" else name, TYPES))
        argument: Node | None = self.expression(own, type_, 1)
        while not any(True for _ in columns_in(argument)):
            argument = self.expression(own, type_, 1)
        if name == "array_agg" and self.may(0.6):
            parts = [argument, *rng.sample(own, rng.choice([1, 2]))]
            argument = Node("object", tuple(parts), "json")
        distinct = name == "count" and self.may(0.3)
        if name == "count" and not distinct and self.may(0.5):
            argument = None
        filter_ = self.condition(own) if self.may(0.25) else None
        order: list[Term] = []
        if name in ("string_agg", "array_agg"):
            order = [(c, rng.choice(WAYS)) for c in rng.sample(own, rng.choice([0, 1]))] + key_order(
                join.entity, join.name
            )
        gives = {"count": "int", "array_agg": "json", "sum": "decimal", "avg": "decimal"}.get(name, type_)
        return Node("aggregate", (join.name, name, argument, filter_, tuple(order), distinct), gives)

    def expression(self, seen: Sequence[Node], type_: str, depth: int = 2) -> Node:
        rng = self.rng
        named = [one for one in seen if one.type == type_]
        if named and (not depth or self.may(0.5)):
            return rng.choice(named)
        if not depth:
            return Node("literal", (rng.choice(VALUES[type_]),), type_)

        def some(other: str = type_) -> Node:
            return self.expression(seen, other, depth - 1)

        choices: list[Callable[[], Node]] = [
            lambda: Node("coalesce", (some(), some()), type_),
            lambda: Node("case", (self.condition(seen, depth - 1), some(), some()), type_),
            lambda: Node("nullif", (some(), some()), type_),
        ]
        choices += {
            "int": [
                lambda: Node(rng.choice("+-*"), (some(), some()), "int"),
                lambda: Node("length", (some("string"),), "int"),
                lambda: Node("year", (some("date"),), "int"),
                lambda: Node("abs", (some(),), "int"),
                lambda: Node("greatest", (some(), some()), "int"),
            ],
            "string": [
                lambda: Node("||", (some(), some()), "string"),
                lambda: Node(rng.choice(["upper", "lower", "trim"]), (some(),), "string"),
                lambda: Node("left", (some(), Node("literal", (2,), "int")), "string"),
                lambda: Node("to text", (some("int"),), "string"),
            ],
            "decimal": [
                lambda: Node(rng.choice("+-"), (some(), some()), "decimal"),
                lambda: Node("round", (some(), Node("literal", (1,), "int")), "decimal"),
                lambda: Node("to decimal", (some("int"),), "decimal"),
            ],
            "bool": [lambda: self.condition(seen, depth - 1)] * 3,
            "date": [lambda: Node("greatest", (some(), some()), "date")],
        }[type_]  # fmt: skip
        return rng.choice(choices)()

    def condition(self, seen: Sequence[Node], depth: int = 2) -> Node:
        rng = self.rng
        if depth and self.may(0.3):
            parts = (self.condition(seen, depth - 1), self.condition(seen, depth - 1))
            return Node(rng.choice(["and", "or"]), parts, "bool")
        if depth and self.may(0.1):
            return Node("not", (self.condition(seen, depth - 1),), "bool")
        column = rng.choice(list(seen))
        type_ = column.type
        value = self.expression(seen, type_, min(depth, 1)) if self.may(0.4) else column

        def literal() -> Node:
            return Node("literal", (rng.choice(VALUES[type_]),), type_)

        other = literal() if self.may(0.7) else self.expression(seen, type_, 1)
        choices = [
            Node(rng.choice(["=", "<>", "<", "<="]), (value, other), "bool"),
            Node("is null", (column,), "bool"),
            Node("is not null", (column,), "bool"),
            Node("in", (value, literal(), literal()), "bool"),
        ]  # fmt: skip
        if type_ == "string":
            choices.append(Node("like", (value, Node("literal", (rng.choice(["a%", "%b%", "_"]),), "string")), "bool"))
        if type_ in ("int", "decimal", "date"):
            low, high = sorted(
                (literal(), literal()), key=lambda one: float(one.args[0]) if type_ != "date" else one.args[0]
            )
            choices.append(Node("between", (value, low, high), "bool"))
        if type_ == "bool":
            choices.append(Node("is true", (value,), "bool"))
        return rng.choice(choices)


Env = Callable[[str, str], str]
"""The text of a column of a join."""


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Plain:
    """Writes expressions in one way."""

    def choose(self, first: str, *others: str) -> str:
        """One of the equal texts."""
        return first

    def show(self, node: Node, env: Env) -> str:
        kind, args = node.kind, node.args
        if kind == "column":
            return env(args[0], args[1])
        if kind == "literal":
            return self.literal(args[0], node.type)
        if kind == "aggregate":
            return self.aggregated(node, env)
        if kind == "found":
            return self.found(args[0])
        shown = [self.show(one, env) for one in args if isinstance(one, Node)]
        match kind:
            case "+" | "*":
                a, b = shown
                return self.choose(f"({a} {kind} {b})", f"({b} {kind} {a})")
            case "-" | "||":
                return f"({shown[0]} {kind} {shown[1]})"
            case "=":
                a, b = shown
                return self.choose(f"({a} = {b})", f"({b} = {a})", f"({a}={b})", f"(not {a} <> {b})")
            case "<>":
                a, b = shown
                return self.choose(f"({a} <> {b})", f"({b} <> {a})", f"({a} != {b})", f"(not ({a} = {b}))")
            case "<" | "<=" | ">":
                a, b = shown
                other = {"<": ">", "<=": ">=", ">": "<"}[kind]
                against = {"<": ">=", "<=": ">", ">": "<="}[kind]
                return self.choose(f"({a} {kind} {b})", f"({b} {other} {a})", f"(not ({a} {against} {b}))")
            case "and" | "or":
                a, b = shown
                other = "or" if kind == "and" else "and"
                return self.choose(f"({a} {kind} {b})", f"({b} {kind} {a})", f"(not (not {a} {other} not {b}))")
            case "not":
                return f"(not {shown[0]})"
            case "is null":
                return self.choose(f"({shown[0]} is null)", f"({shown[0]} isnull)", f"(not {shown[0]} is not null)")
            case "is not null":
                return self.choose(f"({shown[0]} is not null)", f"({shown[0]} notnull)", f"(not ({shown[0]} is null))")
            case "is true":
                return self.choose(f"({shown[0]} is true)", f"coalesce({shown[0]}, false)")
            case "in":
                a, b, c = shown
                return self.choose(
                    f"({a} in ({b}, {c}))", f"({a} in ({c}, {b}))", f"({a} = {b} or {a} = {c})", f"(not {a} not in ({b}, {c}))",
                    f"({a} = any(array[{b}, {c}]))",
                )  # fmt: skip
            case "between":
                a, b, c = shown
                return self.choose(f"({a} between {b} and {c})", f"({a} >= {b} and {c} >= {a})")
            case "like":
                pattern = quoted(args[1].args[0])
                return self.choose(f"({shown[0]} like {pattern})", f"(not ({shown[0]} not like {pattern}))")
            case "case":
                c, a, b = shown
                return self.choose(
                    f"case when {c} then {a} else {b} end", f"(case when {c} is not true then {b} else {a} end)"
                )
            case "coalesce":
                a, b = shown
                return self.choose(f"coalesce({a}, {b})", f"case when {a} is not null then {a} else {b} end")
            case "nullif":
                a, b = shown
                return self.choose(f"nullif({a}, {b})", f"case when {a} = {b} then null else {a} end")
            case "greatest":
                return self.choose(f"greatest({shown[0]}, {shown[1]})", f"greatest({shown[1]}, {shown[0]})")
            case "left":
                a, b = shown
                return self.choose(f"left({a}, {b})", f"substring({a}, 1, {b})", f"substring({a} from 1 for {b})")
            case "length":
                return self.choose(f"length({shown[0]})", f"char_length({shown[0]})")
            case "trim":
                return self.choose(f"trim({shown[0]})", f"btrim({shown[0]})", f"trim(both from {shown[0]})")
            case "null":
                return self.choose("null", f"cast(null as {SQL_TYPES[node.type]})")
            case "object":
                pairs = ", ".join(f"'f{n}', {one}" for n, one in enumerate(shown))
                return self.choose(f"json_build_object({pairs})", f"jsonb_build_object({pairs})")
            case "listed":
                return f"coalesce({shown[0]}, {self.empty_list(args[0])})"
            case "year":
                return f"extract(year from {shown[0]})"
            case "to text":
                return self.choose(f"({shown[0]})::text", f"cast({shown[0]} as text)", f"CAST({shown[0]} AS varchar)")
            case "to decimal":
                return self.choose(f"({shown[0]})::decimal", f"cast({shown[0]} as numeric)", f"({shown[0]})::numeric")
        return f"{kind}({', '.join(shown)})"

    def aggregated(self, node: Node, env: Env) -> str:
        raise NotImplementedError

    def found(self, join: str) -> str:
        raise NotImplementedError

    def empty_list(self, node: Node) -> str:
        return "json_build_array()"

    def literal(self, value: Any, type_: str) -> str:
        if type_ == "date":
            return self.choose(f"'{value}'::date", f"date '{value}'", f"cast('{value}' as date)")
        if type_ == "bool":
            return str(value).lower()
        if type_ == "string":
            text = quoted(value)
            return self.choose(f"{text}::text", f"cast({text} as text)", text)
        if type_ == "decimal":
            return self.choose(f"({value})" if str(value)[0] == "-" else str(value), f"({value})::decimal(12,2)")
        return self.choose(f"({value})" if value < 0 else str(value), f"({value})")

    def direction(self, way: str) -> str:
        """A direction, whose nulls SQL has last, and with `desc` first."""
        also = {
            "": ["asc", "nulls last", "asc nulls last"],
            "nulls first": ["asc nulls first"],
            "desc nulls first": ["desc"],
        }
        chosen = self.choose(way, *also.get(way, ())).strip("()")
        return f" {chosen}" if chosen else ""

    def list_name(self, node: Node) -> str:
        """The name of an aggregate."""
        return str(node.args[1])

    def call(self, node: Node, env: Env, argument: str | None = None, *, absent: str = "") -> str:
        """An aggregate. `argument`: in place of its own. `absent`: a condition for its filter."""
        _, name, value, filter_, order, distinct = node.args
        text = argument or ("*" if value is None else self.show(value, env))
        if value is not None and value.kind == "literal" and value.type == "string":
            text = f"{quoted(value.args[0])}::text"
        if name == "string_agg":
            text += ", '-'"
        if order:
            text += " order by " + ", ".join(self.show(c, env) + self.direction(way) for c, way in order)
        filters = [one for one in (absent, "" if filter_ is None else self.show(filter_, env)) if one]
        text = f"{self.list_name(node)}({'distinct ' * distinct}{text})"
        return text + (f" filter (where {' and '.join(filters)})" if filters else "")


SQL_TYPES: Final = {
    "int": "int",
    "string": "text",
    "decimal": "decimal",
    "bool": "bool",
    "date": "date",
    "json": "json",
}


class TreeWriter(Plain):
    """Writes the expressions of a product file. `paths`: of the joins, from the root."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths

    def aggregated(self, node: Node, env: Env) -> str:
        return self.call(node, env, (self.paths[node.args[0]] or "*") if node.args[2] is None else None)

    def found(self, join: str) -> str:
        return f"(count({self.paths[join]}) > 0)"


def as_tree(drawn: Drawn) -> dict[str, Any]:
    """The product file."""
    paths = {"": ""}
    plain = TreeWriter(paths)
    nested: dict[str, list[Joined]] = {}
    for join in drawn.joins:
        above = join.above if join.above in paths else ""
        paths[join.name] = f"{paths[above]}.{join.name}".strip(".")
        nested.setdefault(above, []).append(join)
        for below in [*join.below, *([join.listed] if join.listed else [])]:
            paths[below.name] = f"{paths[join.name]}.{below.name}"
            for lower in below.below:
                paths[lower.name] = f"{paths[below.name]}.{lower.name}"

    def named(level: str) -> Env:
        """Names at the level of a join: those of its own joins begin there."""
        start = paths[level]

        def text(join: str, column: str) -> str:
            path = paths[join]
            if level and not join:
                return f"parent.{column}"
            path = path[len(start) :].strip(".") if start and path.startswith(start) else path
            return f"{path}.{column}".strip(".")

        return text

    def written(join: Joined) -> dict[str, Any]:
        env = named(join.name)
        made: dict[str, Any] = {
            "one" if join.way in ("one", "first") else "many": join.entity,
            "on": {join.on: join.up},
        }
        if join.inner:
            made["required"] = True
        if join.where:
            made["where"] = " and ".join(plain.show(one, env) for one in join.where)
        if join.way == "first":
            made["order_by"] = [
                text
                for column, way in join.order
                for text in (
                    *([f"-({plain.show(column, env)} is null)"] if "nulls first" in way else []),
                    ("-" if "desc" in way else "") + plain.show(column, env),
                )
            ]
        below = [*nested.get(join.name, ()), *join.below, *([join.listed] if join.listed else [])]
        if below:
            made["join"] = {one.name: written(one) for one in below}
        return made

    env = named("")

    def show(node: Node) -> str:
        return plain.show(node, env)

    if drawn.by:
        names = {column: name for name, column in drawn.by.items()}
        where = {"where": " and ".join(show(one) for one in drawn.where)}
        fields = {
            name: names[node.args[1]] if node.kind == "column" else show(node) for name, node in drawn.members.items()
        }
        having = {"where": show(drawn.having[0])} if drawn.having else {}
        return {"product": "p", "root": {"group": drawn.root, "by": drawn.by} | where, **having, "fields": fields}
    conditions = [show(one) for one in (*drawn.where, *drawn.having)]
    conditions += [
        f"count({paths[j.name]}) {'>' if j.way == 'exists' else '='} 0"
        for j in drawn.joins
        if j.way in ("exists", "absent")
    ]
    return {
        "product": "p",
        "root": drawn.root,
        **({"where": " and ".join(f"({one})" for one in conditions)} if conditions else {}),
        **({"join": {one.name: written(one) for one in nested[""]}} if nested.get("") else {}),
        "fields": {name: show(node) for name, node in drawn.members.items()},
    }


def tree_text(drawn: Drawn) -> str:
    return json.dumps(as_tree(drawn), ensure_ascii=False)


def sql_text(sql: str) -> str:
    """The product file of a query."""
    return "product: p\nflat: true\nsql: |\n" + indent(sql, "  ")


class Analyst(Plain):
    """Writes one product as SQL, each time in other words."""

    def __init__(self, rng: Random, drawn: Drawn) -> None:
        self.rng, self.drawn = rng, drawn
        self.ctes: list[str] = []
        self.items: list[str] = []
        """The parts of FROM between commas."""
        self.item_of: dict[str, int] = {}
        self.wheres: list[str] = []
        self.tables: dict[str, Callable[[str], str]] = {}
        """Join -> the text of its column."""
        self.values: dict[tuple[str, Node], str] = {}
        """The text of an aggregate, where a form of its join made one."""
        self.grouped = ""
        """The list that the query itself groups."""
        self.aliases: set[str] = set()
        self.forms: list[str] = []
        self.outer: dict[str, str] = {}
        """The column above of a join that is a subquery of SELECT."""
        self.list_names: dict[Node, str] = {}

    def may(self, chance: float) -> bool:
        return self.rng.random() < chance

    def choose(self, first: str, *others: str) -> str:
        text = first if self.may(0.5) else self.rng.choice([first, *others])
        return f"({text})" if self.may(0.04) else text

    def form(self, *names: str) -> str:
        self.forms.append(self.rng.choice(names))
        return self.forms[-1]

    def alias(self, entity: str) -> str:
        choices = [one for one in (entity, entity[0], f"{entity[:2]}x", "t", "x") if one not in self.aliases]
        name = self.rng.choice(choices) if choices and self.may(0.8) else f"{entity[0]}{len(self.aliases)}"
        self.aliases.add(name)
        return name

    def column(self, alias: str, column: str) -> str:
        return self.rng.choice([f"{alias}.{column}"] * 6 + [f'{alias}."{column}"', f'"{alias}".{column}'])

    def plain_table(self, alias: str) -> Callable[[str], str]:
        return lambda column: self.column(alias, column)

    def named(self, entity: str, alias: str) -> str:
        return entity if alias == entity else f"{entity} {'as ' * self.may(0.4)}{alias}"

    def env(self, join: str, column: str) -> str:
        return self.tables[join](column)

    # The whole query

    def query(self) -> str:
        drawn = self.drawn
        root = self.alias(drawn.root)
        if drawn.by:
            return self.respelled(self.group_query(root))
        self.items.append(self.named(drawn.root, root))
        self.item_of[""] = 0
        self.tables[""] = self.plain_table(root)
        lists = [join for join in drawn.joins if join.way == "many" and not join.correlated]
        chains = [join for join in lists if join.listed]
        if lists and (chains or self.may(0.5)):
            self.grouped = (chains or [self.rng.choice(lists)])[0].name
        for join in drawn.joins:
            match join.way:
                case "one":
                    self.one(join)
                case "first":
                    self.first(join)
                case "many":
                    self.many(join)
                case "found":
                    self.tables[join.name] = self.column_of_no_row
                case _:
                    self.asked(join)
        self.wheres += [self.show(one, self.env) for one in drawn.where]
        having = [self.show(one, self.env) for one in drawn.having]
        grouped = [one for one, of in zip(having, drawn.having, strict=True) if self.in_group(of.args[0])]
        self.wheres += [one for one in having if one not in grouped]
        selected = [self.selected(name, node) for name, node in drawn.members.items()]
        self.rng.shuffle(self.wheres)
        text = "select " + ", ".join(selected) + "\nfrom " + ", ".join(self.items)
        if self.wheres:
            text += "\nwhere " + " and ".join(self.wheres)
        if self.grouped:
            text += "\ngroup by " + self.group()
            if grouped:
                text += "\nhaving " + " and ".join(grouped)
        if self.may(0.1):
            text += "\norder by " + self.rng.choice(["1", "k0", self.env("", KEYS[drawn.root][0])])
        if self.ctes:
            text = "with " + ", ".join(self.ctes) + "\n" + text
        return self.respelled(text)

    def group_query(self, alias: str) -> str:
        """The query of a product of groups."""
        drawn = self.drawn
        self.forms.append("groups")
        bare = self.may(0.4)
        self.tables[""] = (lambda column: column) if bare else self.plain_table(alias)
        where = [self.show(one, self.env) for one in drawn.where]
        self.rng.shuffle(where)
        for node in [*drawn.members.values(), *(one.args[0] for one in drawn.having)]:
            if node.kind == "aggregate":
                self.values["", node] = self.call(node, self.env)
        terms = [self.selected(name, node) for name, node in drawn.members.items()]
        table = drawn.root if bare else self.named(drawn.root, alias)
        text = f"select {', '.join(terms)}\nfrom {table}\nwhere {' and '.join(where)}"
        if len(drawn.members) == len(drawn.by) and not drawn.having and self.may(0.5):
            return text.replace("select", "select distinct", 1)
        keys = [
            self.rng.choice([self.env("", column), str(n + 1), *([name] if name not in COLUMNS[drawn.root] else [])])
            for n, (name, column) in enumerate(drawn.by.items())
        ]
        self.rng.shuffle(keys)
        text += f"\ngroup by {', '.join(keys)}"
        return text + "".join(f"\nhaving {self.show(one, self.env)}" for one in drawn.having)

    def column_of_no_row(self, column: str) -> str:
        raise AssertionError(column)

    def in_group(self, node: Node) -> bool:
        """Whether an aggregate is over the list that the query groups."""
        of = next((one for one in self.drawn.joins if one.name == self.grouped), None)
        return of is not None and node.args[0] == (of.listed or of).name

    def aggregated(self, node: Node, env: Env) -> str:
        return self.values[node.args[0], node]

    def found(self, name: str) -> str:
        join = next(one for one in self.drawn.joins if one.name == name)
        alias = self.alias(join.entity)
        text, env, wheres = self.inside(join, alias)
        return self.existence(join, text, env, wheres, alias)

    def list_name(self, node: Node) -> str:
        if node.args[1] == "array_agg" and node not in self.list_names:
            self.list_names[node] = self.rng.choice(["json_agg", "jsonb_agg", "array_agg"])
        return self.list_names.get(node, str(node.args[1]))

    def empty_list(self, node: Node) -> str:
        json_list = self.choose("'[]'::json", "'[]'", "cast('[]' as json)")
        return {"array_agg": "'{}'", "json_agg": json_list, "jsonb_agg": "'[]'::jsonb"}[self.list_names[node]]

    def selected(self, name: str, node: Node) -> str:
        text = self.show(node, self.env)
        return f"{text} {'as ' if self.may(0.8) or text[-1] != ')' else ''}{name}"

    def group(self) -> str:
        """The key of the root, and each column that is outside of aggregates."""
        key = [self.env("", column) for column in KEYS[self.drawn.root]]
        nodes: list[Any] = list(self.drawn.members.values())
        used: dict[tuple[str, str], None] = {}
        while nodes:
            node = nodes.pop()
            if node.kind == "column" and (node.args[0] or self.may(0.5)):
                used[node.args] = None
            if node.kind != "aggregate":
                nodes += [one for one in node.args if isinstance(one, Node)]
        key += [text for join, column in used if "select" not in (text := self.env(join, column)) and text not in key]
        key += [self.outer[join] for join, _ in used if join in self.outer]
        key += [text for text in self.grouped_values if "select" not in text]
        for n, node in enumerate(self.drawn.members.values(), start=1):
            if node.kind == "column" and self.may(0.2) and (text := self.env(*node.args)) in key:
                key[key.index(text)] = str(n)
        self.rng.shuffle(key)
        return ", ".join(dict.fromkeys(key))

    @property
    def grouped_values(self) -> list[str]:
        """The columns of grouped subqueries, which the query selects outside of aggregates."""
        found: list[str] = []
        for text in self.values.values():
            found += re.findall(r"\b\w+\.v\d+\b", text)
        return found

    # Tables

    def add(self, above: str, join: Joined, text: str) -> None:
        """Appends a join to the part of FROM that has the table above."""
        at = self.item_of.get(above, 0)
        if " join " in self.items[at] and self.may(0.1) and not self.items[at].startswith("("):
            self.items[at] = f"({self.items[at]})"
        self.items[at] += f"\n{text}"
        self.item_of[join.name] = at

    def source(self, join: Joined, alias: str) -> tuple[str, Callable[[str], str]]:
        """A table as it is, as a subquery or as a CTE, with the texts of its columns."""
        kind = self.form("table", "table", "table", "subquery", "cte")
        if kind == "table":
            return self.named(join.entity, alias), self.plain_table(alias)
        columns = list(COLUMNS[join.entity])
        renamed = {c: f"{c}_x" if self.may(0.3) else c for c in columns}
        terms = ", ".join(c if renamed[c] == c else f"{c} as {renamed[c]}" for c in columns)
        if all(c == to for c, to in renamed.items()) and self.may(0.5):
            terms = "*"
        inner = f"select {terms} from {join.entity}"

        def text(column: str) -> str:
            return self.column(alias, renamed[column])

        if kind == "subquery":
            return f"({inner}) {'as ' * self.may(0.4)}{alias}", text
        name = f"c{len(self.ctes)}"
        self.ctes.append(f"{name} as ({inner})")
        return f"{name} {alias}", text

    def one(self, join: Joined) -> None:
        alias, above = self.alias(join.entity), self.tables[join.above]
        leaf = all(other.above != join.name for other in self.drawn.joins)
        if not join.inner and leaf and self.form("join", "join", "join", "scalar") == "scalar":
            self.outer[join.name] = above(join.up)
            self.tables[join.name] = lambda column: (
                f"(select {alias}.{column} from {self.named(join.entity, alias)} where {alias}.{join.on} = {above(join.up)})"
            )
            return
        ways = ["join", "join", "lateral"] + (["comma", "cross", "using"] if join.inner else [])
        way = self.form(*ways)
        if way == "using" and join.up in COLUMNS[join.entity] and join.up != join.on:
            way = "join"
        if way == "lateral":
            inside = f"{alias}_0"
            terms = self.rng.choice(["*", f"{inside}.*", ", ".join(f"{inside}.{c}" for c in COLUMNS[join.entity])])
            where = self.equal(f"{inside}.{join.on}", above(join.up))
            select = f"(select {terms} from {join.entity} {inside} where {where}) {alias}"
            self.tables[join.name] = self.plain_table(alias)
            kind = (
                self.rng.choice(["join lateral", "inner join lateral", "cross join lateral"])
                if join.inner
                else "left join lateral"
            )
            self.add(join.above, join, f"{kind} {select}" + ("" if "cross" in kind else " on true"))
            return
        if way == "using" and join.above == "" and " join " not in self.items[0]:
            terms = ", ".join(f"{c} as {join.up}" if c == join.on else c for c in COLUMNS[join.entity])
            self.tables[join.name] = lambda column: self.column(alias, join.up if column == join.on else column)
            self.add(join.above, join, f"join (select {terms} from {join.entity}) {alias} using ({join.up})")
            return
        table, text = self.source(join, alias)
        self.tables[join.name] = text
        equal = self.equal(text(join.on), above(join.up))
        if way in ("comma", "cross"):
            self.wheres.append(equal)
            if way == "comma":
                self.item_of[join.name] = len(self.items)
                self.items.append(table)
            else:
                self.add(join.above, join, f"cross join {table}")
            return
        kind = (
            self.rng.choice(["join", "inner join"]) if join.inner else self.rng.choice(["left join", "left outer join"])
        )
        self.add(join.above, join, f"{kind} {table} on {equal}")

    def equal(self, a: str, b: str) -> str:
        return self.rng.choice([f"{a} = {b}", f"{b} = {a}", f"({a} = {b})"])

    # Rows of lists

    def inside(self, join: Joined, alias: str, *, alone: bool = True) -> tuple[str, Env, list[str]]:
        """FROM of the rows of a list, the texts of its columns, and the conditions of the list. `alone`: in a query of their own,
        where a column may lack its table."""
        bare = alone and not join.below and not join.correlated and self.may(0.15)
        tables = {"": self.tables[""], join.name: (lambda column: column) if bare else self.plain_table(alias)}
        text = self.named(join.entity, alias)
        for below in join.below:
            own = self.alias(below.entity)
            tables[below.name] = self.plain_table(own)
            text += f" left join {self.named(below.entity, own)} on {self.equal(f'{own}.{below.on}', f'{alias}.{below.up}')}"

        def env(name: str, column: str) -> str:
            return tables[name](column)

        return text, env, [self.show(one, env) for one in join.where]

    def ordered(self, join: Joined, env: Env, *, before: Iterable[str] = ()) -> str:
        terms = list(before)
        terms += [self.show(column, env) + self.direction(way) for column, way in join.order]
        return "order by " + ", ".join(terms)

    def first(self, join: Joined) -> None:
        alias, above = self.alias(join.entity), self.tables[""]
        way = self.form("scalar", "lateral", *([] if join.correlated else ["distinct on", "row number"]))
        inside = alias if way == "scalar" else f"{alias}_1"
        text, env, wheres = self.inside(join, inside)
        if way in ("scalar", "lateral"):
            wheres.append(self.equal(f"{inside}.{join.on}", above(join.up)))
            self.rng.shuffle(wheres)

            def select(terms: str) -> str:
                return f"(select {terms} from {text} where {' and '.join(wheres)} {self.ordered(join, env)} limit 1)"

            if way == "scalar":
                self.tables[join.name] = lambda column: select(f"{inside}.{column}")
                return
            self.tables[join.name] = self.plain_table(alias)
            self.add("", join, f"left join lateral {select(f'{inside}.*')} {alias} on true")
            return
        where = f" where {' and '.join(wheres)}" if wheres else ""
        columns = ", ".join(f"{inside}.{c}" for c in COLUMNS[join.entity])
        self.tables[join.name] = self.plain_table(alias)
        if way == "distinct on":
            order = self.ordered(join, env, before=[f"{inside}.{join.on}"])
            rows = f"select distinct on ({inside}.{join.on}) {columns} from {text}{where} {order}"
            more = ""
        else:
            terms = self.rng.choice([f"{inside}.*", columns])
            number = f"row_number() over (partition by {inside}.{join.on} {self.ordered(join, env)}) as rn"
            rows, more = f"select {terms}, {number} from {text}{where}", f" and {alias}.rn = 1"
        equal = self.equal(f"{alias}.{join.on}", above(join.up))
        self.add("", join, f"left join {self.stored(rows, alias)} on {equal}{more}")

    def stored(self, select: str, alias: str) -> str:
        """A subquery of FROM, or a CTE."""
        if self.may(0.6):
            return f"({select}) {'as ' * self.may(0.4)}{alias}"
        name = f"c{len(self.ctes)}"
        self.ctes.append(f"{name} as ({select})")
        return f"{name} {'as ' * self.may(0.4)}{alias}"

    def many(self, join: Joined) -> None:
        alias, above = self.alias(join.entity), self.tables[""]
        read = join.listed or join
        calls = [
            node
            for whole in (*self.drawn.members.values(), *self.drawn.having)
            for node in (whole, *whole.args)
            if isinstance(node, Node) and node.kind == "aggregate" and node.args[0] == read.name
        ]
        if self.grouped == join.name:
            self.group_here(join, alias, calls)
            return
        ungrouped = self.grouped and any(node.type == "json" for node in calls)  # Postgres groups by no json
        way = self.form(
            "scalar", *([] if ungrouped else ["scalar", "lateral", *([] if join.correlated else ["grouped"])])
        )
        inside = alias if way == "scalar" else f"{alias}_1"
        text, env, wheres = self.inside(join, inside)
        if way == "scalar":
            wheres.append(self.equal(f"{inside}.{join.on}", above(join.up)))
            self.rng.shuffle(wheres)
            for node in calls:
                self.values[join.name, node] = self.scalar(node, env, text, wheres)
            return
        names = {node: f"v{n}" for n, node in enumerate(dict.fromkeys(calls))}
        terms = ", ".join(f"{self.call(node, env)} as {name}" for node, name in names.items())
        if way == "lateral":
            wheres.append(self.equal(f"{inside}.{join.on}", above(join.up)))
            select = f"(select {terms} from {text} where {' and '.join(wheres)}) {alias}"
            kind = self.rng.choice(["left join lateral", "cross join lateral", "join lateral"])
            self.add("", join, f"{kind} {select}" + ("" if "cross" in kind else " on true"))
        else:
            where = f" where {' and '.join(wheres)}" if wheres else ""
            key = self.rng.choice([join.on, f"{join.on} as owner"])
            select = f"select {inside}.{key}, {terms} from {text}{where} group by {inside}.{join.on}"
            own = f"{alias}.{key.rpartition(' ')[2]}"
            self.add("", join, f"left join {self.stored(select, alias)} on {self.equal(own, above(join.up))}")
        for node, name in names.items():
            value = f"{alias}.{name}"
            counted = way == "grouped" and node.args[1] == "count"
            self.values[join.name, node] = f"coalesce({value}, 0)" if counted else value

    def scalar(self, node: Node, env: Env, text: str, wheres: list[str]) -> str:
        return f"(select {self.call(node, env)} from {text} where {' and '.join(wheres)})"

    def group_here(self, join: Joined, alias: str, calls: list[Node]) -> None:
        """The list as a table of the query, which GROUP BY makes one row of."""
        self.forms.append("group by")
        above = self.tables[""]
        table, text = self.source(join, alias)
        tables = {join.name: text}
        on = [self.equal(text(join.on), above(join.up))]

        def env(name: str, column: str) -> str:
            return tables[name](column)

        on += [self.show(one, env) for one in join.where]
        self.rng.shuffle(on)
        self.add("", join, f"left join {table} on {' and '.join(on)}")
        read = join
        if join.listed:
            read = join.listed
            own = self.alias(read.entity)
            tables[read.name] = self.plain_table(own)
            on = [self.equal(f"{own}.{read.on}", text(read.up)), *(self.show(one, env) for one in read.where)]
            self.add(join.name, read, f"left join {self.named(read.entity, own)} on {' and '.join(on)}")
        for below in read.below:
            own = self.alias(below.entity)
            tables[below.name] = self.plain_table(own)
            equal = self.equal(f"{own}.{below.on}", tables[read.name](below.up))
            self.add(join.name, below, f"left join {self.named(below.entity, own)} on {equal}")
        key = tables[read.name](KEYS[read.entity][0])
        for node in calls:
            value = node.args[2]
            if value is None and node.args[3] is None and self.may(0.7):
                self.values[read.name, node] = f"count({key})"
                continue
            strict = (
                value is not None and value.kind == "column" and node.args[1] != "array_agg" and node.args[3] is None
            )
            absent = "" if strict and self.may(0.6) else f"{key} is not null"
            self.values[read.name, node] = self.call(node, env, absent=absent)

    def asked(self, join: Joined) -> None:
        above = self.tables[""]
        alias = self.alias(join.entity)
        exists = join.way == "exists"
        way = self.form("exists", "exists", *([] if join.correlated else ["in" if exists else "anti"]))
        text, env, wheres = self.inside(join, alias, alone=way != "anti")
        if way == "anti" and self.grouped:
            way = "exists"
        if way == "in":
            where = f" where {' and '.join(wheres)}" if wheres else ""
            self.wheres.append(
                f"{above(join.up)} {self.rng.choice(['in', 'in', '= any'])} (select {alias}.{join.on} from {text}{where})"
            )
            return
        equal = self.equal(f"{alias}.{join.on}", above(join.up))
        if way == "anti":
            self.add("", join, f"left join {text} on {' and '.join([equal, *wheres])}")
            self.wheres.append(f"{alias}.{KEYS[join.entity][0]} is null")
            return
        self.wheres.append(self.existence(join, text, env, wheres, alias))

    def existence(self, join: Joined, text: str, env: Env, wheres: list[str], alias: str) -> str:
        """The condition that a list has rows, or none."""
        wheres = [*wheres, self.equal(f"{alias}.{join.on}", self.tables[""](join.up))]
        self.rng.shuffle(wheres)
        rows, absent = f"from {text} where {' and '.join(wheres)}", join.way == "absent"
        if self.form("exists", "exists", "count") == "count":
            return f"((select count(*) {rows}) {'=' if absent else '>'} 0)"
        term = self.rng.choice(["1", "*", f"{alias}.{join.on}"])
        return f"({'not ' * absent}exists (select {term} {rows}))"

    # Spelling

    def respelled(self, text: str) -> str:
        """The text with other letter case of keywords, and with comments."""
        upper, comments = self.may(0.3), self.may(0.3)
        parts = re.split(r"('(?:[^']|'')*'|\"[^\"]*\")", text)
        for n in range(0, len(parts), 2):
            parts[n] = re.sub(r"\b[a-z_]+\b", lambda found: self.word(found[0], upper), parts[n])
            if comments:
                parts[n] = re.sub(
                    r" (?=from|where|and|on)",
                    lambda _: self.rng.choice([" ", " ", " /* a, b */ ", "\n-- it's\n"]),
                    parts[n],
                )
        return "".join(parts)

    def word(self, word: str, upper: bool) -> str:
        if word not in KEYWORDS:
            return word
        return word.upper() if upper or self.may(0.02) else word


KEYWORDS: Final = frozenset([
    "select", "from", "where", "and", "or", "not", "left", "join", "inner", "outer", "cross", "lateral", "on", "using", "group",
    "by", "having", "order", "limit", "distinct", "with", "as", "is", "null", "in", "like", "between", "case", "when", "then",
    "else", "end", "exists", "count", "sum", "coalesce", "cast", "desc", "asc", "nulls", "filter", "over", "partition", "true",
    "false", "date", "text", "array_agg", "any", "array",
])  # fmt: skip


def draw_rows(rng: Random) -> dict[str, list[dict[str, Any]]]:
    """A few rows of each entity, with few different values."""
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in COLUMNS}
    for name, columns in COLUMNS.items():
        for _ in range(rng.choice([3, 5, 7])):
            row = {c: _value(rng, kind_of(of), null=c not in KEYS[name]) for c, of in columns.items()}
            found[name][tuple(row[c] for c in KEYS[name])] = row
    return {name: list(rows.values()) for name, rows in found.items()}


def _value(rng: Random, kind: str, *, null: bool) -> Any:
    from decimal import Decimal

    value = None if null and rng.random() < 0.2 else rng.choice(VALUES[kind])
    return Decimal(value) if kind == "decimal" and value is not None else value

"""Draws random flat products, and writes each as a product file, always in one way.

A `Drawn` is the meaning: a root, its joins, conditions and members. `Author` draws it, `as_tree` writes it, and `Plain` writes
its expressions. `sql_texts.Analyst` writes the same as SQL.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
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
ALL: Final = "'all'"
"""The constant in the key of a total."""
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
        if self.may(0.15):
            return self.total(root, own)
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

    def total(self, root: str, own: list[Node]) -> Drawn:
        """A product of one document: of all rows that count."""
        drawn = Drawn(root=root, by={"all": ALL}, where=[self.condition(own)])
        rows = Joined(name="", entity=root, way="many", above="", on="", up="")
        rows.order = key_order(root, "")
        drawn.members = {f"m{n}": self.aggregate(rows) for n in range(self.rng.choice([1, 2, 3]))}
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


class Plain(ABC):
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

    @abstractmethod
    def aggregated(self, node: Node, env: Env) -> str:
        """The text of an aggregate."""

    @abstractmethod
    def found(self, join: str) -> str:
        """The text of the condition that a join finds a row."""

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

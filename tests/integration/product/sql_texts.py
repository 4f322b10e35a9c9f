"""Writes a random product as SQL, each time in another one of many equal forms.

An `Analyst` writes it as a person might: tables as CTEs, subqueries, LATERAL, with commas, in brackets or with USING; lists
grouped in the query, in subqueries of FROM or of SELECT; the first row by LIMIT, DISTINCT ON or row_number(); EXISTS, IN and
anti-joins; and equal expressions: flipped comparisons, casts in both spellings, other orders, brackets, letter case, comments.
"""

import re
from collections.abc import Callable, Iterable
from random import Random
from textwrap import indent
from typing import Any, Final

from tests.integration.product.random_trees import ALL, COLUMNS, KEYS, Drawn, Env, Joined, Node, Plain


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
        if ALL in drawn.by.values():
            return f"{text}\nhaving count(*) > 0"  # of no row, SQL has a row, and no document is there
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

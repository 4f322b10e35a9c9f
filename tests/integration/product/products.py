"""Draws random products over four tables, with every feature of a level, and random histories of their rows.

There are few different values, so rows often join, move and go. A `random.Random` makes every choice; Hypothesis may drive it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Any

from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.product import Definitions

Row = dict[str, Any]
Names = dict[str, list[str]]
"""Type -> the names of that type at a level."""

ENTITIES: dict[str, Any] = {
    "node": {
        "key": ["id"],
        "columns": {
            "id": "int", "up": "int", "k": "string", "n": "int", "v": "decimal", "ok": "bool", "at": "timestamp",
            "ids": "int[]",
        },
    },
    "item": {
        "key": ["k", "id"],
        "shards": 2,
        "columns": {
            "id": "int", "k": "string", "node": "int", "n": "int", "v": "float", "ok": "bool", "day": "date", "s": "string",
            "objects": "json[]",
        },
    },
    "tag": {
        "key": ["name"],
        "columns": {"name": "string", "item": "int", "n": "int", "s": "string", "x": "json", "words": "string[]"},
    },
    "link": {"key": ["a", "b"], "columns": {"a": "int", "b": "int", "n": "int", "s": "string"}},
}  # fmt: skip
TEXTS = ["a", "b", "B", "é", "", "ab"]
COMPARES: list[Any] = [None, "ci", "trimmed", ["ci", "trimmed"]]
DRAWN: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, -1, 2**63 - 1],
    "string": TEXTS,
    "decimal": [Decimal("0"), Decimal("1.5"), Decimal("-2.25"), Decimal("3")],
    "float": [0.0, 0.1, 0.2, -1.5, 1e30],
    "bool": [True, False],
    "timestamp": ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", "2021-06-01T12:30:00Z"],
    "date": ["2020-01-01", "2020-02-29", "2021-06-01"],
    "json": [{"a": 1}, [1, 2]],
    "int[]": [[], [1], [2, 0, 2], [3, None, 1]],
    "string[]": [[], ["a"], ["b", "a", "b"], [None, "é"]],
    "json[]": [
        [],
        [{"id": 1, "k": "a"}],
        [{"id": 2, "k": None}, 5, {"id": "a"}],
        [{"k": "b", "id": 0}, None, {"id": 2.5}],
    ],
}
ELEMENTS = [("node", "ids[]", "number"), ("tag", "words[]", "string")]
ELEMENTS += [("item", f"objects[].{member}", kind) for member in ("id", "k") for kind in ("number", "string")]
"""Entity, a field of array elements, and the kind of the values that it joins."""
KINDS = {"int": "number", "decimal": "number", "float": "number"}
NUMBERS = ("int", "decimal", "float")
SCALARS = ("int", "string", "decimal", "float", "date", "timestamp")


class Author:
    """Writes one product."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.count = 0
        self.bare = "int"  # the type of the last `value`

    def product(self) -> dict[str, Any]:
        root = self.rng.choice(list(ENTITIES))
        level = self.level(root, [], 3, grouped=False)
        names = level.pop("names")
        written = {"product": "p", "root": root, **level}
        if self.may(0.4):
            written["where"] = self.condition(names)
        return written

    def may(self, chance: float) -> bool:
        return self.rng.random() < chance

    def level(self, entity: str, above: Sequence[str], depth: int, *, grouped: bool) -> dict[str, Any]:
        """Joins and selection of a level, and the names for its expressions."""
        names = self.own(entity, "")
        for up, other in enumerate(reversed(above), start=1):
            for type_, own in self.own(other, "parent." * up).items():
                names[type_] += own
        joins: dict[str, dict[str, Any]] = {}
        for _ in range(self.rng.choice([0, 1, 1, 2, 3]) if depth else 0):
            name = f"j{self.count}"
            self.count += 1
            joins[name] = self.join(name, entity, above, depth - 1, names)
        return self.selection(entity, joins, names, grouped) | {"names": names}

    def own(self, entity: str, prefix: str) -> Names:
        names: Names = {type_: [] for type_ in DRAWN}
        for column, type_ in ENTITIES[entity]["columns"].items():
            names[type_].append(prefix + column)
        return names

    def joined(self, above: str) -> str:
        """The entity of a join."""
        return self.rng.choice(list(ENTITIES))

    def join(self, name: str, above: str, higher: Sequence[str], depth: int, names: Names) -> dict[str, Any]:
        """A join below `above`. Adds the names that the join makes available to `names`."""
        entity = self.joined(above)
        many, grouped = self.may(0.6), False
        if many:
            grouped = self.may(0.3)
        level = self.level(entity, [*higher, above], depth, grouped=grouped)
        below, bare = level.pop("names"), self.bare
        on = self.on(above, entity, many)
        listed = "[]" in str(list(on.values()))
        join: dict[str, Any] = {"many" if many else "one": entity, "on": on, **level}
        if self.may(0.25):
            join["strong"] = True
        if self.may(0.4):
            join["where"] = self.condition(below)
        if self.may(0.2):
            join["required"] = True
        if not listed and self.may(0.4):
            terms = [self.expression(below, self.rng.choice(SCALARS)) for _ in range(self.rng.choice([1, 2]))]
            join["order_by"] = [self.rng.choice(["", "-"]) + term for term in terms]
        if many and not (grouped or listed) and self.may(0.3):
            join["limit"] = self.rng.choice([1, 2])
        join["shown"] = self.may(0.6)
        if "limit" in join and join["shown"] and self.may(0.5):
            join["total"] = True
        self.name_columns(name, join, entity, names, below)
        if "one" in join and "value" in join:
            names[bare].append(name)
        return join

    def name_columns(self, name: str, join: dict[str, Any], entity: str, names: Names, below: Names) -> None:
        own = self.own(entity, f"{name}.")
        for type_, named in below.items():
            own[type_] += [f"{name}.{n}" for n in named if n[0] == "j" and "(" not in n]
            if "one" in join:
                names[type_] += [n.replace("(j", f"({name}.j") for n in named if "(j" in n and n.count("(") == 1]
        if "one" in join:
            for type_ in DRAWN:
                names[type_] += own[type_]
        elif "limit" not in join:
            names["int"].append(f"count({name})")
            for type_ in NUMBERS:
                names[type_] += [f"{f}({column})" for column in own[type_] for f in ("min", "max")]
            names["decimal"] += [f"{f}({column})" for column in own["int"] for f in ("sum", "avg")]
            names["float"] += [f"sum({column} * 2)" for column in own["float"]]
            names["string"] += [f"max({column} || 'x')" for column in own["string"]]

    def on(self, above: str, entity: str, many: bool) -> dict[str, str]:
        lists = [(field, parent) for field, parent in self.elements(entity, above)]
        lists += [(child, field) for field, child in self.elements(above, entity) if many]
        doubled = self.doubled(above, entity, lists)
        if doubled and self.may(0.25):
            return self.rng.choice(doubled)
        if lists and self.may(0.35):
            return dict([self.rng.choice(lists)])
        pairs = self.pairs(above, entity)
        likely = [(c, p) for c, p in pairs if {c, p} & {"id", "k", "node", "item", "up", "name", "a", "b"}]
        return dict([self.rng.choice(likely or pairs)])

    def pairs(self, above: str, entity: str) -> list[tuple[str, str]]:
        """Columns of an entity, and those above that they may equal."""
        return [
            (child, parent)
            for child, of_child in ENTITIES[entity]["columns"].items()
            for parent, of_parent in ENTITIES[above]["columns"].items()
            if "json" not in of_child
            and "[]" not in of_child
            and KINDS.get(of_child, of_child) == KINDS.get(of_parent, of_parent)
        ]

    def doubled(self, above: str, entity: str, lists: list[tuple[str, str]]) -> list[dict[str, str]]:
        """Two fields of an entity that both equal the same one above; the entity's whole key as often as all others."""
        children: dict[str, list[str]] = {}
        for child, parent in [*self.pairs(above, entity), *lists]:
            children.setdefault(parent, []).append(child)
        found = [{a: parent, b: parent} for parent, fields in children.items() for a, b in permutations(fields, 2)]
        whole = [on for on in found if set(on) == set(ENTITIES[entity]["key"])]
        return found + [self.rng.choice(whole) for _ in found if whole]

    def elements(self, entity: str, other: str) -> list[tuple[str, str]]:
        """Fields of array elements of an entity, and the columns of another entity that they may equal."""
        return [
            (field, column)
            for owner, field, kind in ELEMENTS
            for column, of in ENTITIES[other]["columns"].items()
            if owner == entity and KINDS.get(of, of) == kind
        ]

    def selection(self, entity: str, joins: dict[str, dict[str, Any]], names: Names, grouped: bool) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if grouped:  # an aggregated level has no embeds
            for join in joins.values():
                join["shown"] = False
                join.pop("total", None)
            members = {f"m{n}": self.total(names) for n in range(self.rng.choice([1, 3]))}
            written = {"value": members["m0"]} if self.may(0.5) else {"fields": members}
        else:
            embeds = [name for name, join in joins.items() if join["shown"]]
            kind = self.rng.choice(["whole", "list", "map", "map"] + ([] if embeds else ["value"]))
            if kind == "list":
                written["fields"] = list(ENTITIES[entity]["columns"])[:3]
            elif kind == "map":
                types = self.rng.choices([*SCALARS, "bool"], k=3)
                written["fields"] = {f"m{n}": self.expression(names, type_) for n, type_ in enumerate(types)}
            elif kind == "value":
                self.bare = self.rng.choice([*SCALARS, "bool"])
                written["value"] = self.expression(names, self.bare)
        for word in ("join", "embed"):
            found = {name: join for name, join in joins.items() if join["shown"] is (word == "embed")}
            if found:
                written[word] = {name: {k: v for k, v in j.items() if k != "shown"} for name, j in found.items()}
        return written

    def total(self, names: Names) -> str:
        """Aggregates over the level's own rows."""
        rows = {
            type_: [n for n in named if n[:4] not in ("min(", "max(", "sum(", "avg(", "coun")]
            for type_, named in names.items()
        }
        number = self.rng.choice(rows["int"])
        return self.rng.choice([
            "count(*)", f"count({number})", f"sum({number})", f"avg({number})", f"sum({number}) / count(*)",
            f"max({self.rng.choice(rows['string'] or ['null::text'])})", f"min({self.expression(rows, 'decimal')})",
            f"max({self.expression(rows, 'float')}) + 1", f"coalesce(sum({self.expression(rows, 'float')}), -1)",
            f"min({self.expression(rows, 'timestamp')})", f"count(*) * 2 - count({number})",
        ])  # fmt: skip

    def expression(self, names: Names, type_: str, depth: int = 2) -> str:
        """An expression of a type, in parentheses unless it is a bare name."""
        named = names[type_]
        if named and (not depth or self.may(0.5)):
            return self.rng.choice(named)
        if not depth:
            return f"cast(null as {'double precision' if type_ == 'float' else type_})"

        def some(other: str = type_) -> str:
            return self.expression(names, other, depth - 1)

        if type_ in NUMBERS and self.may(0.6):
            sign = self.rng.choice("+-*/")
            return f"({some()} {sign} {some('int') if type_ != 'float' else some()})"
        choices = [
            f"coalesce({some()}, {some()})",
            f"case when {self.condition(names, depth - 1)} then {some()} else {some()} end",
            f"nullif({some()}, {some()})",
        ]
        choices += [f"greatest({some()}, {some()})"] if type_ != "bool" else [f"({self.condition(names, depth - 1)})"]
        if type_ == "string":
            choices += [f"({some()} || {some('int')})", f"upper({some()})", f"substring({some()}, 2)"]
        return self.rng.choice(choices)

    def condition(self, names: Names, depth: int = 2) -> str:
        if depth and self.may(0.2):
            both = [self.condition(names, depth - 1) for _ in range(2)]
            return f"({both[0]} {self.rng.choice(['and', 'or'])} {both[1]})"

        def some(type_: str) -> str:
            return self.expression(names, type_, max(0, depth - 1))

        type_ = self.rng.choice(SCALARS)
        sign = self.rng.choice(["=", "<>", "<", ">="])
        return self.rng.choice([
            f"{some(type_)} {sign} {some(type_)}", f"{some(type_)} is not null", f"{some('int')} in (1, 2, null, {some('int')})",
            f"not {some('bool')} is true", f"{some('string')} like '%a%'", f"{some('int')} between 0 and 2",
            f"{some('int')} > -1", f"{some('int')} < 3", f"{some('string')} >= ''",
        ])  # fmt: skip


class ListAuthor(Author):
    """Writes one product with the words of lists: a list through another join, each element once or by a key, nested fields, and
    the aggregates that make lists. The worlds of `Author` stay as they are."""

    def level(self, entity: str, above: Sequence[str], depth: int, *, grouped: bool) -> dict[str, Any]:
        names = self.own(entity, "")
        for up, other in enumerate(reversed(above), start=1):
            for type_, own in self.own(other, "parent." * up).items():
                names[type_] += own
        joins: dict[str, dict[str, Any]] = {}
        for _ in range(self.rng.choice([0, 1, 2, 2, 3]) if depth else 0):
            name = f"j{self.count}"
            self.count += 1
            ways = [way for way, join in joins.items() if "limit" not in join]
            if ways and self.may(0.5):
                joins[name] = self.join_through(name, self.rng.choice(ways), joins, [*above, entity], depth - 1, names)
            else:
                joins[name] = self.join(name, entity, above, depth - 1, names)
            self.reshape(joins[name], names, grouped)
        return self.selection(entity, joins, names, grouped) | {"names": names}

    def join_through(
        self, name: str, way: str, joins: dict[str, dict[str, Any]], above: Sequence[str], depth: int, names: Names
    ) -> dict[str, Any]:
        """A join to the rows of another join of the level."""
        via = joins[way]
        mine: Names = {type_: [] for type_ in DRAWN}
        entity = via.get("one") or via["many"]
        while "[]" in str(list((join := self.join(name, entity, above, depth, mine))["on"].values())):
            mine = {type_: [] for type_ in DRAWN}
        join["on"] = {child: f"{way}.{parent}" for child, parent in join["on"].items()}
        if ("one" in via and "through" not in via) or ("many" in join and "limit" not in join):
            for type_, named in mine.items():
                names[type_] += [one for one in named if one != name]
        join["through"] = "one" in join and ("many" in via or "through" in via)
        if not join["through"]:
            join.pop("through")
        return join

    def reshape(self, join: dict[str, Any], names: Names, grouped: bool) -> None:
        listed = "[]" in str(list(join["on"].values()))
        if "many" in join and not (join.pop("grouped", False) or listed or grouped):
            if self.may(0.3):
                join["distinct"] = True
            elif self.may(0.3):
                columns = ENTITIES[join["many"]]["columns"]
                join["key"] = self.rng.choice(
                    [c for c, of in columns.items() if of in ("int", "string", "bool", "date")]
                )

    def selection(self, entity: str, joins: dict[str, dict[str, Any]], names: Names, grouped: bool) -> dict[str, Any]:
        written = super().selection(entity, joins, names, grouped)
        if grouped:
            written["grouped"] = True
        for word in ("join", "embed"):
            for join in written.get(word, {}).values():
                join.pop("through", None)
        fields = written.get("fields")
        if isinstance(fields, dict) and not grouped and self.may(0.5):
            fields["nested"] = {"a": self.expression(names, "int"), "b": [self.expression(names, "timestamp"), "1"]}
        if isinstance(fields, dict) and not grouped and self.may(0.3):
            del fields["m0"]
            fields["*"] = "*"
            written["except"] = [self.rng.choice(list(ENTITIES[entity]["columns"]))]
        return written

    def total(self, names: Names) -> str:
        rows = {
            type_: [n for n in named if n[:4] not in ("min(", "max(", "sum(", "avg(", "coun")]
            for type_, named in names.items()
        }

        def some(type_: str) -> str:
            return self.expression(rows, type_)

        order = f"order by {some(self.rng.choice(SCALARS))} {self.rng.choice(['', 'desc', 'nulls first'])}"
        type_ = self.rng.choice([*SCALARS, "bool"])
        where = f"filter (where {self.condition(rows)})" if self.may(0.4) else ""
        texts = rows["string"] or ["null::text"]
        return self.rng.choice([
            super().total(names), f"array_agg({some(type_)} {order}) {where}", f"array_agg(distinct {some(type_)}) {where}",
            f"string_agg({self.rng.choice(texts)}, '-' {order}) {where}",
            f"json_object_agg({some('int')}, {some(type_)} {order})",
            f"count(distinct {some(type_)}) {where}", f"bool_or({some('bool')}) {where}", f"every({some('bool')})",
            f"first({some(type_)} {order}) {where}", f"last({some(type_)} {order})", f"sum(distinct {some('decimal')}) {where}",
            f"sum({some('float')} {order}) {where}", f"json_build_object('n', count(*), 'all', array_agg({some(type_)}))",
        ])  # fmt: skip


GROUPED = ("int", "string", "decimal", "bool", "date", "timestamp")
"""The types whose values make groups."""
ROWS = "rows of a group"
"""The name that `ENTITIES` has for the groups, while an author writes a product of them."""


class GroupAuthor(Author):
    """Writes one product whose documents are of groups of rows."""

    def product(self) -> dict[str, Any]:
        while True:
            try:
                if (written := self.written()) is not None:
                    return written
            except IndexError:  # no table has a column of the type of a group
                continue
            finally:
                ENTITIES.pop(ROWS, None)

    def written(self) -> dict[str, Any] | None:
        entity = self.rng.choice(list(ENTITIES))
        own = ENTITIES[entity]["columns"]
        kinds = {name: kind for name, kind in own.items() if kind in GROUPED}
        by = self.rng.sample([*kinds], self.rng.choice([1, 1, 1, 2]))
        if {*ENTITIES[entity]["key"]} <= {*by}:
            return None
        made = {} if self.may(0.7) else {column: self.rng.choice(MADE.get(kinds[column], ["{}"])) for column in by}
        if Random(f"{entity} {by}").random() < 0.25:  # no draw, so that other seeds keep their products
            by, made = by[:1], {by[0]: "'all'"}
        named = {f"{column}_by": made[column].format(column) for column in by} if made else dict.fromkeys(by)
        types = ["string" if "'all'" in made.values() else GIVES.get(made.get(c, ""), kinds[c]) for c in by]
        root: dict[str, Any] = {"group": entity, "by": named if made else by}
        mine = self.own(entity, "")
        self.rows = ["count(*)", *[f"{f}({n})" for n in mine["int"] for f in ("count", "min")]]
        if self.may(0.4):
            join = self.join("r0", entity, [], 0, mine)
            join.pop("shown")
            join.pop("total", None)
            root["join"] = {"r0": join}
            self.rows += ["count(r0)"] if "many" in join and "limit" not in join else []
            self.rows += [f"max({n})" for n in mine["int"] if n.startswith("r0.")]
        if self.may(0.4):
            root["where"] = self.condition({k: [n for n in ns if n != "r0"] for k, ns in mine.items()})
        ENTITIES[ROWS] = {"key": [*named], "columns": dict(zip(named, types, strict=True))}
        level = self.level(ROWS, [], 2, grouped=False)
        del ENTITIES[ROWS]
        names = level.pop("names")
        if ROWS in json.dumps([level.get("join"), level.get("embed")]):
            return None
        written = {"product": "p", "root": root, **level}
        if self.may(0.4):
            written.setdefault("embed", {})["members"] = {
                "many": entity,
                "on": {made[c].format(c) if made else c: n for c, n in zip(by, named, strict=True)},
                "order_by": ["-n"],
            }
            written.pop("value", None)
        if self.may(0.3):
            written["where"] = self.condition(names)
        return written

    def own(self, entity: str, prefix: str) -> Names:
        names = super().own(entity, prefix)
        if entity == ROWS and not prefix:
            names["int"] += self.rows
        return names


def described_group(rng: Random) -> dict[str, Any]:
    """A product of groups. An author who names what a level does not have draws again."""
    while True:
        product = GroupAuthor(rng).product()
        try:
            load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})
        except DefinitionError:
            continue
        return product


def draw_group_definitions(rng: Random) -> Definitions:
    """The four tables, and one product of groups."""
    return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(described_group(rng), ensure_ascii=False)})


class TreeAuthor(ListAuthor):
    """Writes one product with recursive joins, nested, as one list, and as one group; and with unions of joins."""

    def joined(self, above: str) -> str:
        return above if self.may(0.6) else super().joined(above)

    def join(self, name: str, above: str, higher: Sequence[str], depth: int, names: Names) -> dict[str, Any]:
        mine: Names = {type_: [] for type_ in DRAWN}
        join = super().join(name, above, higher, depth, mine)
        if join.get("one", join.get("many")) == above and "[]" not in str(list(join["on"].values())) and self.may(0.8):
            join["recursive"] = self.rng.choice([2, 3, 4])
            join.pop("required", None)
            if (join.get("many") and self.may(0.5)) or "value" in join:
                join["as_list"] = True
                if isinstance(join.get("fields"), dict):
                    join["fields"]["depth"] = "depth()"
                if "order_by" in join and self.may(0.5):
                    join["order_by"].insert(0, self.rng.choice(["depth()", "-depth()"]))
            mine = {type_: [n for n in named if "one" in join] for type_, named in mine.items()}
        for type_, named in mine.items():
            names[type_] += named
        return join

    def reshape(self, join: dict[str, Any], names: Names, grouped: bool) -> None:
        if "recursive" not in join or "as_list" in join:
            super().reshape(join, names, grouped)

    def selection(self, entity: str, joins: dict[str, dict[str, Any]], names: Names, grouped: bool) -> dict[str, Any]:
        written = super().selection(entity, joins, names, grouped)
        if not grouped and "value" not in written and self.may(0.5):
            written.setdefault("embed", {})[f"u{self.count}"] = self.union(entity)
        return written

    def union(self, above: str) -> dict[str, Any]:
        types = self.rng.choices(SCALARS, k=2)
        union: dict[str, Any] = {"union": {f"p{n}": self.part(above, types) for n in range(self.rng.choice([2, 3]))}}
        if self.may(0.6):
            union["order_by"] = [self.rng.choice(["", "-"]) + f"f{n}" for n in self.rng.choice([[0], [1, 0]])]
        if self.may(0.3):
            union |= {"limit": 2, "total": self.may(0.5)}
        return union | ({"distinct": True} if self.may(0.3) else {})

    def part(self, above: str, types: Sequence[str]) -> dict[str, Any]:
        entity = self.rng.choice(list(ENTITIES))
        while "[]" in str(on := self.on(above, entity, False)):
            entity = self.rng.choice(list(ENTITIES))
        names = self.own(entity, "")
        for type_, own in self.own(above, "parent.").items():
            names[type_] += own
        fields = {f"f{n}": self.expression(names, type_) for n, type_ in enumerate(types)}
        return {"many": entity, "on": on, "fields": fields} | (
            {"where": self.condition(names)} if self.may(0.3) else {}
        )


def draw_tree_definitions(rng: Random) -> Definitions:
    """The four tables, and one product with a recursive join or a union."""
    while True:
        product = TreeAuthor(rng).product()
        product.pop("grouped", None)
        text = json.dumps(product, ensure_ascii=False)
        try:
            if '"recursive"' in text or '"union"' in text:
                return load({"entities.yaml": json.dumps(ENTITIES), "p.json": text})
        except DefinitionError:
            continue


def draw_list_definitions(rng: Random) -> Definitions:
    """The four tables, and one product with the words of lists. An author who names what a level does not have draws again."""
    while True:
        product = ListAuthor(rng).product()
        product.pop("grouped", None)
        try:
            return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})
        except DefinitionError:
            continue


def draw_definitions(rng: Random) -> Definitions:
    """The four tables, and one product."""
    product = Author(rng).product()
    return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})


def draw_compared_definitions(rng: Random) -> Definitions:
    """The same with columns that say how their text compares."""
    product, entities = Author(rng).product(), json.loads(json.dumps(ENTITIES))
    for entity in entities.values():
        for name, kind in entity["columns"].items():
            if kind.startswith("string") and (compare := rng.choice(COMPARES)):
                entity["columns"][name] = {"type": kind, "compare": compare}
    return load({"entities.yaml": json.dumps(entities), "p.json": json.dumps(product, ensure_ascii=False)})


def draw_ordered_definitions(rng: Random) -> Definitions:
    """The same, where indexes have the order of all joins that can have one; of one join at least."""
    while True:
        product = Author(rng).product()

        marked = [_order(join, rng, product) for join in list(_joins_of(product))]
        if any(marked) and (definitions := _loaded(product)):
            return definitions


def _loaded(product: dict[str, Any]) -> Definitions | None:
    try:
        return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})
    except DefinitionError:
        return None


def _joins_of(level: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for word in ("join", "embed"):
        for join in level.get(word, {}).values():
            yield join
            yield from _joins_of(join)


def _order(join: dict[str, Any], rng: Random, product: dict[str, Any]) -> bool:
    """Gives a join of a product an order by a column of its own, and a limit, unless the product then does not load."""
    before = dict(join)
    columns = ENTITIES[join.get("many") or join["one"]]["columns"]
    scalars = [name for name, kind in columns.items() if kind in (*SCALARS, "bool")]
    terms = [rng.choice(["", "-"]) + rng.choice(scalars), *join.get("order_by", [])]
    join |= {"order_by": terms, "ordered": True} | ({"limit": rng.choice([1, 2, 2, 3])} if "many" in join else {})
    for word in ("strong", "total", "distinct"):
        join.pop(word, None)
    if _loaded(product) is not None:
        return True
    join.clear()
    join.update(before)
    return False


MADE = {
    "string": ["lower({})", "left({}, 1)", "coalesce({}, 'a')", "{} || 'x'"],
    "int": ["{} % 2", "abs({})", "{}::text", "coalesce({}, 1)"],
    "timestamp": ["{}::date", "date_trunc('day', {})"], "date": ["{}::timestamp", "extract(day from {})"],
}  # fmt: skip
"""Type -> expressions over a column of it, for both sides of a join."""
NESTED: list[Any] = [None, {"a": [1, 2, 1]}, {"a": [{"id": 2}, {"id": "b"}, 0, None]}, {"a": {"id": 1}}, [1], {"a": []}]
"""Values of json, with an array within."""


def draw_computed_definitions(rng: Random) -> Definitions:
    """The same with expressions in joins, of which some are computed columns, and with arrays within json."""
    product, entities = Author(rng).product(), json.loads(json.dumps(ENTITIES))
    for entity in entities.values():
        for name, kind in entity["columns"].items():
            if kind == "string" and rng.random() < 0.2 and (compare := rng.choice(COMPARES)):
                entity["columns"][name] = {"type": kind, "compare": compare}
    compute(rng, product, product["root"], entities)
    return load({"entities.yaml": json.dumps(entities), "p.json": json.dumps(product, ensure_ascii=False)})


def every_computed_column() -> dict[str, Any]:
    """The tables, with a column for each expression of `MADE`."""
    entities = json.loads(json.dumps(ENTITIES))
    for entity in entities.values():
        for column, kind in [*entity["columns"].items()]:
            for made in MADE.get(kind, ()):
                _declare(entity, column, made)
    return dict(entities)


def compute(rng: Random, level: dict[str, Any], above: str, entities: dict[str, Any], forms: int = 4) -> None:
    """Puts expressions into the joins below a level, and computed columns into its fields. `forms`: how many of each type."""
    for join in [*level.get("join", {}).values(), *level.get("embed", {}).values()]:
        entity = join.get("many") or join["one"]
        if above == "tag" and "many" in join and not {"order_by", "limit"} & join.keys() and rng.random() < 0.5:
            number = "n" if entity != "node" else "id"
            join["on"] = {number: rng.choice(["x.a[]", "x.a[].id"])}
        pairs = {}
        for child, parent in join["on"].items():
            kinds = [ENTITIES[e]["columns"].get(c) for e, c in ((entity, child), (above, parent))]
            if kinds[0] in MADE and kinds[0] == kinds[1] and rng.random() < 0.8:
                made = rng.choice(MADE[kinds[0]][:forms])
                child, parent = _made(rng, entities[entity], child, made), _made(rng, entities[above], parent, made)
            pairs[child] = parent
        if len(pairs) == len(join["on"]):
            join["on"] = pairs
        compute(rng, join, entity, entities, forms)
    computed = [name for name, of in entities[above]["columns"].items() if isinstance(of, dict) and "as" in of]
    if isinstance(level.get("fields"), dict) and computed and "count(" not in str(level["fields"]):
        grouped = any(word in str(level["fields"]) for word in ("min(", "max(", "sum(", "avg("))
        level["fields"] |= {} if grouped else {"made": rng.choice(computed)}


def _made(rng: Random, entity: dict[str, Any], column: str, made: str) -> str:
    """The expression over a column, or the name of the computed column that has it."""
    return made.format(column) if rng.random() < 0.5 else _declare(entity, column, made)


def _declare(entity: dict[str, Any], column: str, made: str) -> str:
    kind = GIVES.get(made) or next(t for t, forms in MADE.items() if made in forms)
    name = f"{column}_{MADE_NAMES[made]}"
    entity["columns"].setdefault(name, {"type": kind, "as": made.format(column)})
    return name


MADE_NAMES = {made: f"{type_}{n}" for type_, forms in MADE.items() for n, made in enumerate(forms)}
GIVES = {"{}::text": "string", "{}::date": "date", "{}::timestamp": "timestamp", "extract(day from {})": "int"}
"""Of expressions in `MADE`, the type where it differs."""


def respell(rng: Random, value: Any) -> Any:
    """The value with another spelling of its texts, which columns may compare as the same."""
    if isinstance(value, dict):
        return {name: respell(rng, part) for name, part in value.items()}
    if isinstance(value, list):
        return [respell(rng, part) for part in value]
    return rng.choice([value, value.upper(), f"{value} ", f"{value.upper()}  "]) if value in TEXTS else value


def draw_history(rng: Random, steps: int) -> list[tuple[str, Mapping[str, Any], Row | None]]:
    """Changes in order: entity, key, and the new row, or None for a delete."""
    history: list[tuple[str, Mapping[str, Any], Row | None]] = []
    for _ in range(steps):
        entity = rng.choice(list(ENTITIES))
        row = draw_row(rng, entity)
        gone = rng.random() < 0.15
        history.append((entity, {c: row[c] for c in ENTITIES[entity]["key"]}, None if gone else row))
    return history


def draw_row(rng: Random, entity: str) -> Row:
    """A row of an entity."""
    key, columns = ENTITIES[entity]["key"], ENTITIES[entity]["columns"]
    return {c: None if c not in key and rng.random() < 0.15 else rng.choice(DRAWN[t]) for c, t in columns.items()}

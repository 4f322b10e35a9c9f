"""Reads the levels of a product below its root: joins (`join` and `embed`), each with its own level. `on` has the pairs of child
and parent columns that the join sets equal; one side may be the elements of an array."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from processor.language.definitions.expressions import read_row_expression
from processor.language.definitions.names import (
    NameScope,
    expression_type,
    of_each_row,
    parse_path,
    scope_at_path,
    write_path,
)
from processor.language.definitions.problems import AlreadyReported, Problems, suggest
from processor.language.definitions.selections import check_members, read_key, read_order, read_selection, read_where
from processor.language.definitions.shape import (
    JOIN,
    MAX_LEVELS,
    MAX_LIMIT,
    PART,
    THROUGH,
    UNION,
    as_count,
    as_flag,
    as_map,
    as_text,
    check_keys,
)
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.expressions.catalogue import FUNCTIONS
from processor.language.product.expressions.expression import (
    Call,
    Column,
    Literal,
    Path,
    Type,
    node_of,
    outside_aggregates,
)
from processor.language.product.expressions.json_values import read_path
from processor.language.product.join_fields import array_of, parse_element, type_of, write_computed
from processor.language.product.product import BareValue, Fields, GroupEntity, Join, expressions, members_below
from processor.values.entity import ColumnType, Compare, Entity, united
from registry.fields import column_of

_ON = "write `on: {child column: parent column}`"
JoinPairs = tuple[tuple[str, str], ...]


def read_on(node: YamlNode | None, join: Scalar, child: NameScope, above: NameScope, problems: Problems) -> JoinPairs:
    """The (child, parent) pairs of the join, in the order written. Leaves out a pair that is not text, with a problem. An
    expression becomes the field that has it."""
    if node is None:
        problems.add(join, f"the join `{join.text}` has no `on`", _ON)
    pairs = as_map(node, "`on`", _ON, problems)
    on: list[tuple[str, str]] = []
    for key, value in pairs.entries.values() if pairs else ():
        parent = as_text(value, f"the parent column of `{key.text}`", _ON, problems)
        if parent is None:
            continue
        on.append((key.text, parent))
        if _is_turned(key.text, parent, child, above):
            what = f"`on` is turned round: `{key.text}` is a column of `{above.entity}`, and `{parent}` of `{child.entity}`"
            problems.add(key, what, f"write `{parent}: {key.text}`: first the column of the joined `{child.entity}`")
            continue
        # A list, not a generator: it checks both sides, also where the first one fails.
        mine, other = of_each_row(key.text, child), of_each_row(parent, above)
        sides = [_read_side(mine, key, child, problems), _read_side(other, value, above, problems)]
        if None not in sides:
            on[-1] = (str(sides[0]), str(sides[1]))
            _check_pair(key, (key.text, parent), on[-1], child, above, problems)
    if pairs is not None:
        _check_arrays(on, pairs, problems)
    return tuple(on)


def _read_side(text: str, node: YamlNode, scope: NameScope, problems: Problems) -> str | None:
    """The field of one side: a column, elements of an array, or an expression over columns of the row. None: there is none."""
    columns, column = scope.columns, column_of(text)
    if columns is None or text in columns:
        return text
    read = parse_element(text)
    name = read.column if read else text
    if name in scope.computed and name not in columns:
        scope.reads.add((scope.entity, name))
    if read and name not in columns:
        elements = text.removeprefix(name)
        if name in scope.computed and scope.computed[name].type.name == "json":
            return f"{scope.computed[name].field}{elements}"
        if path := _json_path(name, scope):
            return f"{path}{elements}" if _check_element(text, node, scope, problems) else None
    if name in scope.computed:
        return scope.computed[name].field if read is None or not _refuse_elements(text, node, scope, problems) else None
    if column != text and column in columns:
        return text if _check_element(text, node, scope, problems) else None
    if parse_path(column) is None and "[]" not in text:
        made = read_row_expression(text.strip(), node, scope, problems)
        if made is not None and made.node.type == "json":
            problems.add(node, f"`{text}` is json, which joins nothing", "join its text, `->>`, or cast it")
            return None
        return None if made is None else write_computed(made.node, made.compare)
    if "." in column:
        what = f"`{text}` is not a column of `{scope.entity}` itself"
        problems.add(
            node,
            what,
            "name a column of it, `join.column` of another join of this level, or an expression, `(data ->> 'id')::int`",
        )
    else:
        problems.add(node, f"entity `{scope.entity}` has no column `{column}`", suggest(column, scope.names))
    return None


def _json_path(dotted: str, scope: NameScope) -> str | None:
    """The field of an array within a json column, `meta.refs`; None for another name."""
    first, *steps = parse_path(dotted) or ("",)
    declared = (scope.columns or {}).get(first)
    if not steps or declared is None or declared.name != "json" or declared.array:
        return None
    path = f"{{{','.join(steps)}}}"
    try:
        read_path(path)
    except ValueError:
        return None
    args = (Column(name=first), Literal(value=path, type="string"))
    return write_computed(Call(function="#>(json,string)", args=args, type="json"))


def _refuse_elements(field: str, node: YamlNode, scope: NameScope, problems: Problems) -> bool:
    name = column_of(field)
    problems.add(
        node, f"`{scope.entity}.{name}` is {scope.computed[name].type}, which has no elements", f"write `{name}`"
    )
    return True


def read_compares(on: JoinPairs, child: NameScope, above: NameScope) -> tuple[Compare, ...]:
    """How the text of each pair compares: by the words of both its columns. Empty where no column has a word."""
    types = [(_field_type(child, field), _field_type(above, parent)) for field, parent in on]
    compares = tuple(united(side.compare for side in sides if side) for sides in types)
    return compares if any(compares) else ()


def _is_turned(field: str, parent: str, child: NameScope, above: NameScope) -> bool:
    """Whether the pair does not exist, but would exist the other way round."""
    below_columns, above_columns = child.columns, above.columns
    if below_columns is None or above_columns is None:
        return False
    name, other = column_of(field), column_of(parent)
    exists = name in child.names and other in above.names
    return not exists and other in child.names and name in above.names


def _check_element(field: str, node: YamlNode, scope: NameScope, problems: Problems) -> bool:
    read, columns = parse_element(field), scope.columns
    if read is None or columns is None:
        return True
    declared = columns.get(read.column) or ColumnType(name="json")
    column_is = f"`{scope.entity}.{read.column}` is {declared}"
    if declared.kind:
        problems.add(node, f"{column_is}, which has no elements", f"write `{read.column}`")
    elif read.member is not None and declared.name != "json":
        problems.add(node, f"{column_is}, whose elements have no members", f"write `{read.column}[]`")
    elif read.member is not None and ("." in read.member or "[]" in read.member):
        problems.add(node, f"`{field}` names a part of a member of the elements", f"write `{read.column}[].<member>`")
    else:
        return True
    return False


def _check_pair(
    key: Scalar, written: tuple[str, str], on: tuple[str, str], child: NameScope, above: NameScope, problems: Problems
) -> None:
    sides = [(scope, field, text) for scope, field, text in zip((child, above), on, written, strict=True)]
    kinds = {_comparable_kind(*side, key, problems) for side in sides} - {"json"}
    if len(kinds) > 1 and None not in kinds:
        types = " and ".join(f"{_named(scope, text)} is {_field_type(scope, field)}" for scope, field, text in sides)
        problems.add(key, f"{types}: they never match", f"join values of one type{_cast_cure(sides)}")


def _cast_cure(sides: list[tuple[NameScope, str, str]]) -> str:
    """The shortest cast that makes the sides of one type."""
    for (scope, mine, text), (other, theirs, _) in (sides[::-1], sides):
        own, target = _field_type(scope, mine), _field_type(other, theirs)
        if own and target and "[]" not in mine and f"to {target.name}({own.name})" in FUNCTIONS:
            cast = text if parse_path(text) else f"({text})"
            return f", or cast one side: `{cast}::{target.name}`"
    return ""


def _named(scope: NameScope, text: str) -> str:
    """A side as its author wrote it: a column with its entity, or an expression."""
    return f"`{scope.entity}.{text}`" if column_of(text) in scope.names else f"`{text}`"


def _comparable_kind(scope: NameScope, field: str, text: str, node: YamlNode, problems: Problems) -> str | None:
    """The kind that the field's values compare as. `json`: for json elements; None: the field joins nothing, or is unknown."""
    declared = _field_type(scope, field)
    if declared is None or declared.kind:
        return declared.kind if declared else None
    if parse_element(field):
        return "json"
    cure = f"write `{text}[]` to join its elements{'' if declared.array else ', or join on a scalar column'}"
    problems.add(node, f"`{scope.entity}.{text}` is {declared}, which joins nothing", cure)
    return None


def _field_type(scope: NameScope, field: str) -> ColumnType | None:
    entity = scope.entities.get(scope.entity)
    return type_of(field, entity) if isinstance(entity, Entity) else None


def _check_arrays(on: list[tuple[str, str]], node: YamlNode, problems: Problems) -> None:
    """Adds a problem where `on` names the elements of more than one array."""
    arrays = {(side, read.column) for pair in on for side, field in enumerate(pair) if (read := parse_element(field))}
    if len(arrays) > 1:
        names = " and ".join(f"`{column}[]`" for _, column in sorted(arrays))
        problems.add(node, f"`on` names the elements of several arrays, {names}", "join on the elements of one array")


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenJoin:
    """A join as the author wrote it. `shown`: it is an `embed`."""

    name: Scalar
    body: Map
    shown: bool
    part: str = ""
    parts: tuple[str, ...] = ()


def read_joins(body: Map, above: NameScope, problems: Problems) -> dict[str, Join | None]:
    """The joins of a level by name, first those of `join`, then those of `embed`. A join with problems has None. A join to the
    rows of another join of the level hangs below that one."""
    reader = _JoinsReader(above=above, problems=problems, places=_places(body))
    for word, shown in (("join", False), ("embed", True)):
        mapping = as_map(body.get(word), f"`{word}`", f"write `{word}: {{name: {{one: entity, on: ...}}}}`", problems)
        for name, (key, node) in mapping.entries.items() if mapping else ():
            if name in reader.written:
                problems.add(key, f"`{name}` is both a `join` and an `embed`", "rename one of them")
            as_text(key, "the name of a join", "use text without control characters", problems)
            cure = "write `{one: entity, on: {child column: parent column}}`"
            joined = as_map(node, f"the join `{name}`", cure, problems)
            made = _WrittenJoin(name=key, body=joined, shown=shown) if joined else None
            if made is None or "union" not in made.body.entries:
                reader.add(name, made)
            else:
                for part in _parts_of_union(made, reader.written, problems):
                    reader.add(part.name.text, part)
    before = len(problems)
    found = reader.read()
    if isinstance(shown_joins := body.get("embed"), Map) and len(problems) == before:
        _check_unions(replace(above, joins=found), shown_joins, problems)
    return found


def _parts_of_union(union: _WrittenJoin, taken: Collection[str], problems: Problems) -> Iterator[_WrittenJoin]:
    """The joins whose rows are the list of a union. The first has its name, each other one the name with that of its part."""
    name, body = union.name.text, union.body
    check_keys(body, f"the union `{name}`", UNION, problems)
    cure = "write `union: {name: {many: entity, on: ..., fields: ...}, other: {...}}`"
    parts = as_map(body.get("union"), f"`union` of `{name}`", cure, problems)
    if not union.shown:
        problems.add(union.name, f"the union `{name}` is a `join`, which shows nothing", "write it as an `embed`")
    if parts is None or not union.shown:
        return
    if len(parts.entries) < 2:
        problems.add(body.key_node("union"), f"the union `{name}` has one part", "add another one, or write a `many`")
    names = [name, *(f"{name}_{part}" for part in [*parts.entries][1:])]
    for made, (part, (key, node)) in zip(names, parts.entries.items(), strict=True):
        joined = as_map(node, f"the part `{part}` of `{name}`", cure, problems)
        if joined is None:
            continue
        check_keys(joined, f"the part `{part}` of `{name}`", PART, problems)
        if "fields" not in joined.entries:
            problems.add(key, f"the part `{part}` of `{name}` has no `fields`", "name the members of its elements")
        if made in taken and made != name:
            what = f"the part `{part}` of `{name}` is a join `{made}`, and the level has a join of this name"
            problems.add(key, what, "rename one of them")
        words = (
            body.entries.keys() - {"union"} if made == name else body.entries.keys() & {"order_by", "key", "distinct"}
        )
        yield _WrittenJoin(
            name=replace(key, value=made, text=made),
            body=replace(joined, entries={**joined.entries, **{word: _of_part(word, body, joined) for word in words}}),
            shown=made == name,
            part=part,
            parts=tuple(names[1:]) if made == name else (),
        )


def _of_part(word: str, union: Map, part: Map) -> tuple[Scalar, YamlNode]:
    """The entry of a word of a union for one of its parts: `order_by` and `key` name its fields, and a part reads their
    expressions."""
    key, node = union.entries[word]
    fields = part.get("fields")
    written = fields.entries if isinstance(fields, Map) else {}

    def expressed(one: YamlNode) -> YamlNode:
        if not isinstance(one, Scalar) or not isinstance(one.value, str):
            return one
        name = one.value.removeprefix("-").strip()
        found = written[name][1] if name in written else one
        if found is one or not isinstance(found, Scalar):
            return one
        text = f"{'-' if one.value.startswith('-') else ''}{found.text}"
        return replace(one, value=text, text=text)

    if word not in ("order_by", "key"):
        return key, node
    return key, replace(node, items=tuple(map(expressed, node.items))) if isinstance(node, Sequence) else expressed(
        node
    )


def _check_unions(scope: NameScope, embeds: Map, problems: Problems) -> None:
    """Adds a problem where the parts of a union differ in their members, in the types of these, or in those of the order."""
    members = {join.name: (path, join) for path, join in members_below(tuple(filter(None, scope.joins.values())))}
    for first in [join for _, join in members.values() if join.parts]:
        found = [
            (join.part, *_kinds_of_part(join, scope_at_path(path, scope)))
            for path, join in (members[name] for name in (first.name, *first.parts))
        ]
        location = embeds.key_node(first.name)
        one, shown, order = found[0]
        for part, others, terms in found[1:]:
            subject = f"the parts `{one}` and `{part}` of `{first.name}`"
            if [*others] != [*shown]:
                what = f"{subject} show {', '.join(shown)} and {', '.join(others)}"
                problems.add(location, what, "give all parts the same `fields`, in one order")
                continue
            pairs = [(f"`{name}`", shown[name], type_) for name, type_ in others.items()]
            pairs += [("the order", *both) for both in zip(order, terms, strict=True)]
            for name, mine, other in pairs:
                if None not in (mine, other) and mine != other:
                    problems.add(
                        location, f"{subject} have {mine} and {other} for {name}", f"cast one of them: `x::{mine}`"
                    )


def _kinds_of_part(join: Join, scope: NameScope) -> tuple[dict[str, Type], list[Type]]:
    """The types of the members and of the order of a part, whose rows have the scope."""
    members = join.selection.members if isinstance(join.selection, Fields) else ()
    types = {name: expression_type(expression, scope) for name, expression in members}
    return types, [expression_type(term.by, scope) for term in join.order_by]


def _places(body: Map) -> dict[str, int]:
    """The place of each embed among the members that the embeds make."""
    shown = body.get("embed")
    return {name: place for place, name in enumerate(shown.entries)} if isinstance(shown, Map) else {}


def _lacking(through: Map) -> str:
    """What the row between two joins must have, and lacks."""
    words = through.entries.keys()
    return (
        ""
        if "on" in words and words & {"one", "many"}
        else "no `on`"
        if "on" not in words
        else "neither `one` nor `many`"
    )


@dataclass(slots=True, kw_only=True)
class _JoinsReader:
    """Reads the joins of a level. A join to the rows of another one is read after that one. `joins`: those right below the level;
    None for one with problems."""

    above: NameScope
    problems: Problems
    places: Mapping[str, int]
    written: dict[str, _WrittenJoin | None] = field(default_factory=dict)
    joins: dict[str, Join | None] = field(default_factory=dict)
    hung: list[str] = field(default_factory=list)
    reading: list[str] = field(default_factory=list)

    def add(self, name: str, written: _WrittenJoin | None) -> None:
        """Adds a join; before it, the join that it names with `through`."""
        node = written.body.get("through") if written else None
        if written is None or node is None:
            self.written[name] = written
            return
        between = f"{name}_through"
        subject, above = f"`through` of `{name}`", self.above.entity
        entity = node.text if isinstance(node, Scalar) and parse_path(node.text) else "entity"
        cure = f"write `through: {{many: {entity}, on: {{column of {entity}: column of {above}}}}}`"
        body = as_map(node, subject, cure, self.problems)
        if between in self.written:
            what = f"`through` of `{name}` is a join `{between}`, and the level has a join of this name"
            self.problems.add(node, what, "rename that one")
        key = replace(written.name, value=between, text=between)
        if body is not None and (lacks := _lacking(body)):
            self.problems.add(node, f"{subject} has {lacks}", cure)
            body = None
        elif body is not None:
            check_keys(body, subject, THROUGH, self.problems)
        self.add(between, _WrittenJoin(name=key, body=body, shown=False) if body else None)
        entries = {word: entry for word, entry in written.body.entries.items() if word != "through"}
        if isinstance(on := written.body.get("on"), Map):
            pairs = {key: (node, self._below(between, value)) for key, (node, value) in on.entries.items()}
            entries["on"] = (entries["on"][0], replace(on, entries=pairs))
        self.written[name] = replace(written, body=replace(written.body, entries=entries))

    def _below(self, join: str, node: YamlNode) -> YamlNode:
        """The name of a column as one of a join of the level."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return node
        column = column_of(node.value)
        path = parse_path(column)
        if path is None or path[1:]:
            what = f"`{node.value}` is no column of the row between"
            self.problems.add(node, what, "name a column; of an expression, make a computed column with `as`")
            return node
        name = write_path(Column(name=path[0], path=(join,))) + node.value[len(column) :]
        return replace(node, value=name, text=name)

    def read(self) -> dict[str, Join | None]:
        """The joins right below the level, first the hidden ones."""
        for name in self.written:
            self._read(name)
        hidden_first = sorted(self.written, key=lambda name: (of := self.written[name]) is not None and of.shown)
        return {name: self.joins[name] for name in hidden_first if name in self.joins}

    def _read(self, name: str) -> None:
        """Reads a join, unless it is read already."""
        if name in self.joins or name in self.hung:
            return
        written = self.written[name]
        self.joins[name] = None
        self.reading.append(name)
        via = None if written is None else self._via(written)
        if written is not None and via == ():
            self.joins[name] = _read_join(written, self.above, self.problems)
        elif written is not None and via:
            self._read_below(written, via)
        self.reading.remove(name)

    def _via(self, written: _WrittenJoin) -> Path | None:
        """The path of the join whose rows are above this one; empty for the level's own row, None where that has problems."""
        on, columns, found = written.body.get("on"), self.above.columns or (), {}
        for _, value in on.entries.values() if isinstance(on, Map) else ():
            text = str(value.value) if isinstance(value, Scalar) else ""
            path = parse_path(column_of(text)) or ()
            via = path[:-1] if text not in columns and path[1:] and path[0] in self.written else ()
            found[via] = value
        if len(found) > 1:
            what = f"the `on` of `{written.name.text}` names columns of several rows, but a join has one row above it"
            cure = "keep those of one row, and compare the others in `where`: `tenant = parent.parent.tenant`"
            self.problems.add(written.name, what, cure)
            return None
        via = next(iter(found), ())
        if not via:
            return ()
        first = via[0]
        if first in self.reading:
            what = f"the `on` of `{written.name.text}` names the join `{first}`, which leads back to it"
            self.problems.add(written.name, what, "join one of them to the row of its level")
            return None
        self._read(first)
        scope = self._scope()
        path = scope.physical(via)
        try:
            for step in range(len(path)):
                above = scope_at_path(path[:step], scope)
                if path[step] not in above.joins:
                    what = f"`{path[step]}` in `{'.'.join(via)}` is not a join"
                    self.problems.add(written.name, what, suggest(path[step], above.joins))
                    return None
                join = above.joins[path[step]]
                if join is not None and join.limit is not None:
                    what = f"`{path[step]}` has a `limit`, but the join `{written.name.text}` reads all its rows"
                    self.problems.add(written.name, what, "remove `limit`, or join the rows a second time without it")
                    return None
            scope_at_path(path, scope)
        except AlreadyReported:
            return None
        return path

    def _scope(self) -> NameScope:
        return replace(self.above, joins=self.joins)

    def _read_below(self, written: _WrittenJoin, via: Path) -> None:
        """Reads a join, and hangs it below the join at `via`."""
        name, scope, body = written.name.text, scope_at_path(via, self._scope()), written.body
        on = body.get("on")
        assert isinstance(on, Map)
        pairs = {key: (node, _own(value)) for key, (node, value) in on.entries.items()}
        entries = {**body.entries, "on": (body.key_node("on"), replace(on, entries=pairs))}
        if "recursive" in entries:
            what = f"`{name}` is recursive, and joins the rows of another join"
            self.problems.add(body.key_node("recursive"), what, f"write it as a join of `{via[-1]}`")
            return
        if name in scope.joins:
            what = f"`{name}` joins the rows of `{'.'.join(via)}`, which has a join of this name"
            self.problems.add(written.name, what, "rename one of them")
            return
        before = len(self.problems)
        join = _read_join(replace(written, body=replace(body, entries=entries)), scope, self.problems)
        if join is not None and join.listed:
            what = f"the list join `{name}` looks up an array of another row than that of its level"
            self.problems.add(written.name, what, f"write it as an `embed` of `{via[-1]}`")
        if join is not None and join.aggregated:
            above_rows = range(1, len(via) + 1)
            if any(c.up in above_rows for e in expressions(join.selection) for c in outside_aggregates(node_of(e))):
                what = f"`{name}` aggregates rows below several rows, so `parent` has no single value in it"
                self.problems.add(written.name, what, "put it into the aggregate")
        if join is None or len(self.problems) > before:
            return
        del self.joins[name]
        self.hung.append(name)
        join = replace(join, lift=len(via), place=self.places.get(name, 0))
        first = self.joins[via[0]]
        assert first is not None
        self.joins[via[0]] = _hung(first, via[1:], join)


def _hung(above: Join, path: Path, join: Join) -> Join:
    """The join `above` with `join` below the join at `path`."""
    if not path:
        return replace(above, joins=(*above.joins, join))
    below = tuple(_hung(one, path[1:], join) if one.name == path[0] else one for one in above.joins)
    return replace(above, joins=below)


def _own(node: YamlNode) -> YamlNode:
    """The name of a column of another join, as that row names it."""
    assert isinstance(node, Scalar)
    column = column_of(str(node.value))
    name = (parse_path(column) or (column,))[-1] + str(node.value)[len(column) :]
    return replace(node, value=name, text=name)


def _read_join(written: _WrittenJoin, above: NameScope, problems: Problems, level: int = 1) -> Join | None:
    """A join. `level`: of a recursive one, whose next levels the same words make."""
    before = len(problems)
    body, name = written.body, written.name.text
    if not written.part:
        check_keys(body, f"the join `{name}`", JOIN, problems)
    entity, many = _read_entity(written, above, problems)
    if entity is None:
        return None
    recursive = _read_recursive(written, entity, above, problems)
    child = NameScope(
        entities=above.entities,
        entity=entity,
        above=above,
        many=many,
        level=level if recursive else 0,
        reads=above.reads,
        clock=above.clock,
        tzdata=above.tzdata,
    )
    on = read_on(body.get("on"), written.name, child, above, problems)
    if array_of(tuple(parent for _, parent in on)) is not None:
        _check_list_join(body, name, problems)
    joins = read_joins(body, child, problems)
    scope = replace(child, joins=joins)
    selection = read_selection(body, scope, problems)
    where = read_where(body.get("where"), scope, problems)
    order_by = read_order(body.get("order_by"), scope, problems)
    limit, key = _read_limit(body, many, problems), read_key(body, scope, problems)
    distinct, as_list = as_flag(body, "distinct", problems), as_flag(body, "as_list", problems)
    required, total, strong = (as_flag(body, word, problems) for word in ("required", "total", "strong"))
    ordered = as_flag(body, "ordered", problems)
    check_members(body, selection, joins, scope, problems)
    if len(problems) > before:
        return None
    join = Join(
        name=name,
        entity=entity,
        many=many,
        shown=written.shown,
        on=on,
        order_by=order_by,
        limit=limit,
        total=total,
        where=where,
        required=required,
        selection=selection,
        joins=tuple(join for join in joins.values() if join is not None),
        strong=strong,
        compare=read_compares(on, child, above),
        distinct=distinct,
        key=key,
        level=child.level,
        recursive=recursive - level + 1 if recursive else 0,
        as_list=as_list,
        part=written.part,
        parts=written.parts,
        ordered=ordered,
        written=_written_pairs(body.get("on"), on),
    )
    _check_combinations(join, body, problems)
    if recursive:
        _check_recursive(join, body, scope, problems)
    elif as_list:
        what = f"`as_list` makes one list of the levels of a recursive join, and `{name}` has one level"
        problems.add(body.key_node("as_list"), what, "add `recursive`, or remove `as_list`")
    if level < recursive and len(problems) == before:
        join = _with_next_level(join, written, scope, problems)
    return join if len(problems) == before else None


def _read_recursive(written: _WrittenJoin, entity: str, above: NameScope, problems: Problems) -> int:
    """The number of levels of a recursive join; 0 for a join of one level."""
    node, name = written.body.get("recursive"), written.name.text
    if node is None:
        return 0
    location = written.body.key_node("recursive")
    if entity != above.entity:
        what = f"`{name}` is recursive, but joins rows of `{entity}` to rows of `{above.entity}`"
        problems.add(location, what, f"join rows of `{above.entity}`, or remove `recursive`")
    levels = as_count(node, "`recursive`", MAX_LEVELS, problems)
    if levels == 1:
        problems.add(node, "`recursive` is one level", "write a number of levels above 1, or remove `recursive`")
    return levels or 0


def _check_recursive(join: Join, body: Map, scope: NameScope, problems: Problems) -> None:
    """Adds a problem for each word that has no meaning for the rows of several levels."""
    name, location = join.name, body.key_node("recursive")
    if join.listed:
        problems.add(location, f"`{name}` looks up an array, which has one level", "remove `recursive`")
    if join.required:
        what = f"`{name}` is recursive and `required`, so the rows of its last level would never count"
        problems.add(body.key_node("required"), what, "remove one of them")
    if join.as_list and (not join.many or join.aggregated):
        what = f"`as_list` makes a list, and `{name}` is {'one value' if join.many else 'a `one`'}"
        cure = "remove `as_list`: an aggregate reads all levels" if join.many else "write `many`, or remove `as_list`"
        problems.add(body.key_node("as_list"), what, cure)
    if join.aggregated and join.joins:
        what = (
            f"`{name}` aggregates the rows of several levels, which need joins of their own for `{join.joins[0].name}`"
        )
        problems.add(location, what, "aggregate columns of the rows alone, or write `as_list: true` for one list")
    if not join.gathers and isinstance(join.selection, BareValue):
        what = f"`{name}` is recursive, and `value` has no place for the rows of its next level"
        problems.add(body.key_node("value"), what, "use `fields`, or `as_list: true` for one list")
    members = dict(join.selection.members) if isinstance(join.selection, Fields) else scope.columns or {}
    if not join.gathers and name in members:
        what = f"the member `{name}` of a row and the next level of the join have the same name"
        problems.add(location, what, "rename one of them, or select the other columns with `fields`")
    if any(below.name == name for below in join.joins):
        problems.add(location, f"`{name}` has a join of its own name below it", "rename one of them")


def _with_next_level(join: Join, written: _WrittenJoin, scope: NameScope, problems: Problems) -> Join:
    """The join with its next levels below it, which the same words make."""
    deeper = replace(written, shown=written.shown and not join.gathers)
    found = Problems(stored=problems.stored)
    below = _read_join(deeper, scope, found, join.level + 1)
    if below is None:
        what = f"`{written.name.text}` is recursive, and at its second level {found.first}"
        cure = "there the row above is one of the join itself: of `parent`, name only columns of the entity"
        problems.add(written.body.key_node("recursive"), what, cure)
        return join
    return replace(join, joins=(*join.joins, below))


def _written_pairs(node: YamlNode | None, on: JoinPairs) -> JoinPairs:
    """The pairs of `on` as their author wrote them; empty where these are the fields themselves."""
    entries = node.entries.values() if isinstance(node, Map) else ()
    written = tuple((key.text, value.text) for key, value in entries if isinstance(value, Scalar))
    return () if written == on else written


def _check_combinations(join: Join, body: Map, problems: Problems) -> None:
    """Adds a problem for `total` without `limit`, for aggregates with `limit`, and for aggregates with an `embed` below."""
    if join.total and join.level < 2 and (join.limit is None or not join.shown):
        what = f"`total` of `{join.name}` counts the rows before `limit`, so it needs an `embed` with a `limit`"
        problems.add(body.key_node("total"), what, "add `limit` to an `embed`, or count with `value: count(*)`")
    if join.part and join.aggregated:
        problems.add(
            body.key_node("fields"), f"the part `{join.part}` has an aggregate", "show its rows: name columns of each"
        )
    if join.aggregated and join.limit is not None:
        what = f"`{join.name}` has a `limit`, but its aggregate reads all rows"
        problems.add(body.key_node("limit"), what, "remove `limit`, or the aggregate")
    for word, used in (("distinct", join.distinct), ("key", join.key is not None)):
        if used and (not join.many or join.aggregated or join.listed):
            kind = "a list join, which keeps its array" if join.listed else "one value" if join.many else "a `one`"
            problems.add(
                body.key_node(word), f"`{word}` is for a list, and `{join.name}` is {kind}", f"remove `{word}`"
            )
    if join.distinct and join.key is not None:
        problems.add(
            body.key_node("distinct"), f"`{join.name}` has a `key`, so each key is there once", "remove `distinct`"
        )
    if join.aggregated and any(below.shown for below in join.joins):
        what = f"`{join.name}` aggregates all its rows, but an `embed` below it belongs to one row"
        problems.add(body.key_node("embed"), what, "use `join` instead of `embed`, and aggregate its columns")


def _read_entity(written: _WrittenJoin, above: NameScope, problems: Problems) -> tuple[str | None, bool]:
    """The joined entity, and whether the join is a `many`. A missing or unknown entity gives None."""
    body, name = written.body, written.name.text
    words = [word for word in ("one", "many") if word in body.entries]
    if len(words) != 1:
        what = f"the join `{name}` has {'both `one` and `many`' if words else 'neither `one` nor `many`'}"
        problems.add(written.name, what, "write `one: entity` for an object, or `many: entity` for a list")
        return None, False
    node = body.entries[words[0]][1]
    entity = as_text(node, f"`{words[0]}`", "write the name of an entity", problems)
    tables = [name for name, one in above.entities.items() if not isinstance(one, GroupEntity)]
    if entity is not None and entity not in tables:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, tables))
        return None, False
    return entity, words == ["many"]


def _check_list_join(body: Map, name: str, problems: Problems) -> None:
    """Adds a problem for each key that a list join cannot have: it shows the parent's array, element by element."""
    if "one" in body.entries:
        what = f"`{name}` is a `one`, but its `on` looks up each element of an array"
        problems.add(body.key_node("one"), what, "write `many`, or join on a scalar column")
    for word in ("order_by", "limit"):
        if word in body.entries:
            what = f"the list join `{name}` has `{word}`, but it keeps the array's order and length"
            problems.add(body.key_node(word), what, f"remove `{word}`")


def _read_limit(body: Map, many: bool, problems: Problems) -> int | None:
    node = body.get("limit")
    if node is None:
        return None
    if not many:
        problems.add(body.key_node("limit"), "a `one` has no `limit`", "remove it: a `one` takes the first row")
        return None
    return as_count(node, "`limit`", MAX_LIMIT, problems)

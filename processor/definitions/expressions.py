"""Expressions as authors write them, read: names resolved at their level, types checked, coercions made explicit.

A simple column is read without a parser. What is more goes through `processor.definitions.sql_parser`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from processor.definitions.columns import Level, parse_path, reach, resolve
from processor.definitions.errors import Elsewhere, Place, Problems, Wrong, suggest
from processor.definitions.overloads import Typed, apply, literal
from processor.definitions.sql_parser import Apply, Constant, Name, Parsed, parse
from processor.model.expression import Aggregate, Call, Column, Computed, Expression, Literal, Path, Shown, Type
from processor.model.functions import FUNCTIONS, OVERLOADS

AGGREGATES: Final = ("count", "sum", "min", "max", "avg")
_LITERALS: Final = ("true", "false", "null")
_ALIASES: Final = {
    "ceiling": "ceil", "character_length": "char_length", "substr": "substring", "btrim": "trim", "strpos": "position",
    "to bigint": "to int", "to integer": "to int", "to numeric": "to decimal", "to double precision": "to float",
    "to text": "to string", "to varchar": "to string", "to boolean": "to bool", "to timestamptz": "to timestamp",
}  # fmt: skip
_ALSO_CALLED: Final = {
    "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce", "len": "length", "ucase": "upper", "lcase": "lower",
    "instr": "position", "if": "case", "iif": "case", "average": "avg", "mean": "avg", "total": "sum",
}  # fmt: skip
_KEYWORDS: Final = {"and", "case", "in", "like", "not", "or"}
_VOLATILE: Final = frozenset([
    "now", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "clock_timestamp", "timeofday",
    "statement_timestamp", "transaction_timestamp", "age", "random", "random_normal", "setseed", "gen_random_uuid", "uuidv4",
    "uuidv7", "uuid_generate_v4", "nextval", "rand", "uuid", "newid", "getdate", "sysdate", "today",
])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """An expression and its type; of one with problems, which are noted, a column that stands in for it."""

    expression: Expression
    type: Type
    right: bool = True


def read_expression(text: str, place: Place, level: Level, problems: Problems, *, grouped: bool = False) -> Read:
    """The expression that `text` spells at this level. `grouped`: aggregates may be taken over the level's own rows."""
    try:
        expression, type_ = _read(text, level, grouped)
        return Read(expression=expression, type=type_)
    except Wrong as wrong:
        problems.add(place, wrong.what, wrong.cure)
    except Elsewhere:
        pass
    return Read(expression=Column(name=text), type=None, right=False)


def _read(text: str, level: Level, grouped: bool) -> tuple[Expression, Type]:
    path = parse_path(text)
    if path is not None and not _is_word(path, level):
        named, type_ = resolve(path, level)
        if isinstance(named, Column):
            return named, type_
    typed = _Reader(level=level, grouped=grouped).read(parse(text, _names(level)))
    node = typed.node
    if isinstance(node, Call) and node.function.startswith("as stored("):
        (node,) = node.args
    if isinstance(node, Column):
        return node, typed.type
    return Computed(text=text, of=node), typed.type


def _is_word(path: Path, level: Level) -> bool:
    """Whether a bare name is no name, but a literal or a function that stands without parentheses."""
    known = path[0] in level.joins or path[0] in (level.columns or ())
    return len(path) == 1 and not known and path[0].lower() in {*_LITERALS, *_VOLATILE}


def _names(level: Level) -> set[str]:
    names = {*level.joins, *(level.columns or ())}
    for join in level.joins.values():
        if join is not None:
            names |= _names(level.below(join))
    return names if level.above is None else names | set(level.above.columns or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the parts of an expression at a level. `over`: the joins to the `many` whose rows are aggregated, when names that
    begin with it are of its rows, and others of the level."""

    level: Level
    grouped: bool
    over: Path = ()

    def read(self, parsed: Parsed) -> Typed:
        match parsed:
            case Constant(value=value):
                return literal(value)
            case Name(parts=parts):
                return self._name(parts)
            case Apply(name=name, args=args) if name in AGGREGATES:
                return self._aggregate(name, args)
            case Apply(name=name, args=args):
                return self._call(_ALIASES.get(name, name), args)

    def _name(self, parts: Path) -> Typed:
        if parts[-1] == "*":
            raise Wrong(f"`{'.'.join(parts)}` stands for rows, not for a value", "use it in `count`, or name a column")
        if len(parts) == 1 and parts[0].lower() in _VOLATILE and parts[0] not in _names(self.level):
            raise _volatile(parts[0])
        if self.over and parts[: len(self.over)] == self.over:
            node, type_ = resolve(parts[len(self.over) :], reach(self.over, self.level))
        else:
            node, type_ = resolve(parts, self.level)
            if self.over and not isinstance(node, Column):
                what = f"the value of the join `{'.'.join(parts)}` cannot stand in an aggregate over `{'.'.join(self.over)}`"
                raise Wrong(what, "take it out of the aggregate")
            if isinstance(node, Column):
                node = replace(node, up=node.up + len(self.over))
        stored = f"as stored({type_})"
        return Typed(Call(function=stored, args=(node,), type=type_) if stored in FUNCTIONS else node, type_)

    def _call(self, name: str, args: tuple[Parsed, ...]) -> Typed:
        if name in _VOLATILE:
            raise _volatile(name)
        if name == "between":
            value, low, high = args
            return self._call("and", (Apply(">=", (value, low)), Apply("<=", (value, high))))
        if name == "date_trunc" and len(args) == 2 and isinstance(args[0], Constant):
            name, args = f"date_trunc {args[0].value}".lower(), args[1:]
        if name in ("like", "ilike"):
            return self._like(name, args)
        if name not in OVERLOADS and not name.startswith("to "):
            raise _unknown(name)
        if name == "split_part" and len(args) == 3 and args[2] == Constant(0):
            raise Wrong("`split_part` has no field 0", "fields are counted from 1, or from -1 at the end")
        return apply(name, [self.read(arg) for arg in args])

    def _like(self, name: str, args: tuple[Parsed, ...]) -> Typed:
        text, pattern, escape = map(self.read, args)
        if not (
            pattern.loose and isinstance(pattern.node, Literal) and escape.loose and isinstance(escape.node, Literal)
        ):
            what = f"the pattern of `{name}` is not written out"
            raise Wrong(what, "write it as text, or use `position` or `starts_with`")
        signs, sign = pattern.node.value, escape.node.value
        if len(sign) > 1:
            raise Wrong(f"`escape '{sign}'` is more than one character", "write one character, or none")
        if sign and signs.replace(sign * 2, "").endswith(sign):
            what = f"the pattern `{signs}` ends with its escape character"
            raise Wrong(what, f"write `{sign * 2}` for the character itself")
        if name == "ilike":
            text, pattern = apply("lower", [text]), literal(FUNCTIONS["lower(string)"].run(signs))
        return apply("like", [text, pattern, escape])

    def _aggregate(self, name: str, args: tuple[Parsed, ...]) -> Typed:
        if len(args) != 1:
            raise Wrong(f"`{name}` takes one argument, not {len(args)}", f"write `{name}(...)` around one expression")
        over, rows = self._rows(name, args[0])
        if not over and not self.grouped:
            if not rows:
                self.read(args[0])  # what is wrong with a name in it says more
            cure = (
                f"name a `many` of `join` in it (`{name}(stars.column)`), or use it in `fields` or `value` of a `many`"
            )
            raise Wrong(f"`{name}` has no rows here to be taken over", cure)
        if rows:
            if name != "count":
                raise Wrong(f"`{name}` takes a value, not rows", f"name a column in it: `{name}(...)`")
            return Typed(Aggregate(function="count", of=None, over=over, type="int"), "int")
        of = replace(self, over=over, grouped=False).read(args[0])
        return _average(of, over) if name == "avg" else _aggregated(name, of, over)

    def _rows(self, name: str, arg: Parsed) -> tuple[Path, bool]:
        """The joins to the `many` that the argument names, none for the level's own rows; and whether it names rows as such."""
        if self.over:
            raise Wrong(
                f"`{name}` stands inside another aggregate over a `many`", "aggregate one level after the other"
            )
        found = dict.fromkeys(over for parts in _names_in(arg) if (over := self._many(parts)))
        if len(found) > 1:
            said = " and ".join(f"`{'.'.join(over)}`" for over in found)
            raise Wrong(f"`{name}` is taken over {said} at once", "aggregate each of them alone")
        over = next(iter(found), ())
        bare = isinstance(arg, Name) and tuple(p for p in arg.parts if p != "*") == over
        return over, bare

    def _many(self, parts: Path) -> Path:
        """The beginning of a name that ends at its first `many`; empty without one."""
        level = self.level
        for i, part in enumerate(parts):
            join = level.joins.get(part)
            if join is None:
                if part in level.joins:
                    raise Elsewhere
                return ()
            if join.many:
                if join.limit is not None:
                    what = f"`{part}` has a `limit`, and an aggregate is taken over all rows"
                    raise Wrong(what, "remove the limit, or join the rows a second time without it")
                return parts[: i + 1]
            level = level.below(join)
        return ()


def _names_in(parsed: Parsed) -> Iterator[Path]:
    match parsed:
        case Name(parts=parts):
            yield parts
        case Apply(name=name, args=args) if name not in AGGREGATES:
            for arg in args:
                yield from _names_in(arg)


def _aggregated(name: str, of: Typed, over: Path) -> Typed:
    if name == "count":
        return Typed(Aggregate(function=name, of=of.node, over=over, type="int"), "int")
    if name == "sum":
        if of.type not in ("int", "decimal", "float"):
            raise Wrong(f"`sum` cannot take {of.type or 'null'}", "it takes int, decimal or float")
        type_: Type = "float" if of.type == "float" else "decimal"
    else:
        type_ = of.type
        if type_ in ("bool", "json", None):
            raise Wrong(f"`{name}` cannot take {type_ or 'null'}", "it takes numbers, text, dates and timestamps")
    return Typed(Aggregate(function=name, of=of.node, over=over, type=type_), type_)


def _average(of: Typed, over: Path) -> Typed:
    if of.type not in ("int", "decimal", "float"):
        raise Wrong(f"`avg` cannot take {of.type or 'null'}", "it takes int, decimal or float")
    return apply("/", [_aggregated("sum", of, over), _aggregated("count", of, over)])


def _volatile(name: str) -> Wrong:
    what = f"`{name}` depends on when it is asked, or on chance; a document depends on its rows alone"
    return Wrong(what, "compare with a column or a literal, e.g. `created_at >= '2026-01-01'`")


def _unknown(name: str) -> Wrong:
    known = sorted(n for n in {*OVERLOADS, *AGGREGATES, *_ALIASES, "date_trunc"} - _KEYWORDS if n.isidentifier())
    cure = f"did you mean '{_ALSO_CALLED[name]}'?" if name in _ALSO_CALLED else suggest(name, known)
    return Wrong(f"there is no function `{name}`", cure)


def check_grouped(expression: Expression) -> None:
    """Raises Wrong where an expression beside aggregates over a level's rows reads a column of one row."""
    for name in _of_one_row(expression if isinstance(expression, Column) else expression.of):
        what = f"`{name}` has one value a row, and stands beside aggregates over all rows"
        raise Wrong(what, f"put it into an aggregate (`max({name})`), or remove the aggregates")


def _of_one_row(node: object) -> Iterator[str]:
    match node:
        case Column(name=name, path=path, up=0):
            yield ".".join((*path, name))
        case Aggregate(over=path) | Shown(path=path) if path:
            yield ".".join(path)
        case Call(args=args):
            for arg in args:
                yield from _of_one_row(arg)

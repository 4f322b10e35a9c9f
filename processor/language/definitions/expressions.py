"""Reads the expressions that authors write: resolves names in their scope, checks types, and makes coercions explicit.

This module reads a simple column without a parser. `processor.language.definitions.sql_parser` parses every other expression.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final, TypedDict, cast

from processor.environment.settings.kafka import SECRET_NAME
from processor.language.definitions.names import (
    NameScope,
    UnknownColumn,
    aggregated_column,
    compare_of,
    compare_of_expression,
    expression_type,
    find_many,
    parse_path,
    resolve,
    scope_at_path,
    write_path,
)
from processor.language.definitions.overloads import (
    TypedNode,
    apply_function,
    apply_overload,
    element_type,
    fitted,
    fold,
    in_zone,
    keep_scales,
    make_literal,
    shown_time,
    with_zone,
    without_zone,
)
from processor.language.definitions.problems import AlreadyReported, Location, Problems, WrongDefinition, suggest
from processor.language.definitions.sql_parser import (
    ParsedCall,
    ParsedConstant,
    ParsedExpression,
    ParsedName,
    ParsedSecret,
    parse_expression,
)
from processor.language.product.expressions.catalogue import FUNCTIONS, OVERLOADS
from processor.language.product.expressions.expression import (
    Aggregate,
    AggregateOrder,
    Built,
    Call,
    Clock,
    Column,
    Computed,
    Depth,
    Expression,
    ExpressionNode,
    Literal,
    Path,
    Shown,
    Type,
    bare_clock,
    is_built,
    map_columns,
    node_of,
    references,
)
from processor.language.product.expressions.functions import read_interval, read_time_pattern
from processor.language.product.expressions.json_values import read_path
from processor.language.product.expressions.regular_expressions import WrongPattern, check_replacement, read_pattern
from processor.language.product.join_fields import read_computed
from processor.language.product.product import BareValue, Join
from processor.values.entity import ColumnType, TypeName

AGGREGATES: Final = (
    "count", "sum", "min", "max", "avg", "bool_and", "bool_or", "array_agg", "string_agg", "json_object_agg", "first", "last",
)  # fmt: skip
AGGREGATE_ALIASES: Final = {
    "json_agg": "array_agg", "jsonb_agg": "array_agg", "jsonb_object_agg": "json_object_agg", "every": "bool_and",
}  # fmt: skip
_BUILDERS: Final = {
    "json_build_object": "object", "jsonb_build_object": "object", "json_build_array": "array", "jsonb_build_array": "array",
    "array": "array",
}  # fmt: skip
_LITERALS: Final = ("true", "false", "null")
_ALIASES: Final = {
    "ceiling": "ceil", "character_length": "char_length", "substr": "substring", "btrim": "trim", "strpos": "position",
    "to bigint": "to int", "to integer": "to int", "to numeric": "to decimal", "to double precision": "to float",
    "to text": "to string", "to varchar": "to string", "to boolean": "to bool",
    "pow": "power", "log10": "log", "json_array_length": "jsonb_array_length", "json_typeof": "jsonb_typeof",
}  # fmt: skip
_ALSO_CALLED: Final = {
    "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce", "len": "length", "ucase": "upper", "lcase": "lower",
    "instr": "position", "if": "case", "iif": "case", "average": "avg", "mean": "avg", "total": "sum",
    "sha1": "sha256", "sha2": "sha256", "array_contains": "= any(array)", "json_extract": "->", "regexp_like": "~",
    "regexp_match": "regexp_replace", "regexp_matches": "regexp_replace", "get_json_object": "->>",
    "json_extract_path_text": "#>>", "jsonb_extract_path_text": "#>>", "jsonb_extract_path": "#>",
}  # fmt: skip
_INSTEAD: Final = {
    "date_part": "write `extract(year from x)`",
    "interval": "add it to a moment or subtract it, `at + interval '7 days'`",
    "age": "write `extract(epoch from a - b)` for seconds, or subtract dates for days",
    "hmac": "write `hmac_sha256(x, :name)`, with the name of a secret of [secrets] in the settings",
    "unnest": "join by the elements: `on: {id: \"ids[]\"}`",
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "ntile"),
        "a product has no windows: use `one` with `order_by`, or `first(x order by y)` of a `many`",
    ),
}  # fmt: skip
"""Functions of PostgreSQL that no product has, with the way to say the same."""
CLOCK: Final = "clock"
"""The name of the product's clock in expressions. PostgreSQL's names for it mean the same."""
_CLOCKS: Final = frozenset(
    [CLOCK, "now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp"]
)
_KEYWORDS: Final = {"and", "case", "in", "like", "not", "or"}
_VOLATILE: Final = frozenset([
    "now", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "clock_timestamp", "timeofday",
    "statement_timestamp", "transaction_timestamp", "random", "random_normal", "setseed", "gen_random_uuid", "uuidv4",
    "uuidv7", "uuid_generate_v4", "nextval", "rand", "uuid", "newid", "getdate", "sysdate", "today",
])  # fmt: skip
_OUTSIDE: Final = _VOLATILE | {CLOCK}
"""Words that mean time or chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedExpression:
    """An expression and its type. `valid` is False for an expression with problems; `expression` is then only a placeholder."""

    expression: Expression
    type: Type
    valid: bool = True


def read_expression(
    text: str, location: Location, scope: NameScope, problems: Problems, *, may_aggregate: bool = False
) -> TypedExpression:
    """The expression that `text` means in this scope. `may_aggregate`: aggregates may read the level's own rows."""
    try:
        expression, type_ = _read(text, scope, may_aggregate, problems.stored)
        return TypedExpression(expression=expression, type=type_)
    except WrongDefinition as wrong:
        cure = wrong.cure
        if isinstance(wrong, UnknownColumn) and f'"{wrong.column}"' in text:
            cure = f"double quotes mean a name: write '{wrong.column}' for a text"
        problems.add(location, wrong.what, cure)
    except AlreadyReported:
        pass
    return TypedExpression(expression=Column(name=text), type=None, valid=False)


def _read(text: str, scope: NameScope, may_aggregate: bool, stored: bool) -> tuple[Expression, Type]:
    path = parse_path(text)
    if path is not None and not _is_word(path, scope):
        if text == CLOCK:
            _check_clock_name(path, scope)
        named, type_ = resolve(path, scope)
        if isinstance(named, Column):
            made = computed_node(named, scope)
            return (named, type_) if made is None else (replace(made, text=text), type_)
    typed = _Reader(scope=scope, may_aggregate=may_aggregate).read(parse_expression(text, _known_names(scope)))
    if bare_clock(typed.node) is not None:
        what = f"the value of `{text}` changes at each tick of the clock"
        raise WrongDefinition(
            what,
            "compare a moment, `at > clock - interval '7 days'`, or cut the clock, `clock::date`, `date_trunc('hour', clock)`",
        )
    typed = shown_time(typed)
    node = keep_scales(typed.node, scope, stored=stored)
    if isinstance(node, Call) and node.function.startswith("as stored("):
        (node,) = node.args
    if isinstance(node, Column):
        return node, typed.type
    return Computed(text=text, node=node, compare=typed.compare), typed.type


def read_row_expression(
    text: str, location: Location, scope: NameScope, problems: Problems, *, as_type: ColumnType | None = None
) -> Computed | None:
    """The expression over columns of one row, for a computed column or a side of a join. `as_type`: the type that it has to have,
    or to widen to. None: it has problems, or is one column of the source alone."""
    own = NameScope(entities=scope.entities, entity=scope.entity, reads=scope.reads, tzdata=scope.tzdata)
    read = read_expression(text, location, own, problems)
    if not read.valid:
        return None
    type_ = as_type.name if as_type else read.type
    node = fitted(TypedNode(node_of(read.expression), read.type), type_) if type_ else None
    compare = compare_of(read.expression, own) if isinstance(read.expression, Column) else read.expression.compare
    if as_type and (as_type.array or read.type is None or node is None):
        what = f"the expression `{text}` gives {read.type or 'null'}, not {as_type}"
        problems.add(location, what, "declare this type, or cast the expression")
    elif node is not None and is_built(node):
        problems.add(location, f"the expression `{text}` builds json", "build it in `fields` of a product")
    elif node is None or not any(True for _ in references(node)):
        problems.add(location, f"the expression `{text}` reads no column", "name a column of the row in it")
    elif isinstance(node, Column) and type_ == "json":
        problems.add(location, f"`{text}` is a column itself", "name it where you need it")
    else:
        if as_type and as_type.scale is not None and as_type.precision is not None:
            size = [make_literal(as_type.precision), make_literal(as_type.scale)]
            node = apply_function("of size", [TypedNode(node, "decimal"), *size]).node
        if isinstance(node, Column):
            stored = f"as stored({type_})"
            node = Call(function=stored if stored in FUNCTIONS else f"to {type_}({type_})", args=(node,), type=type_)
        return Computed(text=text, node=cast(Call, node), compare=compare)
    return None


def computed_node(column: Column, scope: NameScope) -> Computed | None:
    """The expression of a computed column, as this name reads it: over the columns of the same row; None for another column.
    Where `one` joins reach no row, the value is null."""
    own = scope
    for _ in range(column.up):
        assert own.above is not None
        own = own.above
    own = scope_at_path(column.path, own)
    computed, entity = own.computed.get(column.name), own.entities.get(own.entity)
    if computed is None or entity is None:
        return None
    own.reads.add((own.entity, column.name))
    made = read_computed(computed.field)
    assert made is not None
    node: Any = map_columns(made.node, lambda own: replace(column, name=own.name))
    if column.path:
        key = replace(column, name=entity.key[0])
        lacks = Call(function=f"is null({entity.columns[key.name].name})", args=(key,), type="bool")
        nothing = Literal(value=None, type=node.type)
        node = Call(function=f"case({node.type},...)", args=(lacks, nothing, node), type=node.type)
    return replace(made, text=write_path(column), node=node)


def folded(expression: Expression, scope: NameScope) -> Expression:
    """The expression as an order compares it: its text folded. The author's text stays."""
    compare = compare_of(expression, scope) if isinstance(expression, Column) else expression.compare
    if not compare:
        return expression
    node = fold(TypedNode(node_of(expression), "string"), compare).node
    text = write_path(expression) if isinstance(expression, Column) else expression.text
    return expression if isinstance(node, Column) else Computed(text=text, node=node)


def _check_clock_name(path: Path, scope: NameScope) -> None:
    """Raises WrongDefinition for a name that means the clock of the product, and a column or a join of the level."""
    if scope.clock and path == (CLOCK,):
        what = f"`{CLOCK}` is the clock of the product, and a name of `{scope.entity}`"
        raise WrongDefinition(
            what, f'write `now()` for the clock, or alone in double quotes, `"{CLOCK}"`, for the column'
        )


def _is_word(path: Path, scope: NameScope) -> bool:
    """Whether a bare name is a literal, or a function without parentheses, instead of a name."""
    known = path[0] in scope.joins or path[0] in scope.names
    return len(path) == 1 and not known and path[0].lower() in {*_LITERALS, *_OUTSIDE}


def _known_names(scope: NameScope) -> set[str]:
    names = {*scope.joins, *scope.names}
    for join in scope.joins.values():
        if join is not None:
            names |= _known_names(scope.below(join))
    return names if scope.above is None else names | {*scope.above.names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the parts of an expression in a scope. `over`: within an aggregate, the path of joins to the aggregated `many`. Names
    that begin with this path are names of its rows; all other names are names of the level."""

    scope: NameScope
    may_aggregate: bool
    over: Path = ()

    def read(self, parsed: ParsedExpression) -> TypedNode:
        match parsed:
            case ParsedConstant(value=value):
                return make_literal(value)
            case ParsedName(parts=parts):
                return self._name(parts)
            case ParsedSecret(name=name):
                raise WrongDefinition(f"`:{name}` is a secret, and only `hmac_sha256` takes one", _KEYED_FORM)
            case ParsedCall(name=name) if name in AGGREGATES or name in AGGREGATE_ALIASES:
                return self._aggregate(replace(parsed, name=AGGREGATE_ALIASES.get(name, name)))
            case ParsedCall(name=name) if parsed.distinct or parsed.order or parsed.where is not None:
                word = "distinct" if parsed.distinct else "order by" if parsed.order else "filter"
                what = f"`{name}` is no aggregate, so it takes no `{word}`"
                raise WrongDefinition(what, f"remove `{word}`, or write one of {', '.join(AGGREGATES)}")
            case ParsedCall(name=name, args=args) if name in _BUILDERS:
                return self._built(name, args)
            case ParsedCall(name="depth", args=()):
                return self._depth()
            case ParsedCall(name="to timestamp", args=args):
                return without_zone(self._call("to timestamp", args))
            case ParsedCall(name="to timestamptz", args=args):
                return with_zone(self._call("to timestamp", args))
            case ParsedCall(name=name, args=args):
                return self._call(_ALIASES.get(name, name), args)

    def _depth(self) -> TypedNode:
        if not self.scope.level:
            what = "`depth()` is the level of a row in a recursive join, and this is none"
            raise WrongDefinition(what, "use it in a join with `recursive`, or remove it")
        return TypedNode(Depth(level=self.scope.level), "int")

    def _name(self, parts: Path) -> TypedNode:
        is_rows = bool(self.over) and self.scope.physical(parts) == self.over
        if is_rows and (value := self.value_of_rows()) is not None:
            return value
        if parts[-1] == "*" or is_rows:
            what = f"`{'.'.join(parts)}` means rows, not a value"
            raise WrongDefinition(what, "use it in `count`, or name a column")
        if self._names_clock(parts):
            return self._clock(parts[0])
        _check_clock_name(parts, self.scope)
        whole = self.scope.physical(parts)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(whole[:-1], self.over, strict=False)))
        if not any(one.many for one in self._joins(self.over[:shared])):
            shared = 0
        scope = scope_at_path(self.over[:shared], self.scope)
        node, type_ = resolve(whole[shared:] if shared else parts, scope)
        lifts = len(self.over) - shared
        if lifts and not isinstance(node, Column):
            what = f"an aggregate over `{'.'.join(self.over)}` cannot use the value of the join `{'.'.join(parts)}`"
            raise WrongDefinition(what, "move the join's value out of the aggregate")
        compare = compare_of(node, scope)
        made = computed_node(node, scope) if isinstance(node, Column) else None
        read = node if made is None else made.node
        if lifts:
            read = map_columns(read, lambda column: replace(column, up=column.up + lifts))
        stored = f"as stored({type_})"
        if made is None and stored in FUNCTIONS:
            read = Call(function=stored, args=(read,), type=type_)
        return TypedNode(read, type_, compare=compare)

    def _names_clock(self, parts: Path) -> bool:
        return len(parts) == 1 and parts[0].lower() in _OUTSIDE and parts[0] not in _known_names(self.scope)

    def _clock(self, name: str) -> TypedNode:
        """The clock of the product, by its name or by one of PostgreSQL's."""
        step, word = self.scope.clock, name.lower()
        if not step or word not in (*_CLOCKS, "current_date"):
            raise _volatile_error(name)
        clock = TypedNode(Clock(step=step), "timestamp")
        return apply_function("to date", [clock]) if word == "current_date" else clock

    def _moved(self, name: str, args: tuple[ParsedExpression, ...]) -> TypedNode:
        """A moment plus or minus an interval."""
        moment, interval = reversed(args) if name == "+" and _is_interval(args[0]) else args
        if not _is_interval(interval):
            raise WrongDefinition("an interval is no value of its own", _INSTEAD["interval"])
        assert isinstance(interval, ParsedCall)
        text = interval.args[0].value if isinstance(interval.args[0], ParsedConstant) else None
        try:
            read_interval(str(text))
        except ValueError:
            what = f"`interval '{text}'` is not offered"
            raise WrongDefinition(
                what, "write whole numbers with units, `interval '1 month 7 days'`, `'2 hours'`"
            ) from None
        read = self.read(moment)
        made = apply_function(f"{name} interval", [read, make_literal(str(text))])
        return apply_overload("without zone(timestamp)", made) if read.type == "date" else made

    def _epoch_of(self, arg: ParsedExpression) -> TypedNode:
        """`extract(epoch from x)`, also of the interval between two moments."""
        if (
            isinstance(arg, ParsedCall)
            and arg.name == "-"
            and len(arg.args) == 2
            and not any(map(_is_interval, arg.args))
        ):
            later, earlier = map(self.read, arg.args)
            if "timestamp" in (later.type, earlier.type):
                return apply_function("seconds between", [later, earlier])
        return apply_function("extract epoch", [self.read(arg)])

    def _joins(self, path: Path) -> Iterator[Join]:
        scope = self.scope
        for name in path:
            join = scope.joins[name]
            if join is None:
                raise AlreadyReported
            yield join
            scope = scope.below(join)

    def _call(self, name: str, args: tuple[ParsedExpression, ...]) -> TypedNode:
        if name in _VOLATILE:
            if args:
                raise _volatile_error(name)
            return self._clock(name)
        if name in ("+", "-") and any(map(_is_interval, args)):
            return self._moved(name, args)
        if name == "extract epoch":
            return self._epoch_of(args[0])
        if name == "at time zone":
            zone = args[1].value if isinstance(args[1], ParsedConstant) else None
            return in_zone(self.read(args[0]), zone, self._inner)
        if name in ("between", "like", "ilike") and len(args) != 3:
            raise WrongDefinition(
                f"`{name}` is an operator, not a function", f"write it between its values: `a {name} b`"
            )
        if name == "between":
            value, low, high = args
            return self._call("and", (ParsedCall(">=", (value, low)), ParsedCall("<=", (value, high))))
        if name == "date_trunc" and len(args) == 2 and isinstance(args[0], ParsedConstant):
            name, args = f"date_trunc {args[0].value}".lower(), args[1:]
        if name in ("like", "ilike"):
            return self._like(name, args)
        if name in ("= any", "<> all"):
            return self._any(name, *args)
        if name in ("?|", "?&"):
            return self._has_keys(name, *args)
        if name == "format":
            return apply_function("concat", [self.read(part) for part in _format_parts(args)])
        if name == "encode":
            return self._encoded(args)
        if name == "hmac_sha256":
            return self._keyed(args)
        if name not in OVERLOADS and not name.startswith("to "):
            raise _unknown_function(name)
        if name in ("~", "~*", "regexp_replace"):
            _check_pattern(name, args)
        if name in _ARRAYS:
            return self._of_array(name, args)
        if name == "split_part" and len(args) == 3 and args[2] == ParsedConstant(0):
            raise WrongDefinition("`split_part` has no field 0", "count fields from 1, or from -1 at the end")
        if name == "to_char":
            _check_time_pattern(args)
        read = [self.read(arg) for arg in args]
        elements = [element_type(arg.node, self._inner) for arg in read if arg.type == "json"]
        if any(elements) and name != "is null":
            what = f"`{name}` cannot take an array of {next(filter(None, elements))}"
            raise WrongDefinition(what, "use `= any(...)`, `cardinality` or `array_length`, or declare the column json")
        if name in ("#>", "#>>"):
            _check_json_path(name, read[-1])
        return apply_function(name, read)

    @property
    def _inner(self) -> NameScope:
        """The scope that paths of columns begin at."""
        return scope_at_path(self.over, self.scope)

    def _array(self, name: str, arg: ParsedExpression) -> tuple[TypedNode, TypeName]:
        """An argument that is an array, and the type of its elements."""
        read = self.read(arg)
        element = element_type(read.node, self._inner)
        if element is None or element == "json":
            what = f"`{name}` takes a column that is an array, not {element or read.type or 'null'}"
            raise WrongDefinition(what, "declare the column e.g. `string[]`; of json, use `@>` or `jsonb_array_length`")
        if read.compare:
            raise WrongDefinition(
                f"`{name}` cannot take an array with `compare`", "declare the column without `compare`"
            )
        return read, element

    def _of_array(self, name: str, args: tuple[ParsedExpression, ...]) -> TypedNode:
        if not args:
            return apply_function(name, [])
        array, _ = self._array(name, args[0])
        return apply_function(name, [array, *map(self.read, args[1:])])

    def _any(self, name: str, value: ParsedExpression, array: ParsedExpression) -> TypedNode:
        """`x = any(array)`, and `x <> all(array)`, its opposite."""
        if isinstance(array, ParsedCall) and array.name == "array" and array.args:
            found = self._call("in", (value, *array.args))
        else:
            read, element = self._array(name, array)
            one = self.read(value)
            node = fitted(one, element)
            if node is None:
                what = f"`{name}` cannot look for {one.type or 'null'} in an array of {element}"
                raise WrongDefinition(what, f"cast the value to {element}")
            key = f"= any({element},json)"
            found = TypedNode(Call(function=key, args=(node, read.node), type="bool"), "bool")
        return apply_function("not", [found]) if name == "<> all" else found

    def _has_keys(self, name: str, value: ParsedExpression, keys: ParsedExpression) -> TypedNode:
        """`?|` and `?&`, as `?` of each key."""
        if not (isinstance(keys, ParsedCall) and keys.name == "array" and keys.args):
            raise WrongDefinition(f"the keys of `{name}` are not constants", f"write `data {name} array['a', 'b']`")
        tests = [self._call("?", (value, key)) for key in keys.args]
        return apply_function("or" if name == "?|" else "and", tests) if tests[1:] else tests[0]

    def _encoded(self, args: tuple[ParsedExpression, ...]) -> TypedNode:
        """`encode(sha256(convert_to(x, 'UTF8')), 'hex')`, the text of a hash in PostgreSQL."""
        match args:
            case (
                ParsedCall(name="hmac", args=(text, secret, ParsedConstant(value="sha256"))),
                ParsedConstant(value="hex"),
            ):
                return self._keyed((text, secret))
            case (ParsedCall(name=name, args=(ParsedCall(name="convert_to", args=(text, ParsedConstant(value=str(code)))),)),
                  ParsedConstant(value="hex")) if name in _HASHES and code.lower() in ("utf8", "utf-8"):  # fmt: skip
                return self._call(name, (text,))
        cure = (
            "write `sha256(x)`, which gives the hex digits of its UTF-8: `encode(sha256(convert_to(x, 'UTF8')), 'hex')`"
        )
        raise WrongDefinition("`encode` is only offered around a hash, with 'hex'", cure)

    def _keyed(self, args: tuple[ParsedExpression, ...]) -> TypedNode:
        """`hmac_sha256(x, :name)`. The name of the secret is all that a definition has of it."""
        match args:
            case (text, ParsedSecret(name=name)) if SECRET_NAME.fullmatch(name):
                return apply_function("hmac_sha256", [self.read(text), make_literal(name)])
            case (_, ParsedSecret(name=name)):
                raise WrongDefinition(f"`:{name}` is no name of a secret", "use a-z, 0-9 and _, not first a digit")
        what = "`hmac_sha256` takes a text and the name of a secret, as a definition is stored and shown"
        raise WrongDefinition(what, _KEYED_FORM)

    def _like(self, name: str, args: tuple[ParsedExpression, ...]) -> TypedNode:
        text, pattern, escape = map(self.read, args)
        if not (
            pattern.loose and isinstance(pattern.node, Literal) and escape.loose and isinstance(escape.node, Literal)
        ):
            what = f"the pattern of `{name}` is not a constant"
            raise WrongDefinition(what, "write it as text in quotes, or use `position` or `starts_with`")
        pattern_text, escape_text = pattern.node.value, escape.node.value
        if len(escape_text) > 1:
            raise WrongDefinition(
                f"`escape '{escape_text}'` is more than one character", "write one character, or none"
            )
        if escape_text and pattern_text.replace(escape_text * 2, "").endswith(escape_text):
            what = f"the pattern `{pattern_text}` ends with its escape character"
            raise WrongDefinition(what, f"write `{escape_text * 2}` for the character itself")
        if name == "ilike":
            text, pattern = apply_function("lower", [text]), make_literal(FUNCTIONS["lower(string)"].run(pattern_text))
        return apply_function("like", [text, pattern, escape])

    def _built(self, name: str, args: tuple[ParsedExpression, ...]) -> TypedNode:
        """A json object or array of values."""
        if _BUILDERS[name] == "array":
            return TypedNode(Built(parts=tuple(map(self._part, args))), "json")
        keys = [arg.value for arg in args[::2] if isinstance(arg, ParsedConstant) and isinstance(arg.value, str)]
        if len(keys) * 2 != len(args) or len({*keys}) < len(keys):
            what = f"`{name}` takes pairs of a name and a value, where each name is another text in quotes"
            raise WrongDefinition(what, f"write `{name}('name', title, 'size', length)`")
        return TypedNode(Built(parts=tuple(map(self._part, args[1::2])), names=tuple(keys)), "json")

    def _part(self, arg: ParsedExpression) -> ExpressionNode:
        """A value of a json object or array; a column alone as it is in the row."""
        node = shown_time(self.read(arg)).node
        stored = isinstance(node, Call) and node.function.startswith("as stored(")
        return node.args[0] if stored and isinstance(node, Call) else node

    def _aggregate(self, call: ParsedCall) -> TypedNode:
        name, args = call.name, call.args
        count = 2 if name in ("string_agg", "json_object_agg") else 1
        if len(args) != count:
            forms = {"string_agg": "string_agg(name, ', ')", "json_object_agg": "json_object_agg(name, value)"}
            what = f"`{name}` takes {'two arguments' if count > 1 else 'one argument'}, not {len(args)}"
            form = f"`{forms[name]}`" if name in forms else f"`{name}(...)` around one expression"
            raise WrongDefinition(what, f"write {form}")
        call = self._of_group(call)
        args = call.args
        over, rows = self._aggregated_rows(call)
        if not over and not self.may_aggregate:
            if not rows:  # a wrong name in the argument gives a better error than the one below
                try:
                    self.read(args[0])
                except UnknownColumn as wrong:
                    if (meant := find_many(wrong.column, self.scope)) is None:
                        raise
                    raise WrongDefinition(wrong.what, f"name the `many` too: `{name}({meant})`") from None
            second = ", ', '" if name == "string_agg" else ", stars.value" if count > 1 else ""
            example = f"`{name}(stars.column{second})`"
            cure = f"name a joined `many` in it, e.g. {example}, or use it in `fields` or `value` of a `many`"
            raise WrongDefinition(f"`{name}` has no rows to aggregate here", cure)
        inner = replace(self, over=over, may_aggregate=False)
        value = inner.value_of_rows() if rows and over and (name != "count" or call.distinct) else None
        if rows and value is None and (name != "count" or call.distinct):
            cure = f"name a column in it: `{name}({aggregated_column(over, self.scope)})`"
            raise WrongDefinition(f"`{name}` takes a value, not rows", cure)
        more = inner.modifiers(call)
        if rows and value is None:
            return TypedNode(Aggregate(function="count", argument=None, over=over, type="int", **more), "int")
        argument = inner.read(args[0]) if value is None else value
        argument = shown_time(argument) if name == "array_agg" else argument
        if count > 1:
            return _apply_pair(name, argument, shown_time(inner.read(args[1])), over, more)
        return _apply_average(argument, over, more) if name == "avg" else _apply_aggregate(name, argument, over, more)

    def value_of_rows(self) -> TypedNode | None:
        """The `value` of the aggregated `many`, at one of its rows; None for a `many` without one."""
        above = scope_at_path(self.over[:-1], self.scope)
        join = above.joins[self.over[-1]]
        if join is None or join.aggregated or not isinstance(join.selection, BareValue):
            return None
        shown, below = join.selection.expression, above.below(join)
        type_, compare = expression_type(shown, below), compare_of_expression(shown, below)
        node = node_of(shown)
        stored = f"as stored({type_})"
        if isinstance(node, Column | Shown) and stored in FUNCTIONS:
            node = Call(function=stored, args=(node,), type=type_)
        return TypedNode(node, type_, compare=compare)

    def modifiers(self, call: ParsedCall) -> "_Modifiers":
        """`distinct`, `order by` and `filter` of an aggregate, read at its rows."""
        where = None if call.where is None else self.read(call.where)
        if where is not None and where.type not in ("bool", None):
            what = f"the `filter` of `{call.name}` is {where.type}, not bool"
            raise WrongDefinition(what, "write a condition, e.g. `filter (where status = 'open')`")
        order = tuple((self.read(by), down, nulls_first) for by, down, nulls_first in call.order)
        for by, _, _ in order:
            if by.type == "json":
                raise WrongDefinition(f"`{call.name}` has an order by json or an array", "order by a scalar value")
        if call.distinct and call.order and [by for by, _, _ in call.order] != list(call.args[:1]):
            what = f"`{call.name}(distinct ...)` has another order than that of its values"
            raise WrongDefinition(what, "order by the value itself, or remove `distinct`")
        return {
            "where": None if where is None else where.node,
            "distinct": call.distinct,
            "order": tuple(
                AggregateOrder(
                    by=fold(by, by.compare).node, descending=down, nulls_first=nulls_first, is_text=by.type == "string"
                )
                for by, down, nulls_first in order
            ),
        }

    def _of_group(self, call: ParsedCall) -> ParsedCall:
        """The aggregate over the rows of the group, where it names no `many` of the level of a group."""
        rows = self.scope.rows
        if not rows or self.over or any(self._path_to_many(parts) for parts in _names_of(call)):
            return call

        def named(parsed: ParsedExpression) -> ParsedExpression:
            if isinstance(parsed, ParsedName):
                own = parsed.parts[0] in self.scope.joins or self._names_clock(parsed.parts)
                return parsed if own else ParsedName((rows, *parsed.parts))
            if isinstance(parsed, ParsedCall):
                order = tuple((named(by), down, nulls_first) for by, down, nulls_first in parsed.order)
                where = None if parsed.where is None else named(parsed.where)
                return replace(parsed, args=tuple(map(named, parsed.args)), order=order, where=where)
            return parsed

        made = named(call)
        assert isinstance(made, ParsedCall)
        return made

    def _aggregated_rows(self, call: ParsedCall) -> tuple[Path, bool]:
        """The path of joins to the rows that the call names (empty: the level's own rows), and whether its argument names the
        rows themselves instead of a value."""
        if self.over:
            cure = "keep one of them, or aggregate one level after the other"
            raise WrongDefinition(f"`{call.name}` is inside another aggregate", cure)
        found = dict.fromkeys(over for parts in _names_of(call) if (over := self._path_to_many(parts)))
        longest = max(found, key=len, default=())
        if any(over != longest[: len(over)] for over in found):
            names = " and ".join(f"`{'.'.join(over)}`" for over in found)
            raise WrongDefinition(f"`{call.name}` aggregates {names} at once", "write one aggregate for each of them")
        if longest and any(join.gathers for join in self._joins(longest)):
            what = f"`{'.'.join(longest)}` is the rows of several levels"
            raise WrongDefinition(what, f"write the aggregate as the `value` of `{longest[-1]}`")
        arg = call.args[0]
        is_rows = (
            isinstance(arg, ParsedName) and self.scope.physical(tuple(p for p in arg.parts if p != "*")) == longest
        )
        return longest, is_rows

    def _path_to_many(self, parts: Path) -> Path:
        """The beginning of a name, up to and with its last `many`; empty for a name without a `many`. Below another `many`, one
        whose aggregates make one value of it is no list."""
        scope, parts = self.scope, self.scope.physical(parts)
        found: Path = ()
        for i, part in enumerate(parts):
            join = scope.joins.get(part)
            if join is None:
                if part in scope.joins:
                    raise AlreadyReported
                break
            if join.many and not (found and join.aggregated):
                if join.limit is not None:
                    what = f"`{part}` has a `limit`, but an aggregate reads all rows"
                    raise WrongDefinition(what, "remove `limit`, or join the rows a second time without it")
                found = parts[: i + 1]
            scope = scope.below(join)
        return found


class _Modifiers(TypedDict):
    where: ExpressionNode | None
    order: tuple[AggregateOrder, ...]
    distinct: bool


_KEYED_FORM: Final = (
    'write `hmac_sha256(x, :mask)`, and `mask = "env:NAME"` in the table [secrets] of the settings file'
)
_ARRAYS: Final = ("cardinality", "array_length")
_HASHES: Final = ("sha224", "sha256", "sha384", "sha512")
_FORMAT: Final = re.compile(r"%(?:(\d+)\$)?(.?)", re.DOTALL)


def _format_parts(args: tuple[ParsedExpression, ...]) -> list[ParsedExpression]:
    """The parts of `format(...)` that `concat` joins: its text, and the argument of each `%s`."""
    text = args[0].value if args and isinstance(args[0], ParsedConstant) else None
    if not isinstance(text, str):
        raise WrongDefinition("the first argument of `format` is not a constant", "write it as text in quotes")
    parts: list[ParsedExpression] = [ParsedConstant("")]
    at = next_ = 0
    for found in _FORMAT.finditer(text):
        parts.append(ParsedConstant(text[at : found.start()]))
        at = found.end()
        number, sign = found.groups()
        if sign == "%" and not number:
            parts.append(ParsedConstant("%"))
            continue
        next_ = int(number) if number else next_ + 1
        if sign != "s":
            what = f"`format` with `{found[0]}` is not offered"
            raise WrongDefinition(what, "write `%s`, `%1$s` or `%%`; for a width use `lpad` or `rpad`")
        if not 0 < next_ < len(args):
            raise WrongDefinition(f"`format` has no argument {next_}", "add it, or remove its `%s`")
        parts.append(args[next_])
    return [*parts, ParsedConstant(text[at:])]


def _check_pattern(name: str, args: tuple[ParsedExpression, ...]) -> None:
    """Raises WrongDefinition for a regular expression, a replacement or flags that are no constant, or not offered."""
    texts = [arg.value if isinstance(arg, ParsedConstant) and isinstance(arg.value, str) else None for arg in args[1:]]
    if not texts or any(text is None for text in texts):
        what = (
            f"the pattern of `{name}` is not a constant"
            if name != "regexp_replace"
            else ("the pattern, the replacement or the flags of `regexp_replace` are not constants")
        )
        raise WrongDefinition(what, "write each of them as text in quotes")
    constants = [text for text in texts if text is not None]
    try:
        if name == "regexp_replace" and len(constants) in (2, 3):
            check_replacement(constants[0], constants[1], constants[2] if constants[2:] else "")
        else:
            read_pattern(constants[0], name == "~*")
    except WrongPattern as wrong:
        what = f"`{name}` with the pattern `{constants[0]}`: {wrong}"
        raise WrongDefinition(what, "write the pattern with the signs of docs/definitions.md") from None


def _is_interval(parsed: ParsedExpression) -> bool:
    return isinstance(parsed, ParsedCall) and parsed.name == "interval"


def _check_time_pattern(args: tuple[ParsedExpression, ...]) -> None:
    """Raises WrongDefinition for a pattern of `to_char` that is no constant, or not offered."""
    text = args[1].value if len(args) == 2 and isinstance(args[1], ParsedConstant) else None
    if not isinstance(text, str):
        raise WrongDefinition(
            "`to_char` takes a moment and a pattern in quotes", "write e.g. `to_char(at, 'YYYY-MM-DD')`"
        )
    try:
        read_time_pattern(text)
    except ValueError as error:
        what = f"`to_char` with `{error}` in its pattern is not offered"
        raise WrongDefinition(what, "write the signs of docs/definitions.md, other words in double quotes") from None


def _check_json_path(name: str, path: TypedNode) -> None:
    text = path.node.value if isinstance(path.node, Literal) else None
    try:
        read_path(str(text))
    except ValueError:
        what = f"the path of `{name}` is not a constant like `'{{a,b}}'`"
        raise WrongDefinition(what, "write its steps with commas in braces, without quotes; or use `->`") from None


def _names_of(call: ParsedCall) -> Iterator[Path]:
    """The names in an aggregate, without those inside another one."""
    for part in call.parts:
        if isinstance(part, ParsedName):
            yield part.parts
        elif isinstance(part, ParsedCall) and part.name not in AGGREGATES:
            yield from _names_of(part)


def _apply_pair(name: str, argument: TypedNode, second: TypedNode, over: Path, more: _Modifiers) -> TypedNode:
    """An aggregate of two values of each row."""
    if name == "json_object_agg":
        if more["distinct"]:
            raise WrongDefinition("`json_object_agg` takes no `distinct`", "remove it: each name occurs once anyway")
        key = argument if argument.type == "string" else apply_function("to string", [argument])
        aggregate = Aggregate(function=name, argument=key.node, second=second.node, over=over, type="json", **more)
        return TypedNode(aggregate, "json")
    if not isinstance(second.node, Literal) or second.type != "string":
        raise WrongDefinition("the separator of `string_agg` is not a text in quotes", "write e.g. `', '`")
    if argument.type != "string":
        cure = "cast it, `string_agg(number::text, ', ')`"
        raise WrongDefinition(f"`string_agg` cannot take {argument.type or 'null'}", cure)
    if more["distinct"] and argument.compare:
        raise _compared_distinct(name)
    aggregate = Aggregate(
        function=name, argument=argument.node, second=second.node, over=over, type="string", takes="string", **more
    )
    return TypedNode(aggregate, "string", compare=argument.compare)


def _compared_distinct(name: str) -> WrongDefinition:
    what = f"`{name}(distinct ...)` of a text that compares without case or spaces: it is unknown which spelling stays"
    return WrongDefinition(what, "write `lower(...)` or `rtrim(...)` around the text")


_TAKES: Final = {
    "sum": ("int", "decimal", "float"), "bool_and": ("bool",), "bool_or": ("bool",),
    "min": ("int", "decimal", "float", "string", "date", "timestamp"),
}  # fmt: skip
_LISTED: Final = {"sum": "int, decimal or float", "min": "numbers, text, dates and timestamps", "bool_and": "bool"}


def _apply_aggregate(name: str, argument: TypedNode, over: Path, more: _Modifiers) -> TypedNode:
    like = {"max": "min", "bool_or": "bool_and"}.get(name, name)
    if like in _TAKES and argument.type not in _TAKES[like]:
        raise WrongDefinition(f"`{name}` cannot take {argument.type or 'null'}", f"it takes {_LISTED[like]}")
    if more["distinct"] and argument.type == "json":
        raise WrongDefinition(f"`{name}(distinct ...)` cannot take json or an array", "name a scalar value in it")
    if more["distinct"] and argument.compare and name == "array_agg":
        raise _compared_distinct(name)
    if name in ("first", "last") and more["distinct"]:
        raise WrongDefinition(f"`{name}` takes no `distinct`", "remove it")
    type_: Type = {"count": "int", "array_agg": "json"}.get(name, argument.type)  # type: ignore[assignment]
    if name == "sum" and type_ == "int":
        type_ = "decimal"
    if name == "count" and more["distinct"]:
        argument = fold(argument, argument.compare)
    if name not in _ORDERED and not (name == "sum" and type_ == "float"):
        more = {**more, "order": ()}
    compare = argument.compare if like in ("min", "first", "last") and type_ == "string" else ()
    folds = compare if like == "min" else ()
    aggregate = Aggregate(
        function=name,
        argument=argument.node,
        over=over,
        type=type_,
        compare=folds,
        takes=argument.type if name == "array_agg" or more["distinct"] else None,
        **more,
    )
    return TypedNode(aggregate, type_, compare=compare)


_ORDERED: Final = ("array_agg", "first", "last")


def _apply_average(argument: TypedNode, over: Path, more: _Modifiers) -> TypedNode:
    if argument.type not in ("int", "decimal", "float"):
        raise WrongDefinition(f"`avg` cannot take {argument.type or 'null'}", "it takes int, decimal or float")
    total, rows = (_apply_aggregate(name, argument, over, more) for name in ("sum", "count"))
    return apply_function("/", [total, rows])


def _volatile_error(name: str) -> WrongDefinition:
    if name.lower() in (*_CLOCKS, "current_date"):
        what = f"`{name}` is the clock, and here is none"
        return WrongDefinition(
            what,
            "write `clock: 1 minute` at the root of the product; computed columns, joins and groups cannot read it",
        )
    what = f"`{name}` depends on chance, but a document depends on its rows alone"
    return WrongDefinition(what, "use a column or a literal instead")


def _unknown_function(name: str) -> WrongDefinition:
    known = sorted(
        n for n in {*OVERLOADS, *AGGREGATES, *_ALIASES, *_BUILDERS, "date_trunc"} - _KEYWORDS if n.isidentifier()
    )
    cure = (
        f"did you mean '{_ALSO_CALLED[name]}'?" if name in _ALSO_CALLED else _INSTEAD.get(name) or suggest(name, known)
    )
    return WrongDefinition(f"there is no function `{name}`", cure)


def check_aggregate_columns(expression: Expression) -> None:
    """Checks an expression of a selection that has aggregates over its level's rows.

    Raises: WrongDefinition for an expression that reads a column of one row outside an aggregate.
    """
    for name in _one_row_names(expression if isinstance(expression, Column) else expression.node):
        what = f"`{name}` has one value per row, but an aggregate here reads all rows"
        raise WrongDefinition(what, f"put it into an aggregate (`max({name})`), or remove the aggregates")


def _one_row_names(node: object) -> Iterator[str]:
    match node:
        case Column(name=name, path=path, up=0):
            yield ".".join((*path, name))
        case Aggregate(over=path) | Shown(path=path) if path:
            yield ".".join(path)
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from _one_row_names(arg)

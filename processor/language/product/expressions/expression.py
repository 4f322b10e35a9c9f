"""Expressions as plain, typed data, and their evaluation. Pure.

An expression is a definition's SQL, after its names are resolved and its types are checked. `compile_expression` makes of each
node, once, a function of a row and of the rows above it. `catalogue.py` has the functions themselves, with the forms that values
have during evaluation (a timestamp without its `Z`). `sql_printer.py` prints a node as PostgreSQL.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache, partial, reduce
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, Protocol

from processor.language.product.expressions import functions, json_values, zones
from processor.language.product.expressions.catalogue import FUNCTIONS, compared_function
from processor.values.entity import Compare, TypeName
from processor.values.record import Value

Type = TypeName | None
"""The type of a value. None: the value is always null. Arrays and the objects of joins have type json: they stay unchanged."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the row itself, of the row of a `one` join (`repo.name`, path `repo`), or of the row `up` levels above
    (`parent.cash`)."""

    name: str
    path: Path = ()
    up: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant, canonical for its type; of json, its text."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a function or operator. `function`: the key of one overload in `expressions/catalogue.py`, as `+(int,int)`."""

    function: str
    args: tuple["ExpressionNode", ...]
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOrder:
    """One term of the `order by` of an aggregate."""

    by: "ExpressionNode"
    descending: bool
    nulls_first: bool
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate of `argument` over the rows at `over`, a path of joins; an empty `over` takes the level's own rows. Where
    several joins of the path are `many`, the rows are those of all their rows together.

    argument: None where the rows are counted. second: the separator of `string_agg`, the value of `json_object_agg`. compare: how
    the text of `min` and `max` compares. where: the rows that count (`filter`). order: before the order of the rows. takes: the
    type of the argument, where the function gives another one, or needs to know it."""

    function: str
    argument: "ExpressionNode | None"
    over: Path
    type: Type
    compare: Compare = ()
    second: "ExpressionNode | None" = None
    where: "ExpressionNode | None" = None
    order: tuple[AggregateOrder, ...] = ()
    distinct: bool = False
    takes: Type = None

    @property
    def read(self) -> tuple["ExpressionNode", ...]:
        """The nodes that it reads at each of the rows."""
        nodes = (self.argument, self.second, self.where, *(term.by for term in self.order))
        return tuple(node for node in nodes if node is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The value or object that the join at `path` makes of its rows. `flat`: the join is a member of the level that names it, so
    the rows of all joins of the path are one list, and no row on the way is the same as no row at its end."""

    path: Path
    type: Type
    flat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A json object with these names, or without names a json array, of the values of `parts`."""

    parts: tuple["ExpressionNode", ...]
    names: tuple[str, ...] | None = None
    type: Type = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The level of a row in a recursive join. `level`: of the join that has the expression."""

    level: int
    type: Type = "int"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock of the product: the time of the round, cut to a multiple of `step`, in seconds since 1970."""

    step: int
    type: Type = "timestamp"


ExpressionNode = Column | Literal | Call | Aggregate | Shown | Built | Depth | Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """An expression other than a bare column: the author's text, its meaning, and how its text compares."""

    text: str
    node: Literal | Call | Aggregate | Shown | Built | Depth | Clock
    compare: Compare = ()


Expression = Column | Computed


def node_of(expression: Expression) -> ExpressionNode:
    """The meaning of an expression."""
    return expression.node if isinstance(expression, Computed) else expression


def map_columns(node: ExpressionNode, change: Callable[[Column], ExpressionNode]) -> ExpressionNode:
    """The node with another one in place of each column. Columns within aggregates stay."""
    match node:
        case Column():
            return change(node)
        case Call(args=args):
            return replace(node, args=tuple(map_columns(arg, change) for arg in args))
        case Built(parts=parts):
            return replace(node, parts=tuple(map_columns(part, change) for part in parts))
    return node


def is_built(node: ExpressionNode) -> bool:
    """Whether a node builds json, itself or in a part."""
    return isinstance(node, Built) or (isinstance(node, Call) and any(map(is_built, node.args)))


def references(node: ExpressionNode) -> Iterator[Column | Shown]:
    """The columns and shown joins that a node reads, as paths from the node's level."""
    match node:
        case Column() | Shown():
            yield node
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from references(arg)
        case Aggregate(over=over):
            for part in node.read:
                for inner in references(part):
                    yield _seen_from_above(inner, over)


def _seen_from_above(inner: Column | Shown, over: Path) -> Column | Shown:
    """A reference of a row of the `many` at `over`, as a path from the level above that join."""
    if isinstance(inner, Column) and inner.up:
        below = max(0, len(over) - inner.up)
        return replace(inner, path=over[:below] + inner.path, up=max(0, inner.up - len(over)))
    return replace(inner, path=over + inner.path)


def aggregates(node: ExpressionNode) -> Iterator[Aggregate]:
    """The aggregates over the level's own rows in a node. An aggregate that occurs twice comes twice."""
    match node:
        case Aggregate(over=()):
            yield node
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from aggregates(arg)


def outside_aggregates(node: ExpressionNode) -> Iterator[Column]:
    """The columns that a node reads outside its aggregates."""
    match node:
        case Column():
            yield node
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from outside_aggregates(arg)


RISING: Final = ("+ interval", "- interval", "+", "-", "to date", "to timestamp", "without zone", "with zone")
"""Functions that never fall while their first argument rises, and the others are constant. `date_trunc` is one, too."""
ZONED: Final = (zones.LOCAL_TIME, zones.MOMENT_OF)
"""Functions that rise in the same way, but for the moments at which a time zone changes its clocks."""
COARSE: Final = (
    "to date", "extract year", "extract quarter", "extract month", "extract week", "extract day", "extract isoyear",
    "extract dow", "extract isodow", "extract doy", "extract hour", "extract minute",
)  # fmt: skip
"""Functions whose result stays for a while when the clock rises. `date_trunc` is one, too."""


def parts_of(node: ExpressionNode) -> tuple[ExpressionNode, ...]:
    """The nodes right below a node."""
    match node:
        case Call(args=parts) | Built(parts=parts):
            return parts
        case Aggregate():
            return node.read
    return ()


def reads_clock(node: ExpressionNode) -> bool:
    """Whether a node reads the clock."""
    return isinstance(node, Clock) or any(map(reads_clock, parts_of(node)))


def of_clock_alone(node: ExpressionNode) -> bool:
    """Whether a node has its value from the clock and from constants."""
    if isinstance(node, Call):
        return reads_clock(node) and all(isinstance(arg, Literal) or of_clock_alone(arg) for arg in node.args)
    return isinstance(node, Clock)


def is_unit(node: ExpressionNode) -> bool:
    """Whether a node cuts the clock, so that its value stays for a while: a day of the clock, an hour."""
    if not isinstance(node, Call) or not of_clock_alone(node):
        return False
    name = FUNCTIONS[node.function].name
    return (name in COARSE or name.startswith("date_trunc ")) and not any(map(_has_unit, node.args))


def _has_unit(node: ExpressionNode) -> bool:
    return is_unit(node) or any(map(_has_unit, parts_of(node)))


def _rises(node: ExpressionNode) -> bool:
    """Whether the value of a node never falls while the clock rises, but where a time zone changes its clocks."""
    if isinstance(node, Call):
        name, (first, *others) = FUNCTIONS[node.function].name, node.args
        known = name in RISING or node.function in ZONED or name.startswith("date_trunc ")
        return known and _rises(first) and all(isinstance(one, Literal) for one in others)
    return isinstance(node, Clock)


def is_ordered_by_clock(node: ExpressionNode) -> bool:
    """Whether a node compares a value of rows with one that rises with the clock, so that its result changes once. With a time
    zone that sets back its clocks, it may change some times."""
    if not isinstance(node, Call) or FUNCTIONS[node.function].name not in ("<", "<=", ">", ">="):
        return False
    rising, other = sorted(node.args, key=reads_clock, reverse=True)
    return _rises(rising) and not reads_clock(other)


def bare_clock(node: ExpressionNode) -> ExpressionNode | None:
    """The part of a node whose value changes at each tick of the clock; None where there is none."""
    if is_ordered_by_clock(node) or is_unit(node):
        return None
    if isinstance(node, Clock):
        return node
    return next((found for part in parts_of(node) if (found := bare_clock(part)) is not None), None)


_EPOCH: Final = datetime(1970, 1, 1)
_LAST_TICK: Final = 253_402_300_799
"""The end of the year 9999."""


@dataclass(slots=True)
class ClockTime:
    """The clock of the documents that a renderer makes. `now`: seconds since 1970. `changes`: the first later tick at which the
    document may differ, as far as it has read the clock since `begin`; None for never."""

    now: int = 0
    changes: int | None = None

    def begin(self) -> None:
        """Begins another document."""
        self.changes = None

    def note(self, tick: int | None) -> None:
        """Takes the tick at which something changes that the document read."""
        if tick is not None and (self.changes is None or tick < self.changes):
            self.changes = tick


def clock_text(seconds: int) -> str:
    """A moment in the form of timestamps during evaluation."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _microseconds(value: str) -> int:
    return (datetime.fromisoformat(value) - _EPOCH) // timedelta(microseconds=1)


def first_change(changed: Callable[[int], bool], tick: int, step: int, last: int = _LAST_TICK) -> int | None:
    """The first later tick, up to `last`, at which `changed` is true. A value of the clock differs at least as long as it
    lasted."""
    low, width, last = tick, step, last // step * step
    while True:
        high = min(tick + width, last)
        if high <= low:
            return None
        if changed(high):
            break
        low, width = high, width * 2
    while high - low > step:
        middle = low + (high - low) // step // 2 * step
        low, high = (low, middle) if changed(middle) else (middle, high)
    return high


_WINDOW: Final = 40 * 86_400
"""The ticks that the search for a change with time zones looks at together, in seconds."""


def has_zone(node: ExpressionNode) -> bool:
    """Whether a node asks the rules of a time zone."""
    return (isinstance(node, Call) and node.function in ZONED) or any(map(has_zone, parts_of(node)))


def clock_breaks(node: ExpressionNode, low: int, high: int, step: int) -> list[int]:
    """The ticks later than `low` and up to `high` before which the value of a node of the clock alone may fall: an offset of a
    time zone in it has changed. Between two of them the value rises."""
    if not isinstance(node, Call):
        return []
    found = clock_breaks(node.args[0], low, high, step)
    if node.function not in ZONED:
        return found
    value_at, (name, release) = (
        _value_at(node.args[0]),
        (arg.value for arg in node.args[1:] if isinstance(arg, Literal)),
    )
    more: set[int] = set(found)
    for begin, end in pairwise([low, *found, high + step]):
        first, last = value_at(begin), value_at(end - step)
        if first is None or last is None:  # beyond the year 9999
            continue
        for broken in zones.breaks(node.function, name, release, first, last):
            tick = first_change(lambda at, broken=broken: value_at(at) >= broken, begin, step, end - step)  # type: ignore[misc]
            if tick is not None:
                more.add(tick)
    return sorted(more)


def search_in_zones(node: ExpressionNode) -> Callable[..., int | None]:
    """The search for the first later tick at which something changes that depends on a node of the clock with time zones: between
    two breaks the value rises."""

    @lru_cache(maxsize=64)
    def breaks(window: int, step: int) -> list[int]:
        return clock_breaks(node, window, min(window + _WINDOW, _LAST_TICK // step * step), step)

    def first(
        changed: Callable[[int], bool], tick: int, step: int, over: Callable[[int], bool] = lambda _: False
    ) -> int | None:
        low, last = tick, _LAST_TICK // step * step
        while low < last and not (low > tick and over(low)):
            window = low // _WINDOW * _WINDOW
            high = min(window + _WINDOW, last)
            inner = [at for at in breaks(window, step) if low < at <= high]
            for begin, end in pairwise([low, *inner, high + step]):
                if begin > low and changed(begin):
                    return begin
                if (found := first_change(changed, begin, step, end - step)) is not None:
                    return found
            low = high
        return None

    return first


@dataclass(slots=True)
class Match:
    """A row in documents. `columns`: the declared columns; `more`: the undeclared ones. `found`: the rows of each join below, by
    its name or by its number in the tree; and what products share of them, by the part that made it. `depth`: the level of a row
    in a group of several levels, else 0."""

    columns: Mapping[str, Value]
    more: Mapping[str, Value]
    found: dict[Any, Any] = field(default_factory=dict)
    depth: int = 0


Scope = tuple[Match, Any]
"""A row, and the scope of the row above it. Above the root there is None."""
Evaluate = Callable[[Scope], Value]
FindRows = Callable[[Scope], list[Match]]
"""The rows of a join that count, in order."""

GROUP: Final = ""
"""A group of rows is evaluated as one `Match` without columns: its `found[GROUP]` has the scopes of the rows."""


class RowLevel(Protocol):
    """A level of the product's tree, as the compiler sees it: the joins below its rows. `clock`: of the product."""

    clock: ClockTime

    def below(self, join: str) -> "RowLevel":
        """The level of a join's rows."""

    def rows(self, join: str) -> FindRows:
        """The function that finds the rows of a join below a row of this level."""

    def scopes(self, path: Path) -> Callable[[Scope], list[Scope]]:
        """The function that finds the rows at the end of a path of joins, in the order of the last join."""

    def shown(self, path: Path) -> Evaluate:
        """The function that makes the value of a join at a row of this level. `path`: of several joins, where the join is a
        member of this level."""


def compile_expression(expression: Expression, level: RowLevel) -> Evaluate:
    """The function that gives the value of an expression as it is in the document."""
    if isinstance(expression, Column):
        return _compile_column(expression, level)
    evaluate, write = _compile_node(expression.node, level), _DOCUMENT_FORMS.get(expression.node.type)
    if write is None or isinstance(expression.node, Shown):
        return evaluate

    return _written_by(write, evaluate)


def _written_by(write: Callable[[Value], Value], evaluate: Evaluate) -> Evaluate:
    def written(scope: Scope) -> Value:
        value = evaluate(scope)
        return None if value is None else write(value)

    return written


def _compile_shown_form(node: ExpressionNode, level: RowLevel) -> Evaluate:
    """The function that gives the value of a node as it is in the document."""
    evaluate, write = (
        _compile_node(node, level),
        _DOCUMENT_FORMS.get(node.type) if not isinstance(node, Column) else None,
    )
    return evaluate if write is None or isinstance(node, Shown) else _written_by(write, evaluate)


_DOCUMENT_FORMS: Final[dict[Type, Callable[[Value], Value]]] = {
    "float": lambda value: functions.canonical_number(Decimal(repr(value))),
    "decimal": functions.canonical_number,
    "timestamp": lambda value: f"{value}Z",
    "json": json_values.document_form,
}


def _compile_node(node: ExpressionNode, level: RowLevel) -> Evaluate:
    match node:
        case Column():
            return _compile_column(node, level)
        case Literal(value=value, type=type_):
            read = (
                json_values.parse_json
                if type_ == "json"
                else getattr(FUNCTIONS.get(f"as stored({type_})"), "run", None)
            )
            constant = read(value) if read and value is not None else value
            return lambda scope: constant
        case Call():
            return _compile_call(node, level)
        case Aggregate():
            return _compile_aggregate(node, level)
        case Shown():
            return _compile_shown(node, level)
        case Built():
            return _compile_built(node, level)
        case Depth(level=own):
            return lambda scope: scope[0].depth or own
        case Clock():
            return _compile_unit(node, level)


def _compile_column(column: Column, level: RowLevel) -> Evaluate:
    name = column.name
    evaluate: Evaluate = lambda scope: scope[0].columns.get(name)  # noqa: E731
    if column.path:
        for _ in range(column.up):
            level = level.above  # type: ignore[attr-defined]
        evaluate = _through_joins(column.path, level, evaluate)
    return _at_row_above(column.up, evaluate) if column.up else evaluate


def _at_row_above(up: int, evaluate: Evaluate) -> Evaluate:
    def above(scope: Scope) -> Value:
        for _ in range(up):
            scope = scope[1]
        return evaluate(scope)

    return above


def _through_joins(path: Path, level: RowLevel, evaluate: Evaluate) -> Evaluate:
    """Evaluates at the row that the `one` joins of `path` reach. If one of them found no row, the value is null."""
    steps: list[FindRows] = []
    for name in path:
        steps.append(level.rows(name))
        level = level.below(name)

    def joined(scope: Scope) -> Value:
        for find in steps:
            found = find(scope)
            if not found:
                return None
            scope = (found[0], scope)
        return evaluate(scope)

    return joined


def _compile_call(call: Call, level: RowLevel) -> Evaluate:
    if is_ordered_by_clock(call):
        return _compile_ordered(call, level)
    if is_unit(call):
        return _compile_unit(call, level)
    function = FUNCTIONS[call.function]
    run, args = function.run, [_compile_node(arg, level) for arg in call.args]
    if not function.strict:
        return lambda scope: run(*[arg(scope) for arg in args])

    def strict(scope: Scope) -> Value:
        values = [arg(scope) for arg in args]
        return None if None in values else run(*values)

    return strict


def _step_of(node: ExpressionNode) -> int:
    return node.step if isinstance(node, Clock) else max(map(_step_of, parts_of(node)), default=0)


def _value_at(node: ExpressionNode, shifted: Callable[[str, str], str | None] | None = None) -> Callable[[int], Value]:
    """The function that gives the value of a node of the clock alone at a tick. `shifted`: moves a moment, in place of each time
    zone."""
    if isinstance(node, Clock):
        return clock_text
    if not isinstance(node, Call):
        assert isinstance(node, Literal)
        value = node.value
        return lambda tick: value
    run, args = FUNCTIONS[node.function].run, [_value_at(arg, shifted) for arg in node.args]
    if shifted is not None and node.function in ZONED:
        run = lambda moment, *_: shifted(moment, zones.LARGEST_OFFSET)  # noqa: E731

    def at(tick: int) -> Value:
        values = [arg(tick) for arg in args]
        return None if None in values else run(*values)

    return at


def _compile_unit(node: ExpressionNode, level: RowLevel) -> Evaluate:
    """A value of the clock that stays for a while: notes the tick of the next one."""
    clock, step, value_at = level.clock, _step_of(node), lru_cache(maxsize=64)(_value_at(node))

    search = search_in_zones(node) if has_zone(node) else first_change

    @lru_cache(maxsize=2)
    def next_tick(tick: int) -> int | None:
        now = value_at(tick)
        return search(lambda at: value_at(at) != now, tick, step)

    def value(scope: Scope) -> Value:
        tick = clock.now // step * step
        clock.note(next_tick(tick))
        return value_at(tick)

    return value


def _compile_ordered(call: Call, level: RowLevel) -> Evaluate:
    """A comparison with a value that rises with the clock: notes the tick at which its result changes, if it still does."""
    function, is_left = FUNCTIONS[call.function], reads_clock(call.args[0])
    rising, other = call.args if is_left else reversed(call.args)
    kept = 1024 if has_zone(rising) else 64
    clock, step, value_at = level.clock, _step_of(rising), lru_cache(maxsize=kept)(_value_at(rising))
    evaluate, run = _compile_node(other, level), function.run
    ends = (function.name in (">", ">=")) is not is_left  # `at > clock` is true first, `at < clock` is false first

    def compare(value: Value, tick: int, value_at: Callable[[int], Value] = value_at) -> Value:
        limit = value_at(tick)
        return None if limit is None else run(limit, value) if is_left else run(value, limit)

    def next_tick(value: Value, tick: int) -> int | None:
        def changed(at: int) -> bool:
            return compare(value, at) is not ends

        if isinstance(value, str):  # most are the moment of a row, and the clock less an interval
            far = _microseconds(value) - _microseconds(value_at(tick))
            guess = tick + far // 1_000_000 // step * step
            for at in (guess, guess + step):
                if tick < at <= _LAST_TICK and changed(at) and (at - step <= tick or not changed(at - step)):
                    return at
        return first_change(changed, tick, step)

    def note(value: Value, tick: int, result: Value) -> None:
        known = clock.changes
        if result is ends and (known is None or compare(value, known - step) is not ends):
            clock.note(next_tick(value, tick))

    noted = note if not has_zone(rising) else _noted_in_zones(rising, compare, ends, clock)

    def ordered(scope: Scope) -> Value:
        value = evaluate(scope)
        if value is None:
            return None
        tick = clock.now // step * step
        result = compare(value, tick)
        noted(value, tick, result)
        return result

    return ordered


def _noted_in_zones(
    rising: ExpressionNode, compare: Callable[..., Value], ends: bool, clock: ClockTime
) -> Callable[[Value, int, Value], None]:
    """Notes the tick at which a comparison changes, where its limit asks time zones. The limit falls where clocks go back, so the
    result may come back. It is between two limits that never fall: those with the largest offset before and after UTC."""
    step, search = _step_of(rising), search_in_zones(rising)
    early, late = (lru_cache(maxsize=64)(_value_at(rising, shift)) for shift in (functions.earlier, functions.later))

    def noted(value: Value, tick: int, result: Value) -> None:
        def passed(limit: Callable[[int], Value], at: int) -> bool:
            return compare(value, at, limit) is not ends

        known = clock.changes
        if result is None or passed(early, tick) or (known is not None and not passed(late, known - step)):
            return
        begin = tick if passed(late, tick) else first_change(partial(passed, late), tick, step)
        if begin is None:
            return
        begin = max(tick, begin - step)
        clock.note(search(lambda at: compare(value, at) is not result, begin, step, partial(passed, early)))

    return noted


def _compile_shown(node: Shown, level: RowLevel) -> Evaluate:
    path = node.path
    if node.flat:
        return level.shown(path)
    evaluate = _level_at(path[:-1], level).shown(path[-1:])
    return _through_joins(path[:-1], level, evaluate) if path[1:] else evaluate


def _compile_built(node: Built, level: RowLevel) -> Evaluate:
    parts, names = [_compile_shown_form(part, level) for part in node.parts], node.names
    if names is None:
        return lambda scope: [part(scope) for part in parts]
    return lambda scope: dict(zip(names, [part(scope) for part in parts], strict=True))


def _level_at(path: Path, level: RowLevel) -> RowLevel:
    for step in path:
        level = level.below(step)
    return level


def _compile_aggregate(node: Aggregate, level: RowLevel) -> Evaluate:
    over: RowLevel = level
    for name in node.over:
        over = _AggregatedLevel(over.below(name), over)
    find = level.scopes(node.over) if node.over else _find_group
    if node.where is not None or node.order:
        find = _chosen(node, over, find)
    if node.argument is None:
        return lambda scope: len(find(scope))
    if node.function in LISTS:
        return _compile_list(node, over, find)
    argument = _compile_node(node.argument, over)
    total, of_type = _folded_total(node) if node.compare else _TOTALS[node.function], node.type
    if node.distinct:
        return lambda scope: total(sorted({v for v in map(argument, find(scope)) if v is not None}), of_type)
    return lambda scope: total([v for v in map(argument, find(scope)) if v is not None], of_type)


class _AggregatedLevel:
    """The level of aggregated rows. Its expressions may read the joins of the levels `above` it, up to that of the aggregate."""

    def __init__(self, level: RowLevel, above: RowLevel) -> None:
        self.above, self.clock = above, level.clock
        self.below, self.rows, self.scopes, self.shown = level.below, level.rows, level.scopes, level.shown


FindScopes = Callable[[Scope], list[Scope]]


def _chosen(node: Aggregate, over: RowLevel, find: FindScopes) -> FindScopes:
    """Finds the rows that count for an aggregate, in its own order."""
    where = None if node.where is None else _compile_node(node.where, over)
    terms = [(_compile_node(term.by, over), term) for term in reversed(node.order)]

    def chosen(scope: Scope) -> list[Scope]:
        scopes = find(scope)
        if where is not None:
            scopes = [one for one in scopes if where(one) is True]
        for evaluate, term in terms:
            values = [(evaluate(one), one) for one in scopes]
            ranked = sorted((v for v in values if v[0] is not None), key=itemgetter(0), reverse=term.descending)
            nulls = [v for v in values if v[0] is None]
            scopes = [one for _, one in ([*nulls, *ranked] if term.nulls_first else [*ranked, *nulls])]
        return scopes

    return chosen


LISTS: Final = ("array_agg", "string_agg", "json_object_agg", "first", "last")
"""The aggregates whose value depends on the order of the rows. Nulls count in them, but for `string_agg`."""


def _compile_list(node: Aggregate, over: RowLevel, find: FindScopes) -> Evaluate:
    assert node.argument is not None
    argument = _compile_node(node.argument, over)
    match node.function:
        case "first" | "last":
            place = 0 if node.function == "first" else -1
            return lambda scope: argument(scopes[place]) if (scopes := find(scope)) else None
        case "json_object_agg":
            assert node.second is not None
            value = _compile_shown_form(node.second, over)

            def pairs(scope: Scope) -> Value:
                found = [(argument(one), one) for one in find(scope)]
                return {name: value(one) for name, one in found if name is not None} or None

            return pairs
        case "string_agg":
            separator = str(node.second.value) if isinstance(node.second, Literal) else ""

            def text(scope: Scope) -> Value:
                texts = [one for one in map(argument, find(scope)) if one is not None]
                return separator.join(_each_once(texts, node) if node.distinct else texts) if texts else None

            return text
    write = _DOCUMENT_FORMS.get(node.takes) if not isinstance(node.argument, Column | Shown) else None

    def array(scope: Scope) -> Value:
        values = list(map(argument, find(scope)))
        values = _each_once(values, node) if node.distinct else values
        return [v if v is None or write is None else write(v) for v in values] or None

    return array


def _each_once(values: Sequence[Value], node: Aggregate) -> list[Value]:
    """Each value once, in the order of the values: that of the aggregate's only term, else ascending with nulls last."""
    down, nulls_first = (node.order[0].descending, node.order[0].nulls_first) if node.order else (False, False)
    found = sorted({v for v in values if v is not None}, reverse=down)
    nulls = [None] if None in values else []
    return [*nulls, *found] if nulls_first else [*found, *nulls]


def _folded_total(node: Aggregate) -> Callable[[Sequence[Value], Type], Value]:
    """The `min` or `max` of texts by their folded text; of those that are equal, by their code points."""
    pick = FUNCTIONS[compared_function({"min": "least", "max": "greatest"}[node.function], node.compare)].run
    return lambda values, _: pick(*values)


def _find_group(scope: Scope) -> list[Scope]:
    scopes: list[Scope] = scope[0].found[GROUP]
    return scopes


def _sum(values: Sequence[Value], type_: Type) -> Value:
    if not values:
        return None
    if type_ == "float":  # Python's `sum` compensates rounding; PostgreSQL does not
        return functions.in_range(reduce(operator.add, values))
    return reduce(functions.add, values, Decimal(0))


_TOTALS: Final[dict[str, Callable[[Sequence[Value], Type], Value]]] = {
    "count": lambda values, _: len(values),
    "sum": _sum,
    "min": lambda values, _: min(values, default=None),
    "max": lambda values, _: max(values, default=None),
    "bool_and": lambda values, _: all(values) if values else None,
    "bool_or": lambda values, _: any(values) if values else None,
}

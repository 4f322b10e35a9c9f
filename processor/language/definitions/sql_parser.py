"""Parses SQL that authors write: queries, and expressions into untyped trees of names, constants and calls.

Only this module imports sqlglot, and only for a query, or for an expression that is more than a column. The parser knows no
functions, so each call arrives as the author wrote it: `expressions.py` knows the functions, and gives each part its type.
`ExpressionConverter` makes the trees from sqlglot's, and refuses the SQL that an expression cannot have.
"""

import re
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import Any, Final

from processor.language.definitions.problems import WrongDefinition


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A dotted name. `*` as its last part means the rows."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedConstant:
    """A literal: text, a number, a boolean or null."""

    value: str | int | Decimal | bool | None


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call of a function or an operator, with its name in lower case: `lower`, `+`, `is null`, `to decimal`. Only an
    aggregate has the others. `order`: each term, whether it is descending, and whether nulls come first; `where`: `filter`."""

    name: str
    args: tuple["ParsedExpression", ...]
    distinct: bool = False
    order: tuple[tuple["ParsedExpression", bool, bool], ...] = ()
    where: "ParsedExpression | None" = None

    @property
    def parts(self) -> tuple["ParsedExpression", ...]:
        """All expressions in it."""
        return (*self.args, *(by for by, _, _ in self.order), *(() if self.where is None else (self.where,)))


@dataclass(frozen=True, slots=True)
class ParsedSecret:
    """The name of a secret, `:mask` or `:'mask'`."""

    name: str


ParsedExpression = ParsedName | ParsedConstant | ParsedCall | ParsedSecret


PLAIN_SQL = "write a column, a literal, an operator or a function of docs/definitions.md"
_MAX_DIGITS = 1000
"""Digits of a number literal, before and after its point together. A row holds 38 digits, and magnitudes up to 1E+126."""

_OR, _AND, _NOT, _IS, _COMPARISON, _RANGE, _OTHER, _SUM, _PRODUCT, _POWER, _SIGN = range(11)
"""PostgreSQL's levels of operators, the loosest first: `or`, `and`, `not`, `is`, `=`, `in`, `||`, `+`, `*`, `^`, unary `-`."""
_CHAINED = {_OR, _AND, _OTHER, _SUM, _PRODUCT, _POWER}
"""The levels whose operators PostgreSQL reads from left to right: `a - b - c`. It refuses `a < b < c`."""


class ExpressionConverter:
    """Makes our nodes from sqlglot's. `exp`: sqlglot's module of node types, which only the parser imports."""

    def __init__(self, exp: Any) -> None:
        self._exp = exp
        self._operators = {
            exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
            exp.And: "and", exp.Or: "or", exp.NullSafeNEQ: "is distinct from", exp.RegexpLike: "~", exp.RegexpILike: "~*",
            exp.JSONExtract: "->", exp.JSONExtractScalar: "->>", exp.JSONBExtract: "#>", exp.JSONBExtractScalar: "#>>",
            exp.JSONBContainsTopKey: "?", exp.JSONBContainsAnyTopKeys: "?|", exp.JSONBContainsAllTopKeys: "?&",
            exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.Pow: "power",
        }  # fmt: skip
        comparisons = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
        self._levels = {
            exp.Or: _OR, exp.And: _AND, exp.Not: _NOT, exp.Is: _IS, exp.NullSafeEQ: _IS, exp.NullSafeNEQ: _IS,
            **dict.fromkeys(comparisons, _COMPARISON), exp.In: _RANGE, exp.Between: _RANGE, exp.Like: _RANGE,
            exp.ILike: _RANGE, exp.Escape: _RANGE, exp.DPipe: _OTHER, exp.Add: _SUM, exp.Sub: _SUM, exp.Mul: _PRODUCT,
            exp.Div: _PRODUCT, exp.Mod: _PRODUCT, exp.Pow: _POWER, exp.Neg: _SIGN,
            exp.RegexpLike: _OTHER, exp.RegexpILike: _OTHER,
            exp.JSONExtract: _OTHER, exp.JSONExtractScalar: _OTHER, exp.JSONBExtract: _OTHER, exp.JSONBExtractScalar: _OTHER,
            exp.JSONBContainsTopKey: _OTHER, exp.JSONBContainsAnyTopKeys: _OTHER, exp.JSONBContainsAllTopKeys: _OTHER,
            exp.ArrayContainsAll: _OTHER, exp.ArrayContainedBy: _OTHER,
        }  # fmt: skip

    def convert(self, node: Any) -> ParsedExpression:
        exp = self._exp
        self._check_grouping(node)
        match node:
            case exp.EQ(expression=exp.Any(this=array)):
                return self._apply("= any", node.this, array)
            case exp.NEQ(expression=exp.Anonymous(this=word, expressions=[array])) if str(word).lower() == "all":
                return self._apply("<> all", node.this, array)
        if (operator := self._operators.get(type(node))) is not None:
            return self._apply(operator, node.this, node.expression)
        match node:
            case exp.Paren():
                return self.convert(node.this)
            case exp.Column() | exp.Dot() | exp.Identifier() | exp.Star():
                return ParsedName(tuple(self._parts(node)))
            case exp.Var(this=name) if str(name).startswith(":"):
                return ParsedSecret(str(name)[1:])
            case exp.Literal() if node.is_string:
                return ParsedConstant(str(node.this))
            case exp.Literal():
                return ParsedConstant(_number(str(node.this)))
            case exp.Boolean():
                return ParsedConstant(bool(node.this))
            case exp.Null():
                return ParsedConstant(None)
            case exp.Neg():
                return self._negative(node)
            case exp.Not():
                return self._apply("not", node.this)
            case exp.Is():
                return self._is(node)
            case exp.NullSafeEQ():
                return ParsedCall("not", (self._apply("is distinct from", node.this, node.expression),))
            case exp.In() if node.expressions:
                return self._apply("in", node.this, *node.expressions)
            case exp.Between() if not node.args.get("symmetric"):
                return self._apply("between", node.this, node.args["low"], node.args["high"])
            case exp.Escape(this=exp.Like() | exp.ILike()):
                return self._like(node.this, node.expression)
            case exp.Like() | exp.ILike():
                return self._like(node, None)
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return self._cast(node)
        return self._function(node)

    def _check_grouping(self, node: Any) -> None:
        """Refuses operators that PostgreSQL groups otherwise than sqlglot, or that it refuses without parentheses."""
        exp, level = self._exp, self._levels.get(type(node))
        if level is None:
            return
        if level in (_NOT, _SIGN):
            operands = [(node.this, level)]
        else:
            left = node.this
            if isinstance(left, exp.Not) and isinstance(left.this, exp.In | exp.Between):
                left = left.this  # `a not in (1) = b`; sqlglot groups `not a in (1) = b` otherwise
            complete = isinstance(left, exp.In) or (isinstance(left, exp.Is) and not isinstance(node, exp.Between))
            chained = level in _CHAINED or complete or isinstance(node, exp.Escape)
            right = (node.args.get(name) for name in ("expression", "low", "high"))
            operands = [(left, level if chained else level + 1), *((operand, level + 1) for operand in right)]
        for operand, loosest in operands:
            if self._levels.get(type(operand), loosest) < loosest:
                what = f"PostgreSQL does not read `{self._sql_text(node)}` without parentheses"
                raise WrongDefinition(
                    what, f"put parentheses around `{self._sql_text(operand)}`, or around another part"
                )

    def _function(self, node: Any) -> ParsedExpression:
        exp = self._exp
        match node:
            case exp.Anonymous():
                return self._call(node)
            case exp.Filter(this=exp.Anonymous() as call, expression=exp.Where() as where):
                return replace(self._call(call), where=self.convert(where.this))
            case exp.Array():
                return self._apply("array", *node.expressions)
            case exp.Substring():
                start, length = node.args.get("start"), node.args.get("length")
                if length and not start:
                    start = exp.Literal.number(1)
                return self._apply("substring", node.this, *(part for part in (start, length) if part))
            case exp.Trim():
                name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position"), "trim")
                return self._apply(name, node.this, *([node.expression] if node.args.get("expression") else []))
            case exp.StrPosition():
                return self._apply("position", node.this, node.args["substr"])
            case exp.Array():
                return self._apply("array", *node.expressions)
            case exp.Extract():
                return self._apply(f"extract {str(node.this).lower()}", node.expression)
            case exp.Interval(this=exp.Literal() as amount):
                return ParsedCall(
                    "interval", (ParsedConstant(f"{amount.this} {node.args.get('unit') or ''}".strip().lower()),)
                )
            case exp.AtTimeZone():
                return self._apply("at time zone", node.this, node.args["zone"])
        cures = {
            exp.Interval: "write a constant, `interval '7 days'`",
            exp.Window: "number and total rows by a join: `first(x order by y)`, or `one` with `order_by`, or `sum` of a `many`",
            exp.Subquery: "join its table with `join`, and name its columns",
            exp.Bracket: "write `data ->> 'name'` for a member of json; an array has no elements by their numbers",
        }
        cure = next((cure for kind, cure in cures.items() if isinstance(node, kind)), PLAIN_SQL)
        raise WrongDefinition(f"an expression cannot have `{self._sql_text(node)}`", cure)

    def _call(self, node: Any) -> ParsedCall:
        """A call of a function, or of an aggregate: `string_agg(distinct x, ', ' order by x)`."""
        exp, args, distinct = self._exp, list(node.expressions), False
        order: tuple[tuple[ParsedExpression, bool, bool], ...] = ()
        if args and isinstance(args[-1], exp.Order):
            order = tuple(
                (self.convert(term.this), bool(term.args.get("desc")), bool(term.args.get("nulls_first")))
                for term in args[-1].expressions
            )
            args[-1] = args[-1].this
            if args[-1] is None:
                what = f"`{self._sql_text(node)}` has a comma before `order by`"
                raise WrongDefinition(what, "remove the comma")
        if args and isinstance(args[0], exp.Distinct) and not args[0].args.get("on"):
            args, distinct = [*args[0].expressions, *args[1:]], True
        call = _in_zone(self._apply(str(node.this).lower(), *args))
        return replace(call, order=order, distinct=distinct) if order or distinct else call

    def _apply(self, name: str, *args: Any) -> ParsedCall:
        parts = tuple(map(self.convert, args))
        if name in ("and", "or") and isinstance(parts[0], ParsedCall) and parts[0].name == name:
            return ParsedCall(name, (*parts[0].args, *parts[1:]))
        return ParsedCall(name, parts)

    def _parts(self, node: Any) -> list[str]:
        exp = self._exp
        if isinstance(node, exp.Star):
            return ["*"]
        if isinstance(node, exp.Dot):
            return [*self._parts(node.this), *self._parts(node.expression)]
        if isinstance(node, exp.Column):
            return [part for inner in node.parts for part in self._parts(inner)]
        if not isinstance(node, exp.Identifier):
            raise WrongDefinition(f"`{self._sql_text(node)}` is not a name", PLAIN_SQL)
        return [str(node.this)]

    def _negative(self, node: Any) -> ParsedExpression:
        inner = self.convert(node.this)
        if (
            isinstance(inner, ParsedConstant)
            and isinstance(inner.value, int | Decimal)
            and not isinstance(inner.value, bool)
        ):
            return ParsedConstant(_negated(inner.value))
        return ParsedCall("unary -", (inner,))

    def _is(self, node: Any) -> ParsedExpression:
        exp = self._exp
        match node.expression:
            case exp.Null():
                test = self._apply("is null", node.this)
            case exp.Boolean(this=truth):
                test = self._apply("is true" if truth else "is false", node.this)
            case _:
                what = f"`{self._sql_text(node)}` is not a valid test"
                raise WrongDefinition(what, "write `is null`, `is true` or `is false`")
        return ParsedCall("not", (test,)) if node.args.get("negate") else test

    def _like(self, node: Any, escape: Any) -> ParsedExpression:
        name = "ilike" if isinstance(node, self._exp.ILike) else "like"
        sign = ParsedConstant("\\") if escape is None else self.convert(escape)
        test = ParsedCall(name, (self.convert(node.this), self.convert(node.expression), sign))
        return ParsedCall("not", (test,)) if node.args.get("negate") else test

    def _case(self, node: Any) -> ParsedExpression:
        parts: list[ParsedExpression] = []
        subject = node.args.get("this")
        for branch in node.args["ifs"]:
            when = branch.this if subject is None else self._exp.EQ(this=subject.copy(), expression=branch.this)
            parts += [self.convert(when), self.convert(branch.args["true"])]
        default = node.args.get("default")
        return ParsedCall("case", (*parts, ParsedConstant(None) if default is None else self.convert(default)))

    def _cast(self, node: Any) -> ParsedExpression:
        written = node.to.sql(dialect="postgres").lower()
        name, _, parameters = written.partition("(")
        if name == "interval" and isinstance(node.this, self._exp.Literal):
            return ParsedCall("interval", (ParsedConstant(str(node.this.this).lower()),))
        numbers = [ParsedConstant(_number(n)) for n in parameters.rstrip(")").split(",") if n.strip().isdecimal()]
        return ParsedCall(f"to {name.strip()}", (self.convert(node.this), *numbers))

    def _sql_text(self, node: Any) -> str:
        return str(node.sql(dialect="postgres"))


def _in_zone(call: ParsedCall) -> ParsedCall:
    """`timezone('Europe/Zurich', at)` and `date_trunc('day', at, 'Europe/Zurich')` as they are written with `at time zone`."""
    match call:
        case ParsedCall(name="timezone", args=(zone, moment)):
            return ParsedCall("at time zone", (moment, zone))
        case ParsedCall(name="date_trunc", args=(ParsedConstant(value=unit), moment, zone)):
            if unit in ("hour", "minute", "second"):
                what = f"`date_trunc('{unit}', ...)` in a time zone is not offered: an hour may come twice in a day"
                raise WrongDefinition(what, f"cut the local time, `date_trunc('{unit}', at at time zone ...)`")
            local = ParsedCall("at time zone", (ParsedCall("to timestamptz", (moment,)), zone))
            return ParsedCall("at time zone", (ParsedCall("date_trunc", (call.args[0], local)), zone))
    return call


def _negated(number: int | Decimal) -> int | Decimal:
    """The number with the other sign. Python's `-` would round a Decimal to 28 digits."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def _number(text: str) -> int | Decimal:
    """The number of a literal. Raises: WrongDefinition for text that is not a number, and for too many digits."""
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        cure = "write digits, with at most one point and one exponent, e.g. `1.5` or `1e5`"
        raise WrongDefinition(f"`{shown}` is not a number", cure) from None
    digits = max(number.adjusted(), 0) - min(int(number.as_tuple().exponent), 0) if number else 0
    if digits >= _MAX_DIGITS:
        raise WrongDefinition(
            f"the number `{shown}` has more than {_MAX_DIGITS} digits", "write a number with fewer digits"
        )
    return int(number) if text.strip().isdecimal() and digits < 40 else number


_SYNTAX = frozenset([
    "and", "as", "between", "both", "case", "cast", "distinct", "else", "end", "escape", "extract", "false", "for", "from",
    "ilike", "in", "is", "leading", "like", "not", "null", "on", "or", "position", "substring", "then", "trailing", "trim",
    "true", "when",
])  # fmt: skip
_MAX_DEPTH = 100


def parse_expression(text: str, names: Collection[str]) -> ParsedExpression:
    """The tree of this expression. `names`: the names in scope. Such a name wins over a word of SQL (`order`), but not over the
    words of expressions themselves (`end`).

    Raises: WrongDefinition for text that is not SQL, or SQL that an expression cannot have.
    """
    from sqlglot.errors import SqlglotError

    dialect, converter = _dialect()
    try:
        tokens = _tokens(dialect, text)
        if not tokens:
            raise WrongDefinition(f"the expression `{text}` is empty", PLAIN_SQL)
        _quote(tokens, names)
        trees = dialect.parser().parse(tokens, text)
        if len(trees) != 1 or trees[0] is None:
            raise WrongDefinition(f"`{text}` is not one expression", PLAIN_SQL)
        parsed = converter(trees[0])
        if _depth(parsed) > _MAX_DEPTH:
            raise RecursionError
        return parsed
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        near = f" near `{details['highlight']}`" if details.get("highlight") else ""
        what = f"the expression `{text}` is not valid SQL{near}"
        raise WrongDefinition(what, "check its quotes, brackets and operators") from None
    except RecursionError:
        what = f"the expression `{text[:40]}...` nests more than {_MAX_DEPTH} calls"
        raise WrongDefinition(
            what, "write it with fewer levels, or compute a part of it in a column of the source"
        ) from None


_PLAIN = re.compile("[a-z_][a-z0-9_]*")


@cache
def _is_plain(name: str) -> bool:
    """Whether a name means the same with and without double quotes."""
    from sqlglot.errors import SqlglotError

    if not _PLAIN.fullmatch(name):
        return False
    try:
        (tree,) = _dialect()[0].parse(f"{name} + t.{name}")
    except SqlglotError:
        return False
    return tree is not None and tree.sql(dialect="postgres") == f"{name} + t.{name}"


def parse_query(text: str) -> tuple[Any, Any]:
    """The tree of the one statement in the text, as sqlglot makes it, and the module of sqlglot's node types.

    `sql.py` reads this tree. Raises: WrongDefinition, with the line, for text that is not SQL.
    """
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    dialect, _ = _dialect()
    try:
        trees = dialect.parser().parse(_query_tokens(_tokens(dialect, text)), text)
    except ParseError as error:
        details = (error.errors or [{}])[0]
        near = f" near `{details['highlight']}`" if details.get("highlight") else ""
        line = details.get("line") or 1
        raise WrongDefinition(
            f"the query is not valid SQL{near}", "check its clauses, commas and brackets", line
        ) from None
    except (SqlglotError, RecursionError):
        raise WrongDefinition("the query is not valid SQL", "check its quotes and brackets") from None
    if len(trees) != 1:
        raise WrongDefinition(f"`sql` has {len(trees)} statements", "write one `select` per product")
    tree = trees[0].unnest() if isinstance(trees[0], exp.Subquery) and not trees[0].alias else trees[0]
    for column in list(tree.find_all(exp.Column)) if tree is not None else ():
        if not column.table and not column.this.args.get("quoted") and column.name.lower() in _MOMENTS:
            column.replace(exp.Anonymous(this=column.name.lower(), expressions=[]))
    for name in tree.find_all(exp.Identifier) if tree is not None else ():
        if name.quoted and _is_plain(name.this):
            name.set("quoted", False)  # readers compare the texts of terms
    return tree, exp


def _query_tokens(tokens: list[Any]) -> list[Any]:
    """The tokens of the query in a statement that stores its rows: `create view v as select`, `insert into t select`. ksqlDB's
    `emit changes` behind it says nothing of its rows."""
    words = [token.text.lower() for token in tokens]
    end = len(tokens) - (words[-1:] == [";"])
    if words[max(end - 2, 0) : end] == ["emit", "changes"]:
        tokens, words = tokens[: end - 2], words[: end - 2]
    if words[:1] == ["create"]:
        depth, options = 0, False
        for place, word in enumerate(words):
            options = options or (word == "with" and depth == 0)
            if word == "(" and not depth and not options:
                break  # names of the columns, which the query may not have
            depth += (word == "(") - (word == ")")
            if word == "as" and not depth:
                return tokens[place + 1 :]
    if words[:2] == ["insert", "into"]:
        begins = ("select", "with")
        place = next((at for at, word in enumerate(words) if word in begins or word == "("), 0)
        named = words[place : place + 1] == ["("] and words[place + 1 : place + 2] not in (["select"], ["with"])
        return tokens if named else tokens[place:]
    return tokens


_MOMENTS = ("current_date", "current_timestamp")
"""Functions without parentheses, which the parser takes for columns."""


_UNITS = re.compile(r"(\s*[+-]?\d+(\.\d+)?\s*[A-Za-z]+\s*)+")


def _tokens(dialect: Any, text: str) -> list[Any]:
    """The tokens of a text. Raises WrongDefinition for `==`, which sqlglot takes for `=`, and Postgres refuses. An interval
    of more than numbers with units (`interval '1 day 02:30'`) becomes a cast, since sqlglot would drop the rest."""
    tokens: list[Any] = dialect.tokenize(text)
    for place, token in enumerate(tokens):
        if token.text == "==" and token.token_type.name == "EQ":
            raise WrongDefinition(f"SQL has no operator `==` (`{text}`)", "write `=`", token.line)
        before = tokens[place - 1] if place else token
        is_interval = token.token_type.name == "STRING" and before.token_type.name == "INTERVAL"
        if is_interval and re.search("[A-Za-z]", token.text) and not _UNITS.fullmatch(token.text):
            sign = copy(token)
            sign.token_type, sign.text = type(token.token_type).DCOLON, "::"
            tokens[place - 1 : place + 1] = [token, sign, before]
    return tokens


def _depth(parsed: ParsedExpression) -> int:
    return 1 + max(map(_depth, parsed.parts), default=0) if isinstance(parsed, ParsedCall) else 0


def _quote(tokens: list[Any], names: Collection[str]) -> None:
    """Marks each word of SQL that is a name in scope as a plain name."""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        literal = token.token_type.name in ("STRING", "NUMBER", "IDENTIFIER")
        follows = following is not None and following.token_type.name in ("L_PAREN", "STRING")
        if not literal and not follows and token.text in names and token.text.lower() not in _SYNTAX:
            token.token_type = type(token.token_type).VAR


@cache
def _dialect() -> tuple[Any, Callable[[Any], ParsedExpression]]:
    from sqlglot import exp
    from sqlglot.dialects.postgres import Postgres

    special = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
    parsers = {name: parser for name, parser in Postgres.Parser.FUNCTION_PARSERS.items() if name in special}
    arrows = {"ARROW": exp.JSONExtract, "DARROW": exp.JSONExtractScalar}
    operators = {  # a key of `->` is a text or a number, and no JSON path
        token: partial(_arrow, arrows[token.name]) if token.name in arrows else made
        for token, made in Postgres.Parser.JSON_OPERATORS.items()
    }
    placeholders = {
        token: partial(_secret, exp.Var) if token.name == "COLON" else made
        for token, made in Postgres.Parser.PLACEHOLDER_PARSERS.items()
    }
    members: dict[str, Any] = {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}, "FUNCTION_PARSERS": parsers, "LAMBDAS": {}}
    members |= {"JSON_OPERATORS": operators, "PLACEHOLDER_PARSERS": placeholders}
    parser = type("Parser", (Postgres.Parser,), members)
    dialect = type("Expressions", (Postgres,), {"Parser": parser})
    return dialect(), ExpressionConverter(exp).convert


def _arrow(node: Any, parser: Any, value: Any, key: Any) -> Any:
    return parser.expression(node(this=value, expression=key, only_json_types=True))


def _secret(node: Any, parser: Any) -> Any:
    """The name of a secret as a word with its colon, which sqlglot prints as it is."""
    named = parser._curr and (
        parser._curr.token_type.name == "STRING" or parser._curr.token_type in parser.COLON_PLACEHOLDER_TOKENS
    )
    if not named:
        return None
    parser._advance()
    return node(this=f":{parser._prev.text}")


_OTHER_NAMES: Final = {
    "ucase": "upper", "lcase": "lower", "len": "length", "ifnull": "coalesce", "nvl": "coalesce", "collect_list": "array_agg",
}  # fmt: skip
"""Functions of MySQL and ksqlDB, by their names in PostgreSQL."""


class Cleaner:
    """Leaves out of a query what says nothing about its rows: schemas, brackets of joins, right joins, other names."""

    def __init__(self, exp: Any, line_of: Callable[[Any], int]) -> None:
        self._exp, self._line_of = exp, line_of

    def cleaned(self, tree: Any) -> Any:
        """The query without what says nothing about its rows."""
        exp = self._exp
        schemas: dict[str, str] = {}
        for join in tree.find_all(exp.Join):
            if join.side == "FULL":
                what = f"`{text_of(join).strip(', ')}` has rows of both tables that have no other"
                cure = "write a product for each table, or `left join` from the table that has each row"
                raise WrongDefinition(what, cure, self._line_of(join))
        for table in tree.find_all(exp.Table):
            if table.args.get("version"):
                what = f"`{text_of(table)}` is a table as of a time"
                cure = "join the first row: `(select ... where t.at <= s.at order by t.at desc limit 1)`"
                raise WrongDefinition(what, cure, self._line_of(table))
            if table.args.get("db") and isinstance(table.this, exp.Identifier):
                schema = text_of(table.args["db"])
                if schemas.setdefault(table.name, schema) != schema:
                    what = f"the query has `{table.name}` of two schemas"
                    raise WrongDefinition(what, "name each entity by itself, without a schema", self._line_of(table))
                table.set("db", None)
                table.set("catalog", None)
        for column in tree.find_all(exp.Column):
            if column.args.get("db") and column.text("db") == schemas.get(column.table):
                column.set("db", None)
                column.set("catalog", None)
        for call in tree.find_all(exp.Anonymous):
            call.set("this", _OTHER_NAMES.get(str(call.this).lower(), call.this))
        for node in list(tree.find_all(exp.Anonymous, exp.Bracket)):
            self._say_otherwise(node)
        for select in list(tree.find_all(exp.Select)):
            self._unbracket(select)
            self._turn_right_joins(select)
        for node in list(tree.find_all(exp.Subquery)):
            inner = node.this
            alone = isinstance(inner, exp.Select) and filled(inner) == {"expressions"} and len(inner.expressions) == 1
            if alone and not isinstance(node.parent, exp.From | exp.Join | exp.Lateral | exp.CTE):
                node.replace(exp.Paren(this=inner.expressions[0].unalias()))
        return tree

    def _say_otherwise(self, node: Any) -> None:
        """`array_to_string(array_agg(x), ',')` and `(array_agg(x order by y))[1]`, by functions that have no array."""
        exp = self._exp
        if isinstance(node, exp.Bracket):
            inner = node.this.unnest()
            if is_call(inner, "array_agg") and [str(one) for one in node.expressions] == ["0"]:
                inner.set("this", "first")
                node.replace(inner)
            return
        listed = node.expressions[0] if is_call(node, "array_to_string") and len(node.expressions) == 2 else None
        call = listed.this if isinstance(listed, exp.Filter) else listed
        if listed is None or call is None or not is_call(call, "array_agg") or not call.expressions:
            return
        call.set("this", "string_agg")
        first = call.expressions[0]
        call.set("expressions", [first, node.expressions[1].copy()])
        if isinstance(first, exp.Order):
            call.set(
                "expressions", [first.this, exp.Order(this=node.expressions[1].copy(), expressions=first.expressions)]
            )
        text = exp.Anonymous(this="coalesce", expressions=[listed.copy(), exp.Literal.string("")])
        counted = exp.Anonymous(this="count", expressions=[exp.Star()])
        found = exp.GT(this=counted, expression=exp.Literal.number(0))
        select = node.find_ancestor(exp.Select)
        grouped = select is not None and select.args.get("group")
        node.replace(text if grouped else exp.Case(ifs=[exp.If(this=found, true=text)]))

    def _unbracket(self, select: Any) -> None:
        """`from ((a join b on ...) join c on ...)` without its brackets."""
        exp, origin = self._exp, select.args.get("from_")
        while origin is not None and self._is_bracket(origin.this):
            node = origin.this
            inner = node.this
            joins = [*(inner.args.get("joins") or ()), *(node.args.get("joins") or ())]
            inner.set("joins", None)
            select.set("joins", [*joins, *(select.args.get("joins") or ())])
            origin.set("this", inner)
        joins = []
        for join in select.args.get("joins") or ():
            below: list[Any] = []
            while self._is_bracket(join.this) and join.side != "LEFT":
                inner = join.this.this
                below = [*(inner.args.get("joins") or ()), *(join.this.args.get("joins") or ()), *below]
                inner.set("joins", None)
                join.set("this", inner)
            joins += [join, *below]
        if joins:
            select.set("joins", joins)
        for group in [select.args["group"]] if select.args.get("group") else ():
            flat = [one.unnest() for one in group.expressions]
            group.set(
                "expressions",
                [two for one in flat for two in (one.expressions if isinstance(one, exp.Tuple) else [one])],
            )

    def _is_bracket(self, node: Any) -> bool:
        exp = self._exp
        return isinstance(node, exp.Subquery) and not node.alias and isinstance(node.this, exp.Table | exp.Subquery)

    def _turn_right_joins(self, select: Any) -> None:
        """`a right join b` as `b left join a`."""
        joins, origin = select.args.get("joins") or [], select.args.get("from_")
        for place, join in enumerate(joins):
            stars = any(
                isinstance(one, self._exp.Star) for one in select.expressions
            )  # their columns keep the order of tables
            if join.side != "RIGHT" or stars or any(one.side != "LEFT" for one in joins[:place]):
                continue
            before = {one.this.alias_or_name for one in joins[:place]}
            if join.args.get("using") and before:
                continue
            if any(
                c.table in before for c in (join.args["on"].find_all(self._exp.Column) if join.args.get("on") else ())
            ):
                continue
            left, right = origin.this, join.this
            origin.set("this", right)
            join.set("this", left)
            join.set("side", "LEFT")
            select.set("joins", [join, *joins[:place], *joins[place + 1 :]])


def filled(node: Any) -> set[str]:
    """The arguments that a node has."""
    return {word for word, value in node.args.items() if value}


def text_of(node: Any) -> str:
    """The SQL of a node."""
    return str(node.sql(dialect="postgres", normalize_functions=False, comments=False))


def is_call(node: Any, name: str) -> bool:
    """Whether a node is the call of this function."""
    return node is not None and node.key == "anonymous" and str(node.this).lower() == name

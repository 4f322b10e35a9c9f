"""SQL expressions as untyped trees: names, constants, and functions or operators applied to them; and the parser of queries.

The only module that imports sqlglot, and only when an expression is more than a column. Which functions there are, and what
they take, is `processor.definitions.expressions`' matter: the parser is told of none, so that each call comes as it was written.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from processor.definitions.errors import Wrong

_SYNTAX = frozenset([
    "and", "as", "between", "both", "case", "cast", "distinct", "else", "end", "escape", "extract", "false", "for", "from",
    "ilike", "in", "is", "leading", "like", "not", "null", "on", "or", "position", "substring", "then", "trailing", "trim",
    "true", "when",
])  # fmt: skip
_MOST_DEPTH = 100
_PLAIN = "write a column, a literal, an operator or a function of docs/expressions.md"


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name; `*` as its last part: the rows."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: text, a number, a boolean or null."""

    value: str | int | Decimal | bool | None


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or an operator, its name in lower case: `lower`, `+`, `is null`, `to decimal`."""

    name: str
    args: tuple["Parsed", ...]


Parsed = Name | Constant | Apply


def parse(text: str, names: Collection[str]) -> Parsed:
    """The expression that the text spells. `names`: what may be meant by a word that SQL has another use for (`order`, `end`).

    Raises Wrong for what is no SQL, or none that an expression can be.
    """
    from sqlglot.errors import SqlglotError

    dialect, converter = _dialect()
    try:
        tokens = dialect.tokenize(text)
        _quote(tokens, names)
        trees = dialect.parser().parse(tokens, text)
        if len(trees) != 1 or trees[0] is None:
            raise Wrong(f"`{text}` is not one expression", _PLAIN)
        parsed = converter(trees[0])
        if _depth(parsed) > _MOST_DEPTH:
            raise RecursionError
        return parsed
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        near = f" near `{details['highlight']}`" if details.get("highlight") else ""
        raise Wrong(f"the expression `{text}` is no SQL{near}", "check its quotes, brackets and operators") from None
    except RecursionError:
        what = f"the expression `{text[:40]}...` nests more than {_MOST_DEPTH} calls"
        raise Wrong(what, "write it flatter, or let a column of the source hold a part of it") from None


def parse_query(text: str) -> tuple[Any, Any]:
    """The one statement that the text spells, as sqlglot's tree for `processor.definitions.sql_query`, and sqlglot's node types.

    Raises Wrong, with its line, for what is no SQL.
    """
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    dialect, _ = _dialect()
    try:
        trees = dialect.parser().parse(dialect.tokenize(text), text)
    except ParseError as error:
        details = (error.errors or [{}])[0]
        near = f" near `{details['highlight']}`" if details.get("highlight") else ""
        line = details.get("line") or 1
        raise Wrong(f"the query is no SQL{near}", "check its clauses, commas and brackets", line) from None
    except (SqlglotError, RecursionError):
        raise Wrong("the query is no SQL", "check its quotes and brackets") from None
    if len(trees) != 1:
        raise Wrong(f"`sql` holds {len(trees)} statements", "write one `select` a product")
    return trees[0], exp


def _depth(parsed: Parsed) -> int:
    return 1 + max(map(_depth, parsed.args), default=0) if isinstance(parsed, Apply) else 0


def _quote(tokens: list[Any], names: Collection[str]) -> None:
    """Makes plain names of the words that name something here, where SQL would read them as its own."""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        literal = token.token_type.name in ("STRING", "NUMBER", "IDENTIFIER")
        follows = following is not None and following.token_type.name in ("L_PAREN", "STRING")
        if not literal and not follows and token.text in names and token.text.lower() not in _SYNTAX:
            token.token_type = type(token.token_type).VAR


@cache
def _dialect() -> tuple[Any, Callable[[Any], Parsed]]:
    from sqlglot import exp
    from sqlglot.dialects.postgres import Postgres

    special = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
    parsers = {name: parse for name, parse in Postgres.Parser.FUNCTION_PARSERS.items() if name in special}
    members = {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}, "FUNCTION_PARSERS": parsers}
    dialect = type("Expressions", (Postgres,), {"Parser": type("Parser", (Postgres.Parser,), members)})
    return dialect(), _Converter(exp).convert


class _Converter:
    """From sqlglot's nodes to ours."""

    def __init__(self, exp: Any) -> None:
        self._exp = exp
        self._operators = {
            exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
            exp.And: "and", exp.Or: "or", exp.NullSafeNEQ: "is distinct from",
        }  # fmt: skip

    def convert(self, node: Any) -> Parsed:
        exp = self._exp
        if (operator := self._operators.get(type(node))) is not None:
            return self._apply(operator, node.this, node.expression)
        match node:
            case exp.Paren():
                return self.convert(node.this)
            case exp.Column() | exp.Dot() | exp.Identifier() | exp.Star():
                return Name(tuple(self._parts(node)))
            case exp.Literal() if node.is_string:
                return Constant(str(node.this))
            case exp.Literal():
                return Constant(_number(str(node.this)))
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Null():
                return Constant(None)
            case exp.Neg():
                return self._negative(node)
            case exp.Not():
                return self._apply("not", node.this)
            case exp.Is():
                return self._is(node)
            case exp.NullSafeEQ():
                return Apply("not", (self._apply("is distinct from", node.this, node.expression),))
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

    def _function(self, node: Any) -> Parsed:
        exp = self._exp
        match node:
            case exp.Anonymous():
                return self._apply(str(node.this).lower(), *node.expressions)
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
            case exp.Extract():
                return self._apply(f"extract {str(node.this).lower()}", node.expression)
        raise Wrong(f"`{self._written(node)}` is no part of an expression here", _PLAIN)

    def _apply(self, name: str, *args: Any) -> Apply:
        parts = tuple(map(self.convert, args))
        if name in ("and", "or") and isinstance(parts[0], Apply) and parts[0].name == name:
            return Apply(name, (*parts[0].args, *parts[1:]))
        return Apply(name, parts)

    def _parts(self, node: Any) -> list[str]:
        exp = self._exp
        if isinstance(node, exp.Star):
            return ["*"]
        if isinstance(node, exp.Dot):
            return [*self._parts(node.this), *self._parts(node.expression)]
        if isinstance(node, exp.Column):
            return [part for inner in node.parts for part in self._parts(inner)]
        if not isinstance(node, exp.Identifier):
            raise Wrong(f"`{self._written(node)}` is no name", _PLAIN)
        return [str(node.this)]

    def _negative(self, node: Any) -> Parsed:
        inner = self.convert(node.this)
        if isinstance(inner, Constant) and isinstance(inner.value, int | Decimal) and not isinstance(inner.value, bool):
            return Constant(-inner.value)
        return Apply("unary -", (inner,))

    def _is(self, node: Any) -> Parsed:
        exp = self._exp
        match node.expression:
            case exp.Null():
                of = self._apply("is null", node.this)
            case exp.Boolean(this=truth):
                of = self._apply("is true" if truth else "is false", node.this)
            case _:
                raise Wrong(f"`{self._written(node)}` is no test", "write `is null`, `is true` or `is false`")
        return Apply("not", (of,)) if node.args.get("negate") else of

    def _like(self, node: Any, escape: Any) -> Parsed:
        name = "ilike" if isinstance(node, self._exp.ILike) else "like"
        sign = Constant("\\") if escape is None else self.convert(escape)
        of = Apply(name, (self.convert(node.this), self.convert(node.expression), sign))
        return Apply("not", (of,)) if node.args.get("negate") else of

    def _case(self, node: Any) -> Parsed:
        parts: list[Parsed] = []
        subject = node.args.get("this")
        for branch in node.args["ifs"]:
            when = branch.this if subject is None else self._exp.EQ(this=subject.copy(), expression=branch.this)
            parts += [self.convert(when), self.convert(branch.args["true"])]
        default = node.args.get("default")
        return Apply("case", (*parts, Constant(None) if default is None else self.convert(default)))

    def _cast(self, node: Any) -> Parsed:
        written = node.to.sql(dialect="postgres").lower()
        name, _, parameters = written.partition("(")
        numbers = [Constant(int(n)) for n in parameters.rstrip(")").split(",") if n.strip().isdecimal()]
        return Apply(f"to {name.strip()}", (self.convert(node.this), *numbers))

    def _written(self, node: Any) -> str:
        return str(node.sql(dialect="postgres"))


def _number(text: str) -> int | Decimal:
    return int(text) if text.isdecimal() and len(text) < 40 else Decimal(text)

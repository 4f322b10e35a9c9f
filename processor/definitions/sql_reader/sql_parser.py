"""Parses SQL expressions into untyped trees of names, constants and calls of functions or operators; and parses queries.

Only this module imports sqlglot, and only for a query, or for an expression that is more than a column. The parser knows no
functions, so each call arrives as the author wrote it. `definitions/expression_reader/read_expression.py` knows the functions.
"""

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from processor.definitions.problems import WrongDefinition
from processor.definitions.sql_reader.expression_converter import PLAIN_SQL, ExpressionConverter
from processor.definitions.sql_reader.parsed_expression import ParsedCall, ParsedExpression

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


def parse_query(text: str) -> tuple[Any, Any]:
    """The tree of the one statement in the text, as sqlglot makes it, and the module of sqlglot's node types.

    `sql_select.py` reads this tree. Raises: WrongDefinition, with the line, for text that is not SQL.
    """
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    dialect, _ = _dialect()
    try:
        trees = dialect.parser().parse(_tokens(dialect, text), text)
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
    return trees[0], exp


def _tokens(dialect: Any, text: str) -> list[Any]:
    """The tokens of a text. Raises WrongDefinition for `==`, which sqlglot takes for `=`, and Postgres refuses."""
    tokens: list[Any] = dialect.tokenize(text)
    for token in tokens:
        if token.text == "==" and token.token_type.name == "EQ":
            raise WrongDefinition(f"SQL has no operator `==` (`{text}`)", "write `=`", token.line)
    return tokens


def _depth(parsed: ParsedExpression) -> int:
    return 1 + max(map(_depth, parsed.args), default=0) if isinstance(parsed, ParsedCall) else 0


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
    members = {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}, "FUNCTION_PARSERS": parsers}
    dialect = type("Expressions", (Postgres,), {"Parser": type("Parser", (Postgres.Parser,), members)})
    return dialect(), ExpressionConverter(exp).convert

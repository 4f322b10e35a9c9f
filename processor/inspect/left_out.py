"""Why a document, or a list in it, leaves a found row out: by the compiled levels that also render the document."""

from collections.abc import Iterator

from processor.definitions.describe import write_expression
from processor.product.document import CompiledJoin, CompiledLevel
from processor.product.expressions.expression import (
    Column,
    Evaluate,
    Expression,
    Path,
    Scope,
    compile_expression,
    node_of,
    references,
)


def why_left_out(level: CompiledLevel, where: Evaluate | None, text: Expression | None, scope: Scope) -> str:
    """Why a row does not count: the required join that has no row, or its `where`; empty where it counts."""
    lacking = level.lacking(scope)
    if lacking:
        return f"the required join `{lacking[0]}` has no row that counts"
    value = True if where is None else where(scope)
    if value is True or text is None:
        return ""
    condition = f"`where: {write_expression(text)}`"
    if value is False:
        return f"{condition} is false"
    columns = {write_expression(column): column for column in _single_columns(text, level)}
    nulls = [name for name, column in columns.items() if compile_expression(column, level)(scope) is None]
    cause = f", because {' and '.join(nulls)} {'is' if len(nulls) == 1 else 'are'} null" if nulls else ""
    return f"{condition} is null{cause}"


def why_row_is_left_out(joined: CompiledJoin, place: int | None, scope: Scope) -> str:
    """Why a join leaves a found row out; empty where the document shows it. `place`: of the row among those that count, None
    where it does not count."""
    join = joined.join
    if place is None:
        return why_left_out(joined.level, joined.rows.where, join.where, scope) or "a `one` shows the first row only"
    return "" if join.limit is None or place < join.limit else f"`limit: {join.limit}` ends the list before it"


def _single_columns(expression: Expression, level: CompiledLevel) -> Iterator[Column]:
    """The columns that an expression reads, without those of the rows of an aggregate: they have one value."""
    for item in references(node_of(expression)):
        if isinstance(item, Column) and (not item.path or (not item.up and _reaches_one(item.path, level))):
            yield item


def _reaches_one(path: Path, level: CompiledLevel) -> bool:
    """Whether only `one` joins lead from the level to the row at `path`."""
    for step in path:
        joined = level.joins[step]
        if joined.join.many:
            return False
        level = joined.level
    return True

"""The paths of the `one` joins whose rows an expression reads. A query finds these rows before it evaluates the expression."""

from collections.abc import Iterable, Iterator

from processor.product.expressions.expression import Aggregate, Call, Column, ExpressionNode, Path, Shown, references


def read_paths(nodes: Iterable[ExpressionNode]) -> list[Path]:
    """The paths that the nodes read and all prefixes of these paths, each once, shorter ones first."""
    paths = (path for node in nodes for path in _paths_read(node))
    found = dict.fromkeys(path[:length] for path in paths for length in range(1, len(path) + 1))
    return sorted(found, key=len)


def _paths_read(node: ExpressionNode) -> Iterator[Path]:
    """The paths of `one` joins whose rows the node reads."""
    match node:
        case Column(up=0, path=path):
            yield path
        case Shown(path=path):
            yield path[:-1]
        case Call(args=args):
            for arg in args:
                yield from _paths_read(arg)
        case Aggregate(over=(), argument=argument) if argument is not None:
            yield from _paths_read(argument)
        case Aggregate(over=over, argument=argument) if over:
            yield over[:-1]
            for inner in references(argument) if argument is not None else ():
                if isinstance(inner, Column) and 0 < inner.up <= len(over):
                    yield over[: len(over) - inner.up] + inner.path

"""Counts the rows that each join finds for documents: joins that find nothing, and `one` joins that find several rows."""

from collections import Counter
from dataclasses import dataclass, field, replace

from processor.plan.product_plan import ProductPlan
from processor.product.document import CompiledLevel, Match, Renderer
from processor.product.expressions.expression import Scope
from processor.product.product import Join, Product, WholeRow
from processor.records.entity import Entity


@dataclass(slots=True, kw_only=True)
class JoinFinding:
    """The rows that a join finds. `asked`: the rows above it; `nothing`: those of them without a row; `several`: those for which
    a `one` finds more than one row, so that `order_by` or the key decides. A row counts only if its `where` is true."""

    path: str
    entity: str
    many: bool
    asked: int = 0
    nothing: int = 0
    several: int = 0


@dataclass(slots=True, kw_only=True)
class JoinCounter:
    """Counts the rows of the joins of one product."""

    product: ProductPlan
    entities: dict[str, Entity]
    findings: dict[str, JoinFinding] = field(init=False)
    _renderer: Renderer = field(init=False)

    def __post_init__(self) -> None:
        nodes = zip(self.product.paths(), self.product.nodes, strict=True)
        self.findings = {
            path: JoinFinding(path=path, entity=node.join.entity, many=node.join.many or node.join.listed)
            for path, node in nodes
        }
        self._renderer = Renderer(product=_with_all_rows(self.product.product), entities=self.entities, tally=Counter())

    def count(self, top: Match) -> None:
        """Counts the rows below the root of one document."""
        self._count((top, None), self._renderer.level, "")

    def _count(self, scope: Scope, level: CompiledLevel, prefix: str) -> None:
        for name, joined in level.joins.items():
            found, finding = joined.rows.of(scope), self.findings[f"{prefix}{name}"]
            finding.asked += 1
            finding.nothing += not found
            finding.several += len(found) > 1 and not finding.many
            for row in found:
                self._count((row, scope), joined.level, f"{prefix}{name}.")


def _with_all_rows(product: Product) -> Product:
    """The product with joins that keep each row that counts, and that show none."""
    return replace(product, selection=WholeRow(), joins=tuple(map(_keeping, product.joins)))


def _keeping(join: Join) -> Join:
    return replace(join, many=True, limit=None, shown=False, joins=tuple(map(_keeping, join.joins)))

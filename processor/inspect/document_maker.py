"""Makes the documents of one side of a diff, counts what its joins find, and meters its reads."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from processor.inspect.join_findings import JoinCounter
from processor.inspect.unfilled_rows import UnfilledRows, with_unfilled
from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan
from processor.plan.root_key import root_message_key
from processor.plan.step import Lookup, Step
from processor.plan.tree import merge
from processor.product.document import GONE, Renderer
from processor.product.encoded_document import json_of_avro
from processor.records import canonical_json
from processor.rounds.step_runner import StepRunner
from processor.steps.assemble import assemble_tree, shown_rows
from statestore.attribute_values import item_size
from statestore.metered import READ_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """A plan, and the state that it reads. `unfilled`: rows that slots and edges of the state lack for this plan."""

    plan: Plan
    runner: StepRunner
    unfilled: UnfilledRows = field(default_factory=UnfilledRows)


class MadeDocument(NamedTuple):
    """A document. `value`: None where there is none; `error`: why it cannot be published; `units`: of its reads."""

    key: str
    value: bytes | None
    error: str = ""
    units: float = 0.0


class DocumentMaker:
    """Makes the documents of a product of one side."""

    def __init__(self, side: DiffSide, product: ProductPlan, *, counts: bool) -> None:
        entities = side.plan.declared_entities
        self.side, self.product = side, product
        self._tree = merge([product])
        is_avro = product.product.format == "avro"
        self._encode = json_of_avro(product.product, entities) if is_avro else canonical_json.encode
        shape = self._tree.shape[product.product.name]
        self._renderer = Renderer(product=product.product, entities=entities, tally=Counter(), shape=shape)
        self.joins = JoinCounter(product=product, entities=entities) if counts else None

    def document(self, root: str) -> Step[MadeDocument]:
        """The document of a root."""
        plan, name, units = self.side.plan, self.product.product.name, list[float]()
        step = _metered(assemble_tree(plan, self._tree, root), units.append)
        found = yield from with_unfilled(step, self.side.unfilled)
        if found is None:
            return MadeDocument("", None, units=sum(units))
        key = root_message_key(plan.entities[self.product.product.root].entity, found.columns)
        try:
            document = self._renderer.document(found)
            value = None if document is GONE else self._encode(document)
        except Exception as error:  # such a document stops the product of a job, or is a dead letter there
            return MadeDocument(key, None, f"{type(error).__name__}: {error}", sum(units))
        if value is not None and self.joins is not None:
            self.joins.count(shown_rows(found, self._tree.shape[name]))
        return MadeDocument(key, value, units=sum(units))


def _metered(step: Step[Any], spend: Callable[[float], object]) -> Step[Any]:
    """The step. `spend` gets the read units of each request, as `statestore.metered` counts them."""
    try:
        asked = next(step)
        while True:
            answers = yield asked
            for request, answer in zip(asked, answers, strict=True):
                spend(_units(request, answer))
            asked = step.send(answers)
    except StopIteration as end:
        return end.value


def _units(request: object, answer: Any) -> float:
    if not isinstance(request, Lookup):
        return _whole_units(0 if answer is None else item_size(answer))
    if isinstance(request.source, str):
        return 1 + sum(_whole_units(item_size(item)) for item in answer.items)
    return _whole_units(sum(map(item_size, answer.items))) / 2


def _whole_units(bytes: int) -> int:
    return max(1, ceil(bytes / READ_BYTES))

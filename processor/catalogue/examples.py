"""Examples of documents: the tests of a product run in memory, and show the document that they expect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processor.definitions.product_tests import Case
from processor.plan.plan import Plan
from processor.records import canonical_json
from processor.settings.settings import Settings
from processor.trial.run_product_tests import run_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A document that a test expects. `case`: the test; `key`: of the message; `document`: JSON, a line for each member."""

    case: Case
    key: str
    document: str


def example_of(product: str, cases: Sequence[Case], plan: Plan, settings: Settings) -> Example | None:
    """The document of the product's first test that expects a whole document, else of one that expects some members. None where
    no test has one, or none publishes it."""
    for case, key in _candidates(product, cases):
        topic = plan.products[product].product.topic
        messages = run_trial(case, plan, settings).published.messages
        documents = [m.value for m in messages if m.topic == topic and (m.key or b"").decode() == key]
        if documents and documents[-1] is not None:
            shown = canonical_json.dumps_indented(canonical_json.loads(documents[-1]))
            return Example(case=case, key=key, document=shown)
    return None


def _candidates(product: str, cases: Sequence[Case]) -> Iterator[tuple[Case, str]]:
    for whole in (True, False):
        for case in (case for case in cases if case.product == product):
            keys = [one.key for one in case.expected if one.document is not None and one.whole is whole]
            yield from ((case, key) for key in keys[:1])

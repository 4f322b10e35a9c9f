"""Examples of documents: the tests of a product run in memory, and show the document that they expect."""

from collections.abc import Iterable, Sequence
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
    """The document of the product that its tests show the most of. None where no test has one, or none publishes it."""
    topic = plan.products[product].product.topic
    for case, key in _most_shown_first(case for case in cases if case.product == product):
        messages = run_trial(case, plan, settings).published.messages
        values = [m.value for m in messages if m.topic == topic and (m.key or b"").decode() == key]
        if values and values[-1] is not None:
            shown = canonical_json.dumps_indented(canonical_json.loads(values[-1]))
            return Example(case=case, key=key, document=shown)
    return None


def _most_shown_first(cases: Iterable[Case]) -> list[tuple[Case, str]]:
    """The tests with the key of each document that they expect, the longest expectation first."""
    expected = [(case, one) for case in cases for one in case.expected if one.document is not None]
    expected.sort(key=lambda found: len(canonical_json.dumps(found[1].document)), reverse=True)
    return [(case, one.key) for case, one in expected]

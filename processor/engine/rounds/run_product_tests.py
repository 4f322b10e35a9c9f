"""Runs tests of products: the steps process the rows and changes in memory, then each published document is compared with the
expected one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from processor.engine.plan.plan import Plan
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.product_tests import Case, ExpectedDocument
from processor.language.definitions.shape import MOST_SECONDS
from processor.values import canonical_json
from processor.values.dead_letters import rejected_record
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A difference. `line`: of the expectation or the record; `what`: the message; `diff`: the document's diff as lines, `-`
    expected, `+` published."""

    line: int
    what: str
    diff: tuple[str, ...] = ()


def run_case(case: Case, plan: Plan, settings: Settings) -> tuple[Failure, ...]:
    """Runs one case, and returns its failures: none when the case passed."""
    trial = run_trial(case, plan, settings)
    topic = plan.products[case.product].product.topic
    published = {(m.key or b"").decode(): m.value for m in trial.published.messages if m.topic == topic}
    documents = {key: canonical_json.loads(value) for key, value in published.items() if value is not None}
    letters = _dead_letters(trial, case, topic)
    return (*letters, *_stopped(trial, case), *(f for e in case.expected for f in _compare(e, documents)))


def run_trial(case: Case, plan: Plan, settings: Settings) -> Trial:
    """The trial of a case, at the moment at which the case looks at the documents."""
    trial = Trial(plan=plan, settings=settings, consistent=True, batch_seconds=0)
    trial.batch(case.given)
    trial.finish()
    trial.clock.sleep(MOST_SECONDS)  # of a gate: the documents of the given rows are old
    for records, after in case.changes:
        trial.batch(records)
        trial.background_work()
        if after is None:
            trial.finish()
        else:
            trial.advance(after)
    return trial


def _dead_letters(trial: Trial, case: Case, topic: str) -> Iterator[Failure]:
    """The dead letters of records, and those in place of documents of this topic."""
    for letter in trial.rejects.messages:
        rejected = rejected_record(letter)
        record = rejected.record
        if rejected.code not in OF_DOCUMENTS:
            yield Failure(line=record.timestamp, what=f"the record is a dead letter: {rejected.reason}")
        elif record.topic == topic:
            key = (record.key or b"").decode()
            yield Failure(line=case.line, what=f"the document {key} is a dead letter: {rejected.reason}")


def _stopped(trial: Trial, case: Case) -> Iterator[Failure]:
    if case.product in trial.stopped:
        yield Failure(line=case.line, what=f"the product is stopped: {trial.stopped[case.product]}")


def _compare(expected: ExpectedDocument, documents: Mapping[str, Value]) -> Iterator[Failure]:
    found = documents.get(expected.key)
    wanted = expected.document
    if not expected.whole and isinstance(found, dict):
        found = {name: value for name, value in found.items() if name in wanted}
    if not canonical_json.equal(wanted, found):
        if found is None:
            what = f"there is no document {expected.key}; the published documents are: {', '.join(documents) or 'none'}"
        elif wanted is None:
            what = f"there is a document {expected.key}, but the test expects none"
        else:
            what = f"the document {expected.key} differs"
        yield Failure(line=expected.line, what=what, diff=tuple(_diff(wanted, found)))


def _diff(wanted: Value, found: Value) -> Iterator[str]:
    before, after = (canonical_json.dumps_indented(value).splitlines() for value in (_reorder(wanted, found), found))
    yield from unified_diff(before, after, "expected", "published", lineterm="")


def _reorder(wanted: Value, found: Value) -> Value:
    """The wanted value with its members in the order of the found value, so that a diff shows only differences."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = [*(name for name in found if name in wanted), *(name for name in wanted if name not in found)]
        return {name: _reorder(wanted[name], found.get(name)) for name in names}
    if isinstance(wanted, list) and isinstance(found, list):
        return [*map(_reorder, wanted, found), *wanted[len(found) :]]
    return wanted

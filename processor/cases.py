"""Runs tests of products: rows and changes through the steps, in memory, and what was published against what is expected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from processor.definitions.cases import Case, Expected
from processor.model import canonical_json
from processor.model.change import Value
from processor.model.plan import Plan
from processor.rejects import rejected_record
from processor.settings import Settings
from processor.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What differs: `line` of the expectation, and a diff of the document as lines, `-` expected, `+` published."""

    line: int
    what: str
    diff: tuple[str, ...] = ()


def run_case(case: Case, plan: Plan, settings: Settings) -> tuple[Failure, ...]:
    """Runs one case; no failures: it passed."""
    trial = tried(case, plan, settings)
    topic = plan.products[case.product].product.topic
    published = {(m.key or b"").decode(): m.value for m in trial.published.messages if m.topic == topic}
    documents = {key: canonical_json.loads(value) for key, value in published.items() if value is not None}
    return (*_dead_letters(trial), *_stopped(trial, case), *(f for e in case.expected for f in _compare(e, documents)))


def tried(case: Case, plan: Plan, settings: Settings) -> Trial:
    """A trial after what the case gives."""
    trial = Trial(plan=plan, settings=settings)
    trial.batch(case.given)
    trial.batch(case.changes)
    trial.finish()
    return trial


def _dead_letters(trial: Trial) -> Iterator[Failure]:
    for letter in trial.rejects.messages:
        rejected = rejected_record(letter)
        yield Failure(line=rejected.record.timestamp, what=f"the record is a dead letter: {rejected.reason}")


def _stopped(trial: Trial, case: Case) -> Iterator[Failure]:
    if case.product in trial.owed.stopped:
        yield Failure(line=case.line, what=f"the product is stopped: {trial.owed.stopped[case.product]}")


def _compare(expected: Expected, documents: Mapping[str, Value]) -> Iterator[Failure]:
    found = documents.get(expected.key)
    wanted = expected.document
    if not expected.whole and isinstance(found, dict):
        found = {name: value for name, value in found.items() if name in wanted}
    if not canonical_json.same(wanted, found):
        if found is None:
            what = f"there is no document {expected.key}; published were {', '.join(documents) or 'none'}"
        elif wanted is None:
            what = f"there is a document {expected.key}, and none was expected"
        else:
            what = f"the document {expected.key} differs"
        yield Failure(line=expected.line, what=what, diff=tuple(_diff(wanted, found)))


def _diff(wanted: Value, found: Value) -> Iterator[str]:
    before, after = (canonical_json.pretty(value).splitlines() for value in (_like(wanted, found), found))
    yield from unified_diff(before, after, "expected", "published", lineterm="")


def _like(wanted: Value, found: Value) -> Value:
    """The wanted value with its members in the order of the one found, so that a diff shows only what differs."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = [*(name for name in found if name in wanted), *(name for name in wanted if name not in found)]
        return {name: _like(wanted[name], found.get(name)) for name in names}
    if isinstance(wanted, list) and isinstance(found, list):
        return [*map(_like, wanted, found), *wanted[len(found) :]]
    return wanted

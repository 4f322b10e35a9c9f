"""`statestore test`: the tests beside the products of a directory, in this process and in memory."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from processor.cases import Failure, run_case
from processor.definitions.cases import Case, read_cases
from processor.definitions.load import load, read_directory, read_tests
from processor.errors import StatestoreError
from processor.lockstep import calm_collector
from processor.planning import plan_alone
from processor.settings import read_settings

RED, GREEN, PLAIN = "\033[31m", "\033[32m", "\033[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a case went, and how long it took."""

    case: Case
    failures: tuple[Failure, ...]
    milliseconds: float


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("test", help="run the tests beside products: DIR/tests/*.yaml")
    parser.add_argument("definitions", metavar="DIR", type=Path, help="entities.yaml, products, and tests/")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    calm_collector()
    outcomes = list(_outcomes(options.definitions))
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    if options.json:
        print(json.dumps([_json(outcome) for outcome in outcomes], indent=2))
    else:
        colours = sys.stdout.isatty()
        for outcome in outcomes:
            print("\n".join(_lines(outcome, colours)))
        print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _outcomes(directory: Path) -> Iterator[Outcome]:
    definitions = load(read_directory(directory))
    tests = directory / "tests"
    cases = read_cases(read_tests(directory), definitions) if tests.is_dir() else ()
    if not cases:
        raise StatestoreError(f"there are no tests in {tests}; write {tests / 'PRODUCT.yaml'} (docs/tests.md)")
    settings = read_settings({})
    plan = plan_alone(definitions, settings.slots)
    for case in cases:
        began = perf_counter()
        failures = run_case(case, plan, settings)
        yield Outcome(case=case, failures=failures, milliseconds=(perf_counter() - began) * 1000)


def _lines(outcome: Outcome, colours: bool) -> Iterator[str]:
    case, word = outcome.case, "FAILED" if outcome.failures else "passed"
    yield f"{_coloured(word, word == 'FAILED', colours)} {case.file}:{case.line} {case.name} ({outcome.milliseconds:.1f} ms)"
    for failure in outcome.failures:
        yield f"  {case.file}:{failure.line}: {failure.what}"
        for line in failure.diff[2:]:
            mark = line[:1]
            yield "    " + (_coloured(line, mark == "-", colours) if mark in "+-" else line)


def _coloured(text: str, bad: bool, colours: bool) -> str:
    return f"{RED if bad else GREEN}{text}{PLAIN}" if colours else text


def _json(outcome: Outcome) -> dict[str, object]:
    case = outcome.case
    return {
        "test": case.name,
        "product": case.product,
        "file": case.file,
        "line": case.line,
        "milliseconds": round(outcome.milliseconds, 1),
        "failures": [asdict(failure) for failure in outcome.failures],
    }

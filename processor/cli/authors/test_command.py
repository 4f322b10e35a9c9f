"""`statestore test`: runs the tests of the products in a directory, in this process and in memory."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from processor.cli.printing.colour import coloured
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import Failure, run_case
from processor.environment.settings.settings import read_settings
from processor.errors import StatestoreError
from processor.language.definitions.load import files_below, load_directory, read_tests
from processor.language.definitions.product_tests import Case, read_cases


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a test case. `failures`: empty if it passed; `milliseconds`: how long it took."""

    case: Case
    failures: tuple[Failure, ...]
    milliseconds: float


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("test", help="run the tests of products: DIR/tests/*.yaml")
    parser.add_argument(
        "definitions", metavar="DIR", type=Path, help="directory with entities.yaml, products, and tests/"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    tune_garbage_collector()
    results = list(_results(options.definitions))
    failed = sum(bool(result.failures) for result in results)
    if options.json:
        print(json.dumps([_json(result) for result in results], indent=2))
    else:
        for result in results:
            print("\n".join(_lines(result, options.definitions)))
        print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _results(directory: Path) -> Iterator[CaseResult]:
    definitions = load_directory(directory)
    tests = directory / "tests"
    with files_below(directory):
        cases = read_cases(read_tests(directory), definitions)
    if not cases:
        raise StatestoreError(f"there are no tests in {tests}; write {tests / 'PRODUCT.yaml'} (docs/definitions.md)")
    settings = read_settings({"log_values": True})
    plan = plan_alone(definitions, settings.slots)
    for case in cases:
        began = perf_counter()
        failures = run_case(case, plan, settings)
        yield CaseResult(case=case, failures=failures, milliseconds=(perf_counter() - began) * 1000)


def _lines(result: CaseResult, directory: Path) -> Iterator[str]:
    case, file, word = result.case, directory / result.case.file, "FAILED" if result.failures else "passed"
    word = coloured(word, "red" if result.failures else "green")
    yield f"{word} {file}:{case.line} {case.name} ({result.milliseconds:.1f} ms)"
    for failure in result.failures:
        yield f"  {file}:{failure.line}: {failure.what}"
        for line in failure.diff[2:]:
            mark = line[:1]
            yield "    " + coloured(line, {"-": "red", "+": "green"}.get(mark, ""))


def _json(result: CaseResult) -> dict[str, object]:
    case = result.case
    return {
        "test": case.name,
        "product": case.product,
        "file": case.file,
        "line": case.line,
        "milliseconds": round(result.milliseconds, 1),
        "failures": [asdict(failure) for failure in result.failures],
    }

"""Puts small faults into modules, one at a time, and says which of them no test notices:

    python -m tests.mutation.run --tests tests/unit/engine -- processor/engine/protocol/settle.py statestore/writes.py

A process imports all tests, and runs them once: it notes which lines of the modules each test reaches. Then each fault gets a
process of its own, a fork of the first, which puts the code of the mutated function in place of the old one, and runs the tests
that reach the line until one fails. So a fault costs a tenth of a second. `--seconds` bounds its tests.

It is no library, because mutmut 3.8 mutates no function with a decorator, so no property and nothing with a cache: 33 functions
of the protocol, among them `SettleOutcome.left`, and cosmic-ray starts pytest again for each fault.

Prints the faults that survived and those that no test reaches, and writes a line for each fault into `--to` (JSON). The file
survivors.md has an answer for each of them. `--again` runs the survivors of an earlier run again, perhaps by more tests, and
`--sample 3` each third fault.
"""

import argparse
import ast
import gc
import importlib
import json
import os
import pickle
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutations import Mutation, mutations

TESTS = [f"tests/unit/{room}" for room in ("engine", "statestore")]
SPARE_SECONDS = 2
"""CPU seconds of a fault's tests beyond five times what they took without it: more is an endless loop."""
SURVIVED, FAILED, BROKEN = 0, 1, 2


@dataclass(kw_only=True)
class Reached:
    """Which lines each test reached, and its CPU seconds: by its number among the tests."""

    lines: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)


class MutationRun:
    """The plugin that takes the place of pytest's own loop."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failed = False
        self.again = _survivors(Path(options.again)) if options.again else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        importlib.import_module("botocore.session")  # a fixture of all tests imports it: 0.2 s in each process
        gc.freeze()
        began = time.monotonic()
        reached = _in_a_fork(lambda: self._reached(items))
        print(f"{len(reached.seconds)} of {len(items)} tests pass, {time.monotonic() - began:.0f} s", flush=True)
        by_line: dict[tuple[str, int], set[int]] = defaultdict(set)
        for n, lines in reached.lines.items():
            for line in lines:
                by_line[line].add(n)
        with Path(self.options.to).open("a", encoding="utf-8", buffering=1) as to:
            for path in self.options.modules:
                self._module(path, items, by_line, reached.seconds, to.write)
        return True

    def _reached(self, items: Sequence[pytest.Item]) -> Reached:
        """Runs each test with a trace of the lines of the modules. A value in a cache would hide lines from all but one test."""
        modules = [importlib.import_module(_name(path)) for path in self.options.modules]
        values = [one for module in modules for one in vars(module).values()]
        caches = [one.cache_clear for one in values if hasattr(one, "cache_clear")]
        caches += [one.clear for one in values if type(one) is dict and not one]
        files = {str(module.__file__): path for module, path in zip(modules, self.options.modules, strict=True)}
        reached = Reached()

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            path = files.get(frame.f_code.co_filename)
            if path is None:
                return None
            lines.add((path, frame.f_lineno))
            return trace

        _silence()
        for n, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
            lines: set[tuple[str, int]] = set()
            for clear in caches:
                clear()
            self.failed, began = False, time.process_time()
            sys.settrace(trace)
            runtestprotocol(item, nextitem=following)
            sys.settrace(None)
            if not self.failed:
                reached.lines[n], reached.seconds[n] = lines, time.process_time() - began
        return reached

    def _module(
        self,
        path: str,
        items: Sequence[pytest.Item],
        by_line: dict[tuple[str, int], set[int]],
        seconds: dict[int, float],
        write: Callable[[str], object],
    ) -> None:
        """Runs the faults of one module."""
        began = time.monotonic()
        counts: Counter[str] = Counter()
        running: dict[int, tuple[Mutation, int]] = {}
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        module = importlib.import_module(_name(path))

        def ended(outcome: str, one: Mutation, tests: int) -> None:
            counts[outcome] += 1
            if outcome in ("survived", "not reached"):
                print(f"{path}:{one.lines[0]} {one.function}, {outcome}, {tests} tests: {one.text}", flush=True)
            place = {"path": path, "function": one.function, "line": one.lines[0], "text": one.text}
            write(json.dumps({**place, "outcome": outcome, "tests": tests}) + "\n")

        def wait() -> None:
            pid, status = os.wait()
            one, tests = running.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            ended({SURVIVED: "survived", FAILED: "killed", BROKEN: "killed"}.get(code, "timed out"), one, tests)

        for n, one in enumerate(mutations(tree)):
            if n % self.options.sample or (self.again is not None and (path, one.function, one.text) not in self.again):
                continue
            tests = self._chosen(
                path, set().union(*(by_line.get((path, line), ()) for line in one.lines)), items, seconds
            )
            if not tests:
                ended("not reached", one, 0)
                continue
            limit = SPARE_SECONDS + 5 * sum(seconds[test] for test in tests)
            pid = os.fork()
            if not pid:
                self._try(one, tree, module, [items[test] for test in tests], int(limit))
            running[pid] = one, len(tests)
            if len(running) >= self.options.jobs:
                wait()
        while running:
            wait()
        shown = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        print(f"{path}: {counts.total()} faults, {shown}, {time.monotonic() - began:.0f} s", flush=True)

    def _chosen(
        self, path: str, reaching: set[int], items: Sequence[pytest.Item], seconds: dict[int, float]
    ) -> list[int]:
        """The tests of a fault, in their order: first those of the file that has the name of the module, then those of the same
        room, and the quick ones first. Not those beyond `--seconds`."""
        stem, room = Path(path).stem, Path(path).parent.name

        def order(test: int) -> tuple[bool, bool, float]:
            at = items[test].path
            return at.stem != f"test_{stem}", at.parent.name != room, seconds[test]

        ordered = sorted(reaching, key=order)
        passed = accumulate(seconds[test] for test in ordered)
        return [
            test
            for test, until in zip(ordered, passed, strict=True)
            if until <= self.options.seconds or until == seconds[test]
        ]

    def _try(
        self, one: Mutation, tree: ast.Module, module: ModuleType, items: Sequence[pytest.Item], limit: int
    ) -> None:
        """In a fork: ends the process with the outcome."""
        code = BROKEN
        try:
            _silence()
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            one.apply()
            replace_code(module, one.function, compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"))
            self.failed = False
            for item, following in zip(items, [*items[1:], None], strict=True):
                runtestprotocol(item, nextitem=following)
                if self.failed:
                    break
            code = FAILED if self.failed else SURVIVED
        finally:
            os._exit(code)


def _survivors(outcomes: Path) -> set[tuple[str, str, str]]:
    """The faults in a file of outcomes that no test noticed."""
    found = map(json.loads, outcomes.read_text(encoding="utf-8").splitlines())
    return {
        (one["path"], one["function"], one["text"]) for one in found if one["outcome"] in ("survived", "not reached")
    }


def replace_code(module: ModuleType, name: str, compiled: CodeType) -> None:
    """Puts the code of a function of a compiled module in place of the code that the module has: for all that imported it."""
    value: Any = module
    for part in name.split("."):
        value = vars(value)[part]
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    while not isinstance(value, FunctionType):
        value = value.__wrapped__
    value = getattr(value, "__wrapped__", value)  # of a context manager
    value.__code__ = next(code for code in _codes(compiled) if code.co_qualname == name)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _in_a_fork(make: Callable[[], Reached]) -> Reached:
    """A value that a fork makes, so that this process keeps nothing of how."""
    read, write = os.pipe()
    if not os.fork():
        try:
            with os.fdopen(write, "wb") as to:
                pickle.dump(make(), to)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as from_:
        reached: Reached = pickle.load(from_)
    os.wait()
    return reached


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", help="files, from the root of the checkout")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files and folders of tests without a server")
    parser.add_argument("--again", help="only the faults that survived in this file of an earlier run")
    parser.add_argument("--sample", type=int, default=1, help="only each n-th fault of a module")
    parser.add_argument("--seconds", type=float, default=30, help="CPU seconds of the tests of a fault")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time")
    parser.add_argument("--to", default="build/mutants.jsonl", help="where the outcomes go")
    options = parser.parse_args()
    Path(options.to).parent.mkdir(parents=True, exist_ok=True)
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not rest", *options.tests]
    return int(pytest.main(arguments, plugins=[MutationRun(options)]))


if __name__ == "__main__":
    sys.exit(main())

"""A switch turns a protection off: a context manager that replaces functions of statestore during a run."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

from tests.simulator.spark import Rdd

Switch = Callable[[], AbstractContextManager[None]]


def replacing(*places: tuple[Any, str, Callable[[Any], Any]]) -> Switch:
    """A switch that replaces attributes. For each, a function makes the new value from the old one, again for each run."""

    @contextmanager
    def switch() -> Iterator[None]:
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
        for owner, name, make in places:
            setattr(owner, name, make(vars(owner)[name]))
        try:
            yield
        finally:
            for owner, name, original in before:
                setattr(owner, name, original)

    return switch


def always(value: Any) -> Callable[[Any], Any]:
    """For `replacing`: a function that always returns `value`."""
    return lambda _: lambda *_args, **_kw: value


def with_result(step: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose result `change` changes."""

    def changed(*args: Any, **kw: Any) -> Any:
        return change((yield from step(*args, **kw)))

    return changed


class Stub(NamedTuple):
    """An answer in place of a request, which the step then does not make."""

    value: Any


def with_requests(step: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose requests `change` changes. A request that becomes a `Stub` gets the stub's answer."""

    def changed(*args: Any, **kw: Any) -> Any:
        running = step(*args, **kw)
        answers: Any = None
        while True:
            try:
                requests = next(running) if answers is None else running.send(answers)
            except StopIteration as end:
                return end.value
            changed_requests = [change(request) for request in requests]
            received = iter((yield tuple(r for r in changed_requests if not isinstance(r, Stub))))
            answers = tuple(r.value if isinstance(r, Stub) else next(received) for r in changed_requests)

    return changed


def combine(*switches: Switch) -> Switch:
    """One switch that turns off all that these switches turn off."""

    @contextmanager
    def switch() -> Iterator[None]:
        with ExitStack() as stack:
            for each in switches:
                stack.enter_context(each())
            yield

    return switch


def between_stages(act: Callable[[], None]) -> Switch:
    """A switch that acts between the two stages of each round."""

    def changed(partition_by: Any) -> Any:
        def partition(self: Rdd, *args: Any) -> Any:
            run_first_stage = self.collect

            def run_and_act() -> Any:
                rows = run_first_stage()
                act()
                return rows

            self.collect = run_and_act  # type: ignore[method-assign]
            return partition_by(self, *args)

        return partition

    return replacing((Rdd, "partitionBy", changed))

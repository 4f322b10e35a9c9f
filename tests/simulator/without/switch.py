"""How a protection is taken away: a switch is a context manager that replaces functions of the product for a run."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

Switch = Callable[[], AbstractContextManager[None]]


def replacing(*places: tuple[Any, str, Callable[[Any], Any]]) -> Switch:
    """A switch that replaces attributes by what is made of them; makers are called anew for each run."""

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
    """A function that answers `value`, whatever it is asked."""
    return lambda _: lambda *_args, **_kw: value


def answering(step: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose result is changed."""

    def changed(*args: Any, **kw: Any) -> Any:
        return change((yield from step(*args, **kw)))

    return changed


class Answer(NamedTuple):
    """What stands for a request that is not made."""

    value: Any


def asking(step: Callable[..., Any], ask: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose requests are changed; one that becomes an `Answer` is not made."""

    def changed(*args: Any, **kw: Any) -> Any:
        running = step(*args, **kw)
        answers: Any = None
        while True:
            try:
                requests = next(running) if answers is None else running.send(answers)
            except StopIteration as end:
                return end.value
            asked = [ask(request) for request in requests]
            sent = iter((yield tuple(a for a in asked if not isinstance(a, Answer))))
            answers = tuple(a.value if isinstance(a, Answer) else next(sent) for a in asked)

    return changed


def together(*switches: Switch) -> Switch:
    """Several switches as one."""

    @contextmanager
    def switch() -> Iterator[None]:
        with ExitStack() as stack:
            for one in switches:
                stack.enter_context(one())
            yield

    return switch

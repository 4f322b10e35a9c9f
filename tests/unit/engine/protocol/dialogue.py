"""Dialogues with steps. The test plays the store: it checks each request of a step, and hands the step the answer."""

from collections.abc import Sequence
from pprint import pformat
from typing import Any, TypeVar

from processor.engine.plan.step import Request, Step, WeakKey
from statestore.keys import Key
from statestore.store import Delete, Store, Write

T = TypeVar("T")
Turn = Sequence[tuple[Request, Any]]
"""What a step asks together: each request with its answer."""


def dialogue(step: Step[T], *turns: Turn) -> T:
    """The result of a step that asks exactly these requests, turn by turn, and gets these answers."""
    answers: Any = None
    for number, turn in enumerate(turns, 1):
        expected = tuple(request for request, _ in turn)
        try:
            asked = step.send(answers)
        except StopIteration as end:
            raise AssertionError(
                f"turn {number}: the step ended with\n{pformat(end.value)}\nbefore it asked\n{pformat(expected)}"
            ) from None
        if asked != expected or list(map(type, asked)) != list(map(type, expected)):
            raise AssertionError(f"turn {number}: the step asked\n{pformat(asked)}\ninstead of\n{pformat(expected)}")
        answers = tuple(answer for _, answer in turn)
    try:
        asked = step.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError(f"turn {len(turns) + 1}: the step asked\n{pformat(asked)}\nand should have ended")


def run_step(step: Step[T], store: Store) -> tuple[list[tuple[Any, ...]], T]:
    """What a step asks a store, turn by turn, and its result."""
    asked: list[tuple[Any, ...]] = []
    answers: Any = None
    while True:
        try:
            requests = step.send(answers)
        except StopIteration as end:
            return asked, end.value
        asked.append(requests)
        answers = answers_of(store, requests)


def crash_step(step: Step[Any], store: Store, *, after: int) -> None:
    """Runs a step for this many turns. The store answers the last of them, and the step never gets these answers."""
    answers: Any = None
    for _ in range(after):
        answers = answers_of(store, step.send(answers))


def answers_of(store: Store, requests: Sequence[Request]) -> tuple[Any, ...]:
    """The answers of a store to reads by key, writes and deletes."""
    return tuple(_answer(store, request) for request in requests)


def _answer(store: Store, request: Request) -> Any:
    match request:
        case Write():
            return store.write(request)
        case Delete():
            return store.delete(request)
        case Key():
            return store.get([request]).get(request)
        case WeakKey(key):
            return store.get_weak([key]).get(key)
    raise TypeError(f"this store answers no {type(request).__name__}")

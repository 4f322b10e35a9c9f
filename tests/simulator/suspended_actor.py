"""An actor that the world suspends, and later resumes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, kw_only=True)
class SuspendedActor:
    """An actor that continues later: its function, and the answers that it had. `wake_at`: the earliest time of its next turn.
    `turns_left`: until the world removes it."""

    name: str
    body: Callable[[], Any]
    answers: list[Any]
    wake_at: float = 0.0
    turns_left: int = 10_000
    is_task: bool = False
    is_zombie: bool = True
    result: Any = None
    done: bool = False

"""What is wrong with a directory of definitions: all of it, each problem with its place and its cure."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from processor.errors import StatestoreError


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One thing that is wrong, and what would be right. `line` counts from 1; 0: the file or directory as a whole."""

    file: str
    line: int
    what: str
    cure: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.what}; {self.cure}"


class DefinitionError(StatestoreError):
    """Definitions that are not valid; nothing of them was used. `problems` is sorted by file and line."""

    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class Wrong(Exception):
    """What is wrong with a part of a definition, and its cure; whoever knows the place notes it. `line` counts from 1 in a part
    that has several."""

    def __init__(self, what: str, cure: str, line: int = 1) -> None:
        super().__init__(what)
        self.what, self.cure, self.line = what, cure, line


class Elsewhere(Exception):
    """Something rests on a part of the definitions that has a problem of its own, noted already."""


class Place(Protocol):
    """Where something is written; every YAML node is one."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class Problems:
    """Collects what is wrong, so that an author sees all of it at once."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, place: Place, what: str, cure: str) -> None:
        """Note one problem; the same one is noted once (a YAML alias is read at each use)."""
        problem = Problem(file=place.file, line=place.line, what=what, cure=cure)
        if problem not in self._found:
            self._found.append(problem)

    def raise_if_any(self) -> None:
        """Raises: DefinitionError with everything that was noted."""
        if self._found:
            raise DefinitionError(self._found)


def suggest(name: str, known: Iterable[str], also: Iterable[str] = ()) -> str:
    """The cure for an unknown name: the nearest one, `also` among those; else all that are known."""
    choices = list(known)
    near = get_close_matches(name, [*choices, *also], n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known here: {', '.join(choices)}" if choices else "there is none to choose from"

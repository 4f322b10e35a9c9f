"""Problems of a directory of definitions. An author sees all of them at once, each with its location and its cure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from processor.errors import StatestoreError
from processor.text import nearest


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One mistake. `what`: the mistake and the thing that has it; `cure`: what would be right. `line` counts from 1; line 0 means
    the whole file or directory."""

    file: str
    line: int
    what: str
    cure: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{location}: {self.what}; {self.cure}"


class DefinitionError(StatestoreError):
    """The definitions are not valid, and nothing of them was used. `problems` is sorted by file and line."""

    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class WrongDefinition(Exception):
    """A part of a definition is wrong. A caller that knows the location adds it to `Problems`. `line` counts from 1 within a part
    of several lines."""

    def __init__(self, what: str, cure: str, line: int = 1) -> None:
        super().__init__(what)
        self.what, self.cure, self.line = what, cure, line


class AlreadyReported(Exception):
    """A part of a definition depends on another part, whose own problem is in `Problems` already."""


class Location(Protocol):
    """The file and line where an author wrote something. Every YAML node is a location."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class Problems:
    """Collects problems, so that an author sees all of them at once. `stored`: a registry has these definitions already, so an
    earlier version took them; a refusal that is newer does not count."""

    def __init__(self, *, stored: bool = False) -> None:
        self.stored = stored
        self._found: dict[Problem, None] = {}
        self._added = 0

    def __len__(self) -> int:
        """How often a problem was added, also one that was there: what has it is wrong each time."""
        return self._added

    @property
    def first(self) -> str:
        """What the first problem is."""
        return next(iter(self._found)).what

    def add(self, location: Location, what: str, cure: str) -> None:
        """Add a problem, unless it is there already: readers read a YAML alias again at each use."""
        self._added += 1
        self._found[Problem(file=location.file, line=location.line, what=what, cure=cure)] = None

    def raise_if_any(self) -> None:
        """Raises: DefinitionError with all the problems."""
        if self._found:
            raise DefinitionError(self._found)


def suggest(name: str, known: Iterable[str], also: Iterable[str] = ()) -> str:
    """The cure for an unknown name: the nearest name of `known` and `also`; without a near one, all names of `known`."""
    choices = list(known)
    if near := nearest(name, [*choices, *also]):
        return f"did you mean '{near}'?"
    return f"write one of: {', '.join(choices)}" if choices else "define one first"

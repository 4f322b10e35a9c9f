"""Who is an operator among the people of a console: those whom the person who starts it names, alone or by a group. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

READER: Final = "reader"
OPERATOR: Final = "operator"
GROUP: Final = "group:"


@dataclass(frozen=True, slots=True)
class OperatorNames:
    """The operators: names of people, and `group:NAME` for a group. Everybody else is a reader: the proxy or a token let them in,
    and the least role that works is enough to look."""

    names: frozenset[str] = frozenset()

    def name_groups(self) -> bool:
        """Whether a group is among them."""
        return any(name.startswith(GROUP) for name in self.names)

    def role_of(self, name: str, groups: Iterable[str] = ()) -> str:
        """The role of a person of these groups."""
        stated = {f"{GROUP}{group.strip()}" for group in groups}
        if not name.startswith(GROUP):
            stated.add(name)
        return READER if self.names.isdisjoint(stated) else OPERATOR


def read_operators(text: str, separator: str = ",") -> OperatorNames:
    """The operators in a list. `separator`: of its names."""
    return OperatorNames(frozenset(name.strip() for name in text.split(separator) if name.strip()))

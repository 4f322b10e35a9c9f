"""The people who reach the console: who sends a request, and with which role of the registry. It is the user of this process, the
person of a token, or the person whom a proxy names. The person who starts the console names the operators.
"""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from starlette.datastructures import Headers
from starlette.types import Scope

from processor.errors import SettingError
from processor.tools.web.guard import read_credentials
from processor.tools.web.problem import LookUpProblem

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


LEAST_TOKEN: Final = 16
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class PersonTokens:
    """The names of people by the SHA-256 of their tokens."""

    names: Mapping[bytes, str]

    def name_of(self, token: str) -> str:
        """The person of a token; empty for nobody. Compares it with every token, each in constant time."""
        shown, found = _hash(token), ""
        for kept, name in self.names.items():
            if hmac.compare_digest(kept, shown):
                found = name
        return found


def read_tokens(text: str, place: str) -> PersonTokens:
    """The tokens in a text from this place. Raises SettingError, which names a line and no token."""
    names: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, token = (part.strip() for part in line.partition("="))
        if not name or len(token) < LEAST_TOKEN:
            raise SettingError(
                f"--tokens: line {number} of {place} is not NAME=TOKEN, with a random token of {LEAST_TOKEN} characters or more"
            )
        if _hash(token) in names:
            raise SettingError(
                f"--tokens: line {number} of {place} has the token of another line: give each person a token"
            )
        names[_hash(token)] = name
    if not names:
        raise SettingError(f"--tokens: {place} is empty: write a line NAME=TOKEN for each person")
    return PersonTokens(names)


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


MOST_NAME: Final = 100
"""Characters of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPerson:
    """A person. `role`: of the registry, as which the console works for the person; None for that of its connection."""

    name: str
    role: str | None = None


class PersonRules(Protocol):
    """How the console knows the person of a request."""

    def refuses(self, scope: Scope) -> LookUpProblem | None:
        """The problem of a request of nobody."""

    def person(self, scope: Scope) -> KnownPerson:
        """The person of a request that `refuses` lets through."""


@dataclass(frozen=True, slots=True)
class OwnUser:
    """The user of this process, whose browser is on this machine."""

    name: str

    def refuses(self, _: Scope) -> LookUpProblem | None:
        """Refuses nobody: the guard takes only requests of this machine."""
        return None

    def person(self, _: Scope) -> KnownPerson:
        """Always the user."""
        return KnownPerson(name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPeople:
    """People with a token each. The token alone says who a person is: another name with it counts for nothing."""

    tokens: PersonTokens
    operators: OperatorNames

    def refuses(self, scope: Scope) -> LookUpProblem | None:
        """The problem of a request without a token of somebody."""
        if self._name(scope):
            return None
        return LookUpProblem(
            401, "the request needs your token: `Authorization: Bearer TOKEN`, or as the password of a user"
        )

    def person(self, scope: Scope) -> KnownPerson:
        """The person of the token."""
        name = self._name(scope)
        return KnownPerson(name=name, role=self.operators.role_of(name))

    def _name(self, scope: Scope) -> str:
        return self.tokens.name_of(read_credentials(Headers(scope=scope).get("authorization", "")).token)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPeople:
    """People whom the proxy at `address` has signed in. `header`: has the name; `group_header`: the groups, or is empty.
    `separator`: of the groups. A name that has it would count as several groups, such as `cn=ops,ou=people` with a comma."""

    address: str
    header: str
    group_header: str
    operators: OperatorNames
    separator: str = ","

    def refuses(self, scope: Scope) -> LookUpProblem | None:
        """The problem of a request that does not come from the proxy, or without a name."""
        if (scope.get("client") or ("",))[0] != self.address:
            return LookUpProblem(
                403, f"only the proxy at {self.address} may ask this console: open the proxy's address"
            )
        if not self._name(scope):
            return LookUpProblem(401, f"the proxy states no name in the header {self.header}: sign in there")
        return None

    def person(self, scope: Scope) -> KnownPerson:
        """The person of the header."""
        name = self._name(scope)
        lists = Headers(scope=scope).getlist(self.group_header) if self.group_header else []
        groups = [group for one in lists for group in one.split(self.separator)]
        return KnownPerson(name=name, role=self.operators.role_of(name, groups))

    def _name(self, scope: Scope) -> str:
        return Headers(scope=scope).get(self.header, "").strip()[:MOST_NAME]

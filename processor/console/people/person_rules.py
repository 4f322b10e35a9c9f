"""Who sends a request to the console, and with which role of the registry: the user of this process, the person of a token, or
the person whom a proxy names."""

from dataclasses import dataclass
from typing import Final, Protocol

from starlette.datastructures import Headers
from starlette.types import Scope

from processor.console.people.operator_names import OperatorNames
from processor.console.people.person_tokens import PersonTokens
from processor.serve.guard import read_credentials
from processor.serve.problem import LookUpProblem

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

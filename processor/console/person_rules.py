"""Who sends a request to the console: the user of this process, the name with the token, or the name that a proxy states."""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from processor.errors import SettingError
from processor.serve.credentials import read_credentials
from processor.serve.problem import LookUpProblem

MOST_NAME = 100
"""Characters of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRules:
    """How the console learns a person's name. `own`: of the user of this process, whose browser is on this machine; `token`:
    whether requests show one; `header`: in which `proxy`, the address of a proxy that has proved who the person is, states the
    name."""

    own: str
    token: bool = False
    header: str = ""
    proxy: str = ""

    def __post_init__(self) -> None:
        if bool(self.header) != bool(self.proxy):
            raise SettingError("--identity-header and --proxy go together: nobody else than the proxy may state a name")

    def refuses(self, scope: Scope) -> LookUpProblem | None:
        """The problem of a request that does not come from the proxy, or without a name."""
        if not self.proxy:
            return None
        if (scope.get("client") or ("",))[0] != self.proxy:
            return LookUpProblem(403, f"only the proxy at {self.proxy} may ask this console: open the proxy's address")
        if not self.name_of(scope):
            return LookUpProblem(401, f"the proxy states no name in the header {self.header}: sign in there")
        return None

    def name_of(self, scope: Scope) -> str:
        """The name; empty where the request states none."""
        headers = Headers(scope=scope)
        if self.proxy:
            return headers.get(self.header, "").strip()[:MOST_NAME]
        if self.token:
            return read_credentials(headers.get("authorization", "")).name.strip()[:MOST_NAME]
        return self.own

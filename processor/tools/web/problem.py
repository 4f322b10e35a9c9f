"""An answer that is an error: problem details as RFC 9457 has them, without a traceback and without a secret."""

from typing import Any

from processor.errors import Outage, PlanError, StatestoreError
from registry.errors import RegistryError
from statestore.errors import StoreError


class LookUpProblem(StatestoreError):
    """A request without the answer that it asks for. `status`: of HTTP; `more`: members of the problem details."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.more = status, more


def problem_of(error: Exception) -> LookUpProblem:
    """The problem of an error. An unexpected error keeps its message to itself: it may show a value."""
    match error:
        case LookUpProblem():
            return error
        case RegistryError() | StoreError() | Outage():
            cure = "start the part again, or wait; this server goes on by itself"
            return LookUpProblem(503, f"{error}; {cure}")
        case PlanError():
            return LookUpProblem(503, str(error))
        case StatestoreError():
            return LookUpProblem(400, str(error))
    return LookUpProblem(500, f"unexpected {type(error).__name__}: please report it")

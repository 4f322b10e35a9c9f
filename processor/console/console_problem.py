"""The problem of an error in the console: with the status of HTTP, and without a traceback or a secret. Pure."""

from processor.serve.problem import LookUpProblem, problem_of
from registry.errors import RegistryBusy, RegistryError, RegistryMissing, RegistryUnreachable, RoleNotGranted


def console_problem(error: Exception) -> LookUpProblem:
    """The problem. A refused edit is a conflict, and an edit beyond the rights of the database's role is forbidden."""
    match error:
        case RegistryMissing():
            return LookUpProblem(503, f"{error}; then open this page again")
        case RoleNotGranted():
            return LookUpProblem(503, str(error))
        case RegistryUnreachable() | RegistryBusy():
            return problem_of(error)
        case RegistryError() if "permission denied" in str(error):
            return LookUpProblem(403, f"the database refused the edit to your role, and nothing was changed: {error}")
        case RegistryError():
            return LookUpProblem(409, str(error))
    return problem_of(error)

"""The answer of HTTP to a problem."""

from http import HTTPStatus

import orjson
from starlette.responses import Response

from processor.serve.problem import LookUpProblem


def problem_answer(problem: LookUpProblem) -> Response:
    """The problem as RFC 9457 has it."""
    title = HTTPStatus(problem.status).phrase
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": str(problem), **problem.more}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "1"}}
    return Response(
        orjson.dumps(body), problem.status, headers.get(problem.status), media_type="application/problem+json"
    )

"""The answer of HTTP to a problem."""

from http import HTTPStatus
from typing import Final

import orjson
from starlette.responses import Response

from processor.serve.problem import LookUpProblem

HEADERS_OF: Final = {
    401: {"WWW-Authenticate": 'Bearer, Basic realm="statestore", charset="UTF-8"'},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}
"""The headers that go with a status."""


def problem_answer(problem: LookUpProblem) -> Response:
    """The problem as RFC 9457 has it."""
    title = HTTPStatus(problem.status).phrase
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": str(problem), **problem.more}
    return Response(
        orjson.dumps(body), problem.status, HEADERS_OF.get(problem.status), media_type="application/problem+json"
    )

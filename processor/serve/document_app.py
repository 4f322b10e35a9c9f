"""The application of `statestore serve`: its paths, and the answers to them."""

from collections.abc import Awaitable, Callable
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from processor.records import canonical_json
from processor.serve.guard import Guard, GuardRules
from processor.serve.openapi import openapi
from processor.serve.problem import LookUpProblem, problem_of
from processor.serve.problem_answer import problem_answer
from processor.serve.state_reader import StateReader

Answer = Callable[[Request], Response]
_WAITS = "a newer state waits at the gate of the product"
_DIFFERS = "a newer state waits, or the product publishes Avro"


def document_app(reader: StateReader, rules: GuardRules) -> Guard:
    """The application over a reader, behind the rules."""
    answers: dict[str, Answer] = {
        "/health": lambda _: _json({"registry": reader.plan().version}),
        "/products": lambda _: _json(reader.products()),
        "/products/{product}/schema": lambda request: _json(reader.schema(_part(request, "product"))),
        "/openapi.json": lambda _: _json(openapi(reader.plan())),
        "/documents/{product}/{key:path}": lambda request: _document(reader, request),
        "/rows/{entity}/{key:path}": lambda request: _json(reader.row(_part(request, "entity"), _part(request, "key"))),
    }
    app = Starlette(routes=[Route(path, _endpoint(answer), methods=["GET"]) for path, answer in answers.items()])
    app.router.redirect_slashes = False  # it leads to the Host of the request, and a key may end with a slash
    app.add_exception_handler(HTTPException, _http_problem)
    return Guard(app, rules)


def _endpoint(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """Answers in a thread, since stores block. Every error is a problem."""

    async def endpoint(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except Exception as error:
            return problem_answer(problem_of(error))

    return endpoint


def _document(reader: StateReader, request: Request) -> Response:
    product, key = _part(request, "product"), _part(request, "key")
    form = request.query_params.get("as", "now")
    if form not in ("now", "published"):
        raise LookUpProblem(400, f"there is no `as={form}`: use as=now or as=published")
    found = reader.document(product, key)
    if form == "published" and not found.published:
        raise LookUpProblem(
            409,
            f"the state differs from the published document: {_WAITS if found.waits else _DIFFERS}; the topic has the published "
            "document",
            sequence=found.sequence,
        )
    etag = f'"{found.digest}"'
    headers = {
        "ETag": etag,
        "Statestore-Sequence": str(found.sequence),
        "Statestore-Published": str(found.published).lower(),
        "Statestore-Waits": str(found.waits).lower(),
    } | ({} if found.age is None else {"Statestore-Age": str(found.age)})
    if _matches(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    return Response(found.value, headers=headers, media_type="application/json")


def _part(request: Request, name: str) -> str:
    """A part of the path without its escapes. Raises LookUpProblem for one that is not UTF-8."""
    written = request.path_params[name]
    try:
        return unquote_to_bytes(written).decode()
    except UnicodeDecodeError:
        raise LookUpProblem(400, f"the {name} {written} is not UTF-8 in the escapes of a URL") from None


def _matches(header: str, etag: str) -> bool:
    given = [one.strip().removeprefix("W/") for one in header.split(",")]
    return "*" in given or etag in given


def _json(value: object) -> Response:
    return Response(canonical_json.dumps(value), media_type="application/json")


async def _http_problem(_: Request, error: Exception) -> Response:
    """A path that there is not, or another method than GET and HEAD."""
    assert isinstance(error, HTTPException)
    answer = problem_answer(LookUpProblem(error.status_code, error.detail))
    answer.headers.update(error.headers or {})
    return answer

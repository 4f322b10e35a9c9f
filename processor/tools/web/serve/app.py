"""The application of `statestore serve`: its paths, the answers to them, and their description in OpenAPI 3.1."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from processor.engine.plan.plan import Plan
from processor.environment.settings.settings import statestore_version
from processor.language.product.document_type import document_schema
from processor.tools.web.answers import LookUpProblem, problem_of
from processor.tools.web.serve.reader import StateReader
from processor.tools.web.server import Guard, GuardRules, guarded, json_answer, problem_answer, route_problem

Answer = Callable[[Request], Response]
_WAITS = "a newer state waits at the gate of the product"
_DIFFERS = "a newer state waits, or the product publishes Avro"


def _endpoint(answer: Answer) -> Answer:
    """Starlette answers in a thread, since stores block. Every error is a problem."""

    def endpoint(request: Request) -> Response:
        try:
            return answer(request)
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


async def _refuse(_: Request, error: Exception) -> Response:
    answer = problem_answer(route_problem(error))
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


_OBJECT: Mapping[str, Any] = {"type": "object"}


class LookUp(NamedTuple):
    """A path with its answer in JSON."""

    path: str
    """In OpenAPI's form."""
    summary: str
    answer: Callable[..., object]
    """Gets the reader, and the parts of the path."""
    schema: Mapping[str, Any] = _OBJECT
    parts: tuple[str, ...] = ()


LOOK_UPS = (
    LookUp("/health", "Whether the registry answers", lambda reader: {"registry": reader.plan().version}),
    LookUp("/products", "The products", StateReader.products, {"type": "array", "items": _OBJECT}),
    LookUp("/products/{product}/schema", "The JSON Schema of a product", StateReader.schema, _OBJECT, ("product",)),
    LookUp(
        "/rows/{entity}/{key}",
        "A stored row, also the marker of a deleted one",
        StateReader.row,
        _OBJECT,
        ("entity", "key"),
    ),
)


def document_app(reader: StateReader, rules: GuardRules) -> Guard:
    """The application over a reader, behind the rules."""
    answers: dict[str, Answer] = {one.path: partial(_answer, reader, one) for one in LOOK_UPS}
    answers["/openapi.json"] = lambda _: json_answer(openapi(reader.plan()))
    answers["/documents/{product}/{key}"] = partial(_document, reader)
    # a key may have a slash
    routes = [Route(p.replace("{key}", "{key:path}"), _endpoint(one), methods=["GET"]) for p, one in answers.items()]
    return guarded(routes, rules, _refuse)


def _answer(reader: StateReader, look_up: LookUp, request: Request) -> Response:
    return json_answer(look_up.answer(reader, *(_part(request, name) for name in look_up.parts)))


PUBLISHED = (
    "`published`: only the document that the topic of the product has. The table keeps its hash and its sequence, not its text, "
    "so the server compares the hash of the present document. If they differ, a newer state waits for its publication, and the "
    "answer is 409: the topic has the published text. Only for products in JSON."
)
AGE = (
    "Seconds: the document shows each change that Kafka had this long ago, by the last report of the job. There is no such "
    "header without a report, or where the job does not see the ends of the topics."
)
_TEXT = {"type": "string"}
_PROBLEM = {"$ref": "#/components/responses/Problem"}


def openapi(plan: Plan) -> dict[str, Any]:
    """The description for this version of the registry."""
    paths: dict[str, Any] = {one.path: _path(one.summary, one.schema, *one.parts) for one in LOOK_UPS}
    schemas: dict[str, Any] = {}
    for name, planned in sorted(plan.products.items()):
        schemas[name] = document_schema(planned.product, plan.declared_entities)
        paths[f"/documents/{name}/{{key}}"] = _document_path(name)
    return {
        "openapi": "3.1.0",
        "info": {"title": "statestore", "version": f"{statestore_version()}+registry.{plan.version}"},
        "security": [{}, {"token": []}],  # an operator may ask for a token
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "Problem details (RFC 9457)",
                    "content": {"application/problem+json": {"schema": {"type": "object"}}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(summary: str, schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    ok = {"description": summary, "content": {"application/json": {"schema": schema}}}
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
    return {"get": {"summary": summary, "parameters": parameters, "responses": {"200": ok, "default": _PROBLEM}}}


def _document_path(name: str) -> dict[str, Any]:
    found = _path(f"A document of {name}", {"$ref": f"#/components/schemas/{name}"}, "key")
    get = found["get"]
    get["description"] = f"A document of {name}, assembled from the state as it is now."
    form = {"type": "string", "enum": ["now", "published"], "default": "now"}
    get["parameters"].append({"name": "as", "in": "query", "schema": form, "description": PUBLISHED})
    get["parameters"].append({"name": "If-None-Match", "in": "header", "schema": _TEXT})
    get["responses"]["200"]["headers"] = {
        "ETag": {"schema": _TEXT},
        "Statestore-Sequence": {"schema": {"type": "integer"}, "description": "of the last message of this key"},
        "Statestore-Published": {
            "schema": {"type": "boolean"},
            "description": "whether that message has this document",
        },
        "Statestore-Waits": {
            "schema": {"type": "boolean"},
            "description": "whether this document waits at the gate of its product (`publish`)",
        },
        "Statestore-Age": {"schema": {"type": "integer"}, "description": AGE},
    }
    get["responses"]["304"] = {"description": "The document has the ETag of If-None-Match"}
    return found

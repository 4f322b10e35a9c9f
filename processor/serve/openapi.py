"""The OpenAPI 3.1 description of the server, from the definitions: a path for each product, with its schema."""

from typing import Any

from processor.plan.plan import Plan
from processor.product.document_type import document_schema
from processor.settings.installed_release import statestore_version

PUBLISHED = (
    "`published`: only the document that the topic of the product has. The table keeps its hash and its sequence, not its text, "
    "so the server compares the hash of the present document. If they differ, a newer state waits for its publication, and the "
    "answer is 409: the topic has the published text. Only for products in JSON."
)
AGE = (
    "Seconds: the document shows each change that Kafka had so long ago, by the last report of the job. There is no such header "
    "without a report, or where the job does not see the ends of the topics."
)
_TEXT = {"type": "string"}
_PROBLEM = {"$ref": "#/components/responses/Problem"}


def openapi(plan: Plan) -> dict[str, Any]:
    """The description for this version of the registry."""
    paths: dict[str, Any] = {
        "/health": _get("Whether the registry answers", {"type": "object"}),
        "/products": _get("The products", {"type": "array", "items": {"type": "object"}}),
        "/products/{product}/schema": _get("The JSON Schema of a product", {"type": "object"}, "product"),
        "/rows/{entity}/{key}": _get(
            "A stored row, also the marker of a deleted one", {"type": "object"}, "entity", "key"
        ),
    }
    schemas: dict[str, Any] = {}
    for name, planned in sorted(plan.products.items()):
        schemas[name] = document_schema(planned.product, plan.declared_entities)
        paths[f"/documents/{name}/{{key}}"] = _document(name)
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


def _get(summary: str, schema: dict[str, Any], *names: str) -> dict[str, Any]:
    ok = {"description": summary, "content": {"application/json": {"schema": schema}}}
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
    return {"get": {"summary": summary, "parameters": parameters, "responses": {"200": ok, "default": _PROBLEM}}}


def _document(name: str) -> dict[str, Any]:
    found = _get(f"A document of {name}", {"$ref": f"#/components/schemas/{name}"}, "key")
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

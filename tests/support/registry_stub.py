"""A schema registry that answers over HTTP: the requests of the API that readers and writers send. Counts them. It takes any
schema of the writers, and knows no compatibility: a test says what it refuses."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Schema = dict[str, Any]


class RegistryStub:
    """`schemas`: id -> its schema, as the registry answers; `subjects`: (subject, version) -> id. `user`: the `user:password`
    that it wants. `fails`: the status of its next answers. `refuses`: subject -> the status and the message of its answer to
    a new schema. `compiled`: id -> the compiled text of a Protobuf schema."""

    def __init__(self) -> None:
        self.schemas: dict[int, Schema] = {}
        self.subjects: dict[tuple[str, int], int] = {}
        self.compiled: dict[int, str] = {}
        self.requests: list[str] = []
        self.user: str | None = None
        self.fails: list[int] = []
        self.refuses: dict[str, tuple[int, str]] = {}
        self.url = ""
        self.waits: threading.Event | None = None

    def add(self, schema: Any, kind: str = "AVRO", references: Any = (), compiled: str = "", subject: str = "") -> int:
        """Registers a schema, and returns its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": text, "schemaType": kind, "references": list(references)}
        self.subjects[subject or f"subject-{number}", 1] = number
        if compiled:
            self.compiled[number] = compiled
        return number

    def answer(self, path: str, query: dict[str, list[str]], authorization: str | None) -> tuple[int, Any]:
        """The status and the body of a GET request."""
        if failure := self._failure(authorization):
            return failure
        form = query.get("format", [""])[0]
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case ["schemas", "ids", number]:
                return self._schema(int(number), form, 40403, f"Schema {number} not found")
            case ["subjects"]:
                return 200, sorted({name for name, _ in self.subjects})
            case ["subjects", subject, "versions", version]:
                if version == "latest":
                    version = str(max((n for name, n in self.subjects if name == subject), default=0))
                number_ = self.subjects.get((subject, int(version)), 0)
                return self._schema(number_, form, 40401, f"Subject '{subject}' not found.", subject, int(version))
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def take(self, path: str, body: Schema, authorization: str | None) -> tuple[int, Any]:
        """The status and the body of a POST request: the id of a schema under a subject, or a new id."""
        if failure := self._failure(authorization):
            return failure
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["subjects", subject, *rest]:
                versions = {version: id_ for (name, version), id_ in self.subjects.items() if name == subject}
                known = {self.schemas[id_]["schema"]: (version, id_) for version, id_ in versions.items()}
                if body["schema"] in known:
                    version, id_ = known[body["schema"]]
                    return 200, {"subject": subject, "version": version, "id": id_, "schema": body["schema"]}
                if not rest:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                if subject in self.refuses:
                    status, message = self.refuses[subject]
                    return status, {"error_code": status, "message": message}
                number = self.add(body["schema"])
                self.subjects[subject, len(versions) + 1] = number
                return 200, {"id": number}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _failure(self, authorization: str | None) -> tuple[int, Any] | None:
        wanted = None if self.user is None else f"Basic {base64.b64encode(self.user.encode()).decode()}"
        if authorization != wanted:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if self.fails:
            return self.fails.pop(0), {"error_code": 50001, "message": "the backend store is down"}
        return None

    def _schema(
        self, number: int, form: str, code: int, missing: str, subject: str = "", version: int = 0
    ) -> tuple[int, Any]:
        if number not in self.schemas:
            return 404, {"error_code": code, "message": missing}
        schema = dict(self.schemas[number])
        if form == "serialized" and number in self.compiled:
            schema["schema"] = self.compiled[number]
        if subject:
            schema |= {"subject": subject, "version": version, "id": number}
        return 200, schema


@contextmanager
def registry_stub(tls: ssl.SSLContext | None = None) -> Iterator[RegistryStub]:
    """A stub that listens on this machine until the block ends; with `tls`, by HTTPS."""
    stub = RegistryStub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._waited()
            parts = urlsplit(self.path)
            self._send(*stub.answer(parts.path, parse_qs(parts.query), self.headers.get("Authorization")))

        def do_POST(self) -> None:
            self._waited()
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*stub.take(urlsplit(self.path).path, content, self.headers.get("Authorization")))

        def _waited(self) -> None:
            stub.requests.append(self.path)
            if stub.waits is not None:
                stub.waits.wait(300)

        def _send(self, status: int, body: Any) -> None:
            text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        if stub.waits is not None:
            stub.waits.set()
        server.shutdown()
        server.server_close()
        thread.join()

"""Schema registries that answer over HTTP: the requests that readers and writers send, by Confluent's API, and by Apicurio's own.
A stub notes its requests. The stub of Confluent's API takes each schema of a writer, and does not check its compatibility: a test
says which subjects it refuses."""

import base64
import json
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Schema = dict[str, Any]


class HttpStub(ABC):
    """A registry of any kind. `user`: the `user:password` that a client must send; `fails`: the status of the next answers;
    `waits`: the stub sends no answer before this event."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.user: str | None = None
        self.fails: list[int] = []
        self.url = ""
        self.waits: threading.Event | None = None

    @abstractmethod
    def answer(self, path: str, query: dict[str, list[str]], authorization: str | None) -> tuple[Any, ...]:
        """The status and the body of a GET request, perhaps with headers."""

    def take(self, path: str, body: Schema, authorization: str | None) -> tuple[Any, ...]:
        """The status and the body of a POST request."""
        return 405, {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}

    def _failure(self, authorization: str | None) -> tuple[int, Any] | None:
        wanted = None if self.user is None else f"Basic {base64.b64encode(self.user.encode()).decode()}"
        if authorization != wanted:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if self.fails:
            return self.fails.pop(0), {"error_code": 50001, "message": "the backend store is down"}
        return None


class ApicurioStub(HttpStub):
    """Apicurio's API, version 2 or 3. `artifacts`: global id -> (content id, name, kind, text, references).

    Version 2, and answers by content id, do not say the kind of a schema."""

    def __init__(self, version: int = 3) -> None:
        super().__init__()
        self.version = version
        self.artifacts: dict[int, tuple[int, str, str, str, list[Schema]]] = {}

    def add(self, text: str, kind: str, name: str, references: Sequence[str] = ()) -> int:
        """Registers a schema, and returns its global id. Its content id is 100 more."""
        number = len(self.artifacts) + 1
        named = [{"groupId": None, "artifactId": one, "version": "1", "name": one} for one in references]
        self.artifacts[number] = (number + 100, name, kind, text, named)
        return number

    def answer(self, path: str, query: dict[str, list[str]], authorization: str | None) -> tuple[Any, ...]:
        """The status and the body of a GET request, perhaps with headers."""
        if failure := self._failure(authorization):
            return failure
        root, _, inner = path.partition(f"/apis/registry/v{self.version}/")
        if root or not inner:
            return 404, "<html>no such page</html>"
        kind_header = query.get("returnArtifactType") == ["true"] and self.version == 3
        match [unquote(part) for part in inner.split("/")]:
            case ["ids", ("globalIds" | "contentIds") as ids, number, *rest]:
                found = self._find(ids, int(number))
                kind_header = kind_header and ids == "globalIds"
            case ["groups", "default", "artifacts", name, "versions", "1", *rest] if (
                rest != ["content"] or self.version == 3
            ):
                found = [one for one in self.artifacts.values() if one[1] == name]
            case ["search", "artifacts"]:
                by = next((name for name in ("globalId", "contentId") if name in query), "")
                found = self._find(f"{by}s", int(query[by][0])) if by else list(self.artifacts.values())
                member = "artifactType" if self.version == 3 else "type"
                return 200, {"count": len(found), "artifacts": [{member: one[2]} for one in found]}
            case _:
                return 404, "<html>no such page</html>"
        if not found:
            return 404, {"error_code": 404, "name": "ContentNotFoundException", "message": "No content"}
        if rest == ["references"]:
            return 200, found[0][4]
        return 200, found[0][3], {"X-Registry-ArtifactType": found[0][2]} if kind_header else {}

    def _find(self, ids: str, number: int) -> list[tuple[int, str, str, str, list[Schema]]]:
        if ids == "globalIds":
            return [self.artifacts[number]] if number in self.artifacts else []
        return [one for one in self.artifacts.values() if one[0] == number]


class RegistryStub(HttpStub):
    """`schemas`: id -> its schema, as the registry answers; `subjects`: (subject, version) -> id. `refuses`: subject -> the
    status and the message of its answer to a new schema. `compiled`: id -> the compiled text of a Protobuf schema."""

    def __init__(self) -> None:
        super().__init__()
        self.schemas: dict[int, Schema] = {}
        self.subjects: dict[tuple[str, int], int] = {}
        self.compiled: dict[int, str] = {}
        self.refuses: dict[str, tuple[int, str]] = {}

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
    """A stub of Confluent's API that listens on this machine until the block ends; with `tls`, by HTTPS."""
    with listening(stub := RegistryStub(), tls):
        yield stub


@contextmanager
def listening(stub: HttpStub, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """The stub listens on this machine until the block ends; with `tls`, by HTTPS."""

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

        def _send(self, status: int, body: Any, headers: Mapping[str, str] = MappingProxyType({})) -> None:
            text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            for name, value in headers.items():
                self.send_header(name, value)
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
        yield
    finally:
        if stub.waits is not None:
            stub.waits.set()
        server.shutdown()
        server.server_close()
        thread.join()

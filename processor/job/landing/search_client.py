"""Sends requests to an OpenSearch or an Elasticsearch, by the HTTP interface that both have. The doorway to urllib3.

The official clients each refuse the other's server, and repeat no refused part of a bulk request; urllib3 comes with botocore.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson
import urllib3
from urllib3.exceptions import HTTPError, SSLError

from processor.job.landing.target import LandingError, TargetAway

TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
BULK_BYTES: Final = 5 * 1024 * 1024
"""The largest bulk request. Small machines of Amazon OpenSearch Service take at most 10 MiB."""
TOO_LARGE, CONFLICT, BAD_VALUE, NOT_FOUND = 413, 409, 400, 404
_DONE: Final = (200, 201)
_BLOCKED: Final = "cluster_block_exception"
"""An index that takes no writes now: its disk is full, or an operator closed it."""


class IndexWrite(NamedTuple):
    """A write of a bulk request. `version`: an older one never replaces a newer one. `source`: the stored text; None deletes."""

    id: str
    version: int
    source: bytes | None

    @property
    def lines(self) -> bytes:
        """The write as lines of a bulk request."""
        verb = "delete" if self.source is None else "index"
        head = {verb: {"_id": self.id, "version": self.version, "version_type": "external_gte"}}
        return orjson.dumps(head) + b"\n" + (b"" if self.source is None else self.source + b"\n")


class IndexAnswer(NamedTuple):
    """The answer to a write. `status`: as HTTP has it. `reason`: of a refusal."""

    status: int
    reason: str = ""


class SearchClient:
    """A client of the server at `url` (`https://user:password@host:9200`). Raises LandingError for any other address."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
            host = f"{name}:{parts.port}" if parts.port else name
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise ValueError
        except ValueError:  # the message of urlsplit may hold the password
            raise LandingError(
                "--to is no address of OpenSearch: give https://user@host:9200, or postgresql://... for Postgres"
            ) from None
        self.hostname: Final = parts.hostname
        self.host: Final = f"{host}{parts.path.rstrip('/')}"
        self._base = f"{parts.scheme}://{self.host}"
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
        self._pool = urllib3.PoolManager(
            headers=urllib3.make_headers(keep_alive=True, basic_auth=login), timeout=TIMEOUT, retries=False
        )

    def find(self, path: str) -> bytes | None:
        """The answer to a GET; None where there is no such thing."""
        status, data = self._exchange("GET", path, None)
        return None if status == NOT_FOUND else self._checked(status, data)

    def send(self, method: str, path: str, value: Mapping[str, Any] | None = None) -> bytes:
        """The answer to a request with a JSON value."""
        return self._checked(*self._exchange(method, path, None if value is None else orjson.dumps(value)))

    def bulk(self, alias: str, writes: Sequence[IndexWrite]) -> list[IndexAnswer]:
        """Sends the writes, in requests of at most BULK_BYTES. Returns an answer for each. Raises TargetAway where the server
        takes some of them only later, LandingError where it refuses all of them."""
        answers: list[IndexAnswer] = []
        portion: list[IndexWrite] = []
        size = 0
        for write in writes:
            if portion and size + len(write.source or b"") > BULK_BYTES:
                answers += self._portion(alias, portion)
                portion, size = [], 0
            portion.append(write)
            size += len(write.source or b"")
        return answers + (self._portion(alias, portion) if portion else [])

    def close(self) -> None:
        self._pool.clear()

    def _portion(self, alias: str, writes: Sequence[IndexWrite]) -> list[IndexAnswer]:
        """Sends one request, or each half alone where a server in between takes no request of this size."""
        body = b"".join(write.lines for write in writes)
        path = f"/{alias}/_bulk?require_alias=true&filter_path=items.*.status,items.*.error"
        status, data = self._exchange("POST", path, body, "application/x-ndjson")
        if status == TOO_LARGE and len(writes) == 1:
            return [IndexAnswer(BAD_VALUE, f"the server takes no request of {len(body):,} bytes")]
        if status == TOO_LARGE:
            middle = len(writes) // 2
            return [*self._portion(alias, writes[:middle]), *self._portion(alias, writes[middle:])]
        items = orjson.loads(self._checked(status, data)).get("items", [])
        return [self._answer(alias, next(iter(item.values()))) for item in items]

    def _answer(self, alias: str, item: Mapping[str, Any]) -> IndexAnswer:
        status, error = int(item["status"]), item.get("error")
        if error is None or status in (CONFLICT, BAD_VALUE):
            return IndexAnswer(status, "" if error is None else _reason(error))
        if status == NOT_FOUND:
            raise LandingError(
                f"{alias} at {self.host} is gone: readers have an index of a later version, or somebody deleted this one"
            )
        raise self._failure(status, error)

    def _exchange(
        self, method: str, path: str, body: bytes | None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        headers = {**self._pool.headers, "Content-Type": kind} if body is not None else None
        try:
            reply = self._pool.request(method, self._base + path, body=body, headers=headers)
        except SSLError as error:
            cure = "give a certificate that this machine trusts (SSL_CERT_FILE)"
            raise LandingError(f"{self.host} cannot be trusted: {_words(error)}; {cure}") from error
        except HTTPError as error:
            raise self._away(_words(error)) from error
        return reply.status, reply.data

    def _checked(self, status: int, data: bytes) -> bytes:
        if status in _DONE:
            return data
        try:
            error = orjson.loads(data)["error"]
        except (orjson.JSONDecodeError, KeyError, TypeError):  # a server in between answers as it likes
            error = " ".join(data.decode(errors="replace").split())[:200] or "no reason given"
        raise self._failure(status, error)

    def _failure(self, status: int, error: Any) -> TargetAway | LandingError:
        kind = error.get("type") if isinstance(error, Mapping) else None
        if status == 429 or status >= 500 or kind == _BLOCKED:
            return self._away(f"{status}: {_reason(error)}")
        return LandingError(f"{self.host} refuses the landing: {status}: {_reason(error)}")

    def _away(self, why: str) -> TargetAway:
        cure = "start that OpenSearch, or make room in it, or correct --to; nothing is lost"
        return TargetAway(f"{self.host} takes no documents: {why}", part="target", cure=cure)


def _reason(error: Any) -> str:
    """The reason in an error, with its cause."""
    if not isinstance(error, Mapping):
        return str(error)
    cause = error.get("caused_by")
    return f"{error.get('type')}: {error.get('reason')}" + (f" ({_reason(cause)})" if cause else "")


def _words(error: Exception) -> str:
    return " ".join(str(error).split())

"""The lean client: sends UpdateItem, DeleteItem, BatchGetItem, Query and Scan itself, for less than a tenth of boto3's CPU.

Promises: a request is tried as often as `Patience` says. Three failures have a cure. After the cure the client repeats the
request without a pause, and does not count this attempt: a connection that the server closed between two requests, and, once
for each request, credentials that expired and a clock that differs from the server's. Threads may share a client, and so may
processes after a fork. Raises the errors that botocore raises, so that callers handle both clients alike.

`Signer` signs the requests (AWS Signature Version 4) for one endpoint. It makes the same signature as botocore's signer (tests
compare them), over the same headers, and keeps the signing key, which is the same for a day.

boto3 finds region, endpoint, credentials, certificates and proxy where AWS keeps them, and makes tables. The setting
`client = "boto3"` sends the requests of live work through it, too. Its retries and time-outs are those of `Patience`, since
botocore is changing its defaults. An answer that is cut short or corrupt is an error. A `BotoClient` does not share its
connections with a forked process.
"""

import hmac
import json
import os
import time
from base64 import b64encode
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from hashlib import sha256
from random import Random
from threading import Lock
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote
from zlib import crc32

import boto3
import botocore.session
import orjson
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
)
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from statestore.dynamodb.connections import Connections, Endpoint, HttpAnswer, StaleConnection
from statestore.dynamodb.requests import ClientCall
from statestore.dynamodb.retries import Patience, RequestCounts, error_code, is_throttle


class BotoClient:
    """A client of boto3. `api`: its methods; `endpoint`, `region` and `credentials`: as it found them. `counts`: of its
    attempts and throttles. Raises ValueError for an address that is no URL, NoRegionError without a region."""

    def __init__(self, endpoint_url: str | None, region: str | None, patience: Patience, counts: RequestCounts) -> None:
        session = botocore.session.get_session()
        self.api = boto3.session.Session(botocore_session=session).client(
            "dynamodb", endpoint_url=endpoint_url, region_name=region, config=_config(patience)
        )
        self.credentials = Credentials(session)
        self.region = str(self.api.meta.region_name)
        certificates = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE", True)
        url = str(self.api.meta.endpoint_url)
        self.endpoint = Endpoint(url=url, proxy=_proxy(url), certificates=get_cert_path(certificates))
        self._methods = {
            "UpdateItem": self.api.update_item,
            "DeleteItem": self.api.delete_item,
            "BatchGetItem": self.api.batch_get_item,
            "Query": self.api.query,
            "Scan": self.api.scan,
        }

        def count_attempt(event_name: str, **_: Any) -> None:
            """The result is None, so that botocore continues the request."""
            counts.attempt(event_name.rsplit(".", 1)[-1])

        def count_throttle(event_name: str, response: tuple[Any, Mapping[str, Any]] | None, **_: Any) -> None:
            """The result is None, so that botocore decides itself whether to try again."""
            operation = event_name.rsplit(".", 1)[-1]
            if response is not None and "Error" in response[1] and is_throttle(ClientError(response[1], operation)):
                counts.throttle(operation)

        self.api.meta.events.register("before-send.dynamodb", count_attempt)
        self.api.meta.events.register("needs-retry.dynamodb", count_throttle)
        self.api.meta.events.register("after-call.dynamodb", _check_body)

    def send(self, operation: str, request: ClientCall) -> Mapping[str, Any]:
        """Sends one request. Raises the errors of botocore."""
        answer: Mapping[str, Any] = self._methods[operation](**request)
        return answer

    def close(self) -> None:
        """Closes the connections."""
        self.api.close()


def open_s3(endpoint_url: str | None, region: str | None, patience: Patience) -> Any:
    """boto3's client of S3. `endpoint_url`: of a server that has DynamoDB and S3 at one address, such as moto."""
    style = Config(s3={"addressing_style": "path"} if endpoint_url else {})
    session = boto3.session.Session(botocore_session=botocore.session.get_session())
    return session.client("s3", endpoint_url=endpoint_url, region_name=region, config=_config(patience).merge(style))


class Credentials:
    """The credentials of a session, in all their forms. botocore renews those that name their end before they end."""

    def __init__(self, session: botocore.session.Session) -> None:
        self._session, self._lock = session, Lock()

    def now(self) -> ReadOnlyCredentials:
        """The credentials for a request. Raises NoCredentialsError, CredentialRetrievalError."""
        return self._found().get_frozen_credentials()

    def source(self) -> str:
        """Where botocore found them, such as `env` or `iam-role`. Raises NoCredentialsError, CredentialRetrievalError."""
        return str(self._found().method)

    def renew(self, refused: ReadOnlyCredentials) -> bool:
        """Finds the credentials again, as at a start, if DynamoDB refused these. Returns whether there are others now."""
        with self._lock:
            if self.now() == refused:
                self._session = botocore.session.get_session()
            return bool(self.now() != refused)

    def _found(self) -> Any:
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return found


def _config(patience: Patience) -> Config:
    return Config(
        retries={"mode": "standard", "total_max_attempts": patience.attempts},
        connect_timeout=patience.connect_s,
        read_timeout=patience.read_s,
        max_pool_connections=patience.connections,
        parameter_validation=False,  # tests compare requests whole; a check here costs 8 % of a write
        tcp_keepalive=True,
        user_agent_extra="statestore",  # as the lean client's: AWS shows it in CloudTrail
    )


def _proxy(url: str) -> str | None:
    """The URL of the proxy that the environment names for `url`."""
    proxy = get_environ_proxies(url).get(url.partition(":")[0])
    return "http://" + proxy.removeprefix("//") if proxy and "://" not in proxy else proxy or None


def _check_body(http_response: Any, **_: Any) -> None:
    """botocore calls this with the last answer of a request. It would take an answer that every attempt cuts short for an empty
    one."""
    body, headers = http_response.content, http_response.headers
    expected, checksum = headers.get("Content-Length"), headers.get("x-amz-crc32")
    if expected is not None and len(body) != int(expected):
        raise IncompleteReadError(actual_bytes=len(body), expected_bytes=expected)
    if checksum is not None and crc32(body) != int(checksum):
        raise ChecksumError(checksum_type="crc32", expected_checksum=int(checksum), actual_checksum=crc32(body))


CONTENT_TYPE = "application/x-amz-json-1.0"
TARGET = "DynamoDB_20120810"
"""DynamoDB's name and version in `X-Amz-Target`."""
_ALGORITHM = "AWS4-HMAC-SHA256"


class FrozenCredentials(Protocol):
    """Credentials at one moment, as botocore gives them. `token` None: credentials of a user, not of a role."""

    access_key: str
    secret_key: str
    token: str | None


class _SigningKey(NamedTuple):
    secret_key: str
    day: str
    key: bytes


class Signer:
    """Signs POST requests to one path of one host. `host`: as in the header `Host`. `path`: as in the URL."""

    def __init__(self, *, host: str, path: str, region: str) -> None:
        self._before = f"POST\n{quote(path, safe='/~')}\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:"
        self._region = region
        self._key = _SigningKey("", "", b"")

    def headers(self, operation: str, body: bytes, credentials: FrozenCredentials, moment: str) -> str:
        """The header lines, signature included, of a request at `moment` (`20261122T080000Z`). Each ends with CR LF."""
        target, token = f"{TARGET}.{operation}", credentials.token
        session = f"x-amz-security-token:{token}\n" if token else ""
        session_header = f"X-Amz-Security-Token: {token}\r\n" if token else ""
        names = f"content-type;host;x-amz-date;{'x-amz-security-token;' if token else ''}x-amz-target"
        request = f"{self._before}{moment}\n{session}x-amz-target:{target}\n\n{names}\n{sha256(body).hexdigest()}"
        scope = f"{moment[:8]}/{self._region}/dynamodb/aws4_request"
        signed = f"{_ALGORITHM}\n{moment}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(credentials.secret_key, moment[:8]), signed.encode(), "sha256").hex()
        return (
            f"Content-Type: {CONTENT_TYPE}\r\nX-Amz-Date: {moment}\r\nX-Amz-Target: {target}\r\n"
            f"{session_header}Authorization: {_ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}\r\n"
        )

    def _signing_key(self, secret_key: str, day: str) -> bytes:
        kept = self._key
        if (kept.secret_key, kept.day) != (secret_key, day):
            key = f"AWS4{secret_key}".encode()
            for part in (day, self._region, "dynamodb", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            kept = self._key = _SigningKey(secret_key, day, key)
        return kept.key


_EXPIRED = {"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException"}
_SKEWED = {"InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"}
_SKEW = 240.0
"""The greatest difference of two clocks, in seconds. AWS refuses signatures that are 5 minutes old."""


class LeanClient:
    """A client of the endpoint that boto3 found, with its credentials. `counts`: of its attempts and throttles."""

    def __init__(self, boto3: BotoClient, patience: Patience, random: Random, counts: RequestCounts) -> None:
        endpoint = boto3.endpoint
        self._connections = Connections(endpoint, patience)
        self._signer = Signer(host=endpoint.host, path=endpoint.path, region=boto3.region)
        self._head = f"{endpoint.head}Accept-Encoding: identity\r\nUser-Agent: statestore\r\n"
        self._credentials, self._patience, self._random, self._counts = boto3.credentials, patience, random, counts
        self._clock = _Clock()

    def send(self, operation: str, request: ClientCall) -> Mapping[str, Any]:
        """Sends one request. Raises the errors of botocore."""
        body, seal, began = _encode(request), self._seal(), time.monotonic()
        try:
            return self._attempt(operation, body, seal)
        except (ClientError, BotoCoreError) as error:
            return self._try_again(operation, body, seal, error, began)

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    def _seal(self) -> "_Seal":
        return _Seal(self._credentials.now(), self._clock.ahead)

    def _attempt(self, operation: str, body: bytes, seal: "_Seal") -> Mapping[str, Any]:
        signed = self._signer.headers(operation, body, seal.credentials, self._clock.moment(seal.ahead))
        head = f"{self._head}{signed}Content-Length: {len(body)}\r\n\r\n"
        self._counts.attempt(operation)
        answer = self._connections.exchange(head.encode() + body)
        if answer.status != 200:
            raise _client_error(operation, answer)
        try:
            found: Mapping[str, Any] = orjson.loads(answer.body)
        except ValueError as error:
            raise HTTPClientError(error=f"the answer is not JSON: {error}") from error
        return found

    def _try_again(
        self, operation: str, body: bytes, seal: "_Seal", error: ClientError | BotoCoreError, began: float
    ) -> Mapping[str, Any]:
        attempts, cured = 1, set[str]()
        while True:
            if is_throttle(error):
                self._counts.throttle(operation)
            if isinstance(error, StaleConnection):
                self._connections.close()  # the server closed the others, too
            elif (cure := self._cure(error, seal)) is not None and cure not in cured:
                cured.add(cure)
            elif self._patience.tries_again(attempts, began, error):
                time.sleep(self._patience.pause(attempts, self._random, error))
                attempts += 1
            else:
                raise error
            seal = self._seal()
            try:
                return self._attempt(operation, body, seal)
            except (ClientError, BotoCoreError) as next_error:
                error = next_error

    def _cure(self, error: ClientError | BotoCoreError, seal: "_Seal") -> str | None:
        """Removes the cause of a failure, if the client can. Returns the name of the cure."""
        code = error_code(error) if isinstance(error, ClientError) else None
        if code in _EXPIRED and self._credentials.renew(seal.credentials):
            return "new credentials"
        if code in _SKEWED and self._clock.follow(_date(error), seal.ahead):
            return "server's clock"
        return None


class _Seal(NamedTuple):
    """What an attempt is signed with. ahead: how far the server's clock is ahead of the machine's, in seconds."""

    credentials: FrozenCredentials
    ahead: float


class _Clock:
    """The time of signatures: the machine's, until the server refuses it. Then `ahead` corrects it."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._last = (0, "")

    def moment(self, ahead: float) -> str:
        """The time now, for example `20261122T080000Z`."""
        second, text = self._last
        now = int(time.time() + ahead)
        if now != second:
            text = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            self._last = now, text
        return text

    def follow(self, date: str, ahead: float) -> bool:
        """Takes the time of a server's header `Date`, if an attempt with this `ahead` was far from it. Returns whether it was."""
        try:
            found = parsedate_to_datetime(date).timestamp() - time.time()
        except ValueError:
            return False
        if abs(found - ahead) <= _SKEW:
            return False
        self.ahead = found
        return True


def _encode(request: ClientCall) -> bytes:
    try:
        return orjson.dumps(request, default=_base64)
    except TypeError:  # half a surrogate pair, which DynamoDB refuses with a reason
        return json.dumps(request, default=_base64).encode()


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _client_error(operation: str, answer: HttpAnswer) -> ClientError:
    """The error of an answer, with the fields that botocore gives it."""
    try:
        body = orjson.loads(answer.body)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    code = str(body.get("__type", answer.status)).rsplit("#", 1)[-1].partition(":")[0]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers.items()}
    return ClientError(
        {
            **body,
            "Error": {"Code": code, "Message": body.get("message", body.get("Message", ""))},
            "ResponseMetadata": {"HTTPStatusCode": answer.status, "HTTPHeaders": headers},
        },
        operation,
    )


def _date(error: ClientError | BotoCoreError) -> str:
    return str(error.response["ResponseMetadata"]["HTTPHeaders"].get("date", ""))

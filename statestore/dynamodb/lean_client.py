"""The lean client: sends UpdateItem, DeleteItem, BatchGetItem and Query itself, for less than a tenth of boto3's CPU.

Promises: a request is tried as often as `Patience` says. Three failures have a cure. After the cure the client repeats the
request without a pause, and does not count this attempt: a connection that the server closed between two requests, and, once
for each request, credentials that expired and a clock that differs from the server's. Threads may share a client, and so may
processes after a fork. Raises the errors that botocore raises, so that callers handle both clients alike.
"""

import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any

import orjson
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from statestore.dynamodb.boto_client import Credentials
from statestore.dynamodb.connections import Connections, StaleConnection
from statestore.dynamodb.endpoint import Endpoint
from statestore.dynamodb.http_answer import HttpAnswer
from statestore.dynamodb.retries import Patience, error_code, may_pass
from statestore.dynamodb.signer import FrozenCredentials, Signer
from statestore.requests import ClientCall

_EXPIRED = {"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException"}
_SKEWED = {"InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"}
_SKEW = 240.0
"""Seconds by which two clocks may differ. AWS refuses signatures that are 5 minutes old."""


class LeanClient:
    """A client of one endpoint. `count` is called with the name of the operation before each attempt."""

    def __init__(
        self,
        endpoint: Endpoint,
        region: str,
        credentials: Credentials,
        patience: Patience,
        random: Random,
        count: Callable[[str], None],
    ) -> None:
        self._connections = Connections(endpoint, patience)
        self._signer = Signer(host=endpoint.host, path=endpoint.path, region=region)
        self._head = f"{endpoint.head}Accept-Encoding: identity\r\nUser-Agent: statestore\r\n"
        self._credentials, self._patience, self._random, self._count = credentials, patience, random, count
        self._clock = _Clock()

    def send(self, operation: str, request: ClientCall) -> Mapping[str, Any]:
        """Sends one request. Raises the errors of botocore."""
        body = _encode(request)
        credentials = self._credentials.now()
        try:
            return self._attempt(operation, body, credentials)
        except (ClientError, BotoCoreError) as error:
            return self._try_again(operation, body, credentials, error)

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    def _attempt(self, operation: str, body: bytes, credentials: FrozenCredentials) -> Mapping[str, Any]:
        signed = self._signer.headers(operation, body, credentials, self._clock.now())
        head = f"{self._head}{signed}Content-Length: {len(body)}\r\n\r\n"
        self._count(operation)
        answer = self._connections.exchange(head.encode() + body)
        if answer.status != 200:
            raise _client_error(operation, answer)
        try:
            found: Mapping[str, Any] = orjson.loads(answer.body)
        except ValueError as error:
            raise HTTPClientError(error=f"the answer is not JSON: {error}") from error
        return found

    def _try_again(
        self, operation: str, body: bytes, credentials: FrozenCredentials, error: ClientError | BotoCoreError
    ) -> Mapping[str, Any]:
        attempts, cured = 1, set()
        while True:
            if isinstance(error, StaleConnection):
                self._connections.close()  # the server closed the others, too
            elif (cure := self._cure(error, credentials)) is not None and cure not in cured:
                cured.add(cure)
            elif attempts < self._patience.attempts and may_pass(error):
                time.sleep(self._patience.pause(attempts, self._random, error))
                attempts += 1
            else:
                raise error
            credentials = self._credentials.now()
            try:
                return self._attempt(operation, body, credentials)
            except (ClientError, BotoCoreError) as next_error:
                error = next_error

    def _cure(self, error: ClientError | BotoCoreError, credentials: FrozenCredentials) -> str | None:
        """Removes the cause of a failure, if the client can. Returns the name of the cure."""
        if isinstance(error, ClientError) and error_code(error) in _EXPIRED and self._credentials.renew(credentials):
            return "new credentials"
        if isinstance(error, ClientError) and error_code(error) in _SKEWED and self._clock.follow(_date(error)):
            return "server's clock"
        return None


class _Clock:
    """The time that requests are signed with: the machine's, until the server refuses it."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._second, self._text = 0, ""

    def now(self) -> str:
        """For example `20261122T080000Z`."""
        second = int(time.time() + self._ahead)
        if second != self._second:
            self._text = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            self._second = second
        return self._text

    def follow(self, date: str) -> bool:
        """Takes the time of a server's header `Date`. Returns whether it differs much from the time until now."""
        try:
            ahead = parsedate_to_datetime(date).timestamp() - time.time()
        except ValueError:
            return False
        differs = abs(ahead - self._ahead) > _SKEW
        if differs:
            self._ahead = ahead
        return differs


def _encode(request: ClientCall) -> bytes:
    try:
        return orjson.dumps(request)
    except TypeError:  # half a surrogate pair, which DynamoDB refuses with a reason
        return json.dumps(request).encode()


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


def _date(error: ClientError) -> str:
    return str(error.response["ResponseMetadata"]["HTTPHeaders"].get("date", ""))

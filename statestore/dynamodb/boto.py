"""boto3: finds region, endpoint, credentials, certificates and proxy where AWS keeps them, and makes tables. The setting
`client = "boto3"` sends the requests of live work through it, too.

Promises: retries and time-outs are those of `Patience`, since botocore is changing its defaults. An answer that is cut short or
corrupt is an error. Does not: share its connections with a forked process.
"""

import os
from collections.abc import Mapping
from threading import Lock
from typing import Any
from zlib import crc32

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ChecksumError, ClientError, IncompleteReadError, NoCredentialsError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from statestore.dynamodb.connections import Endpoint
from statestore.dynamodb.requests import ClientCall
from statestore.dynamodb.retries import Patience, RequestCounts, is_throttle


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

"""Signs the requests of the lean client: AWS Signature Version 4, for one endpoint and the service dynamodb.

Promises: the same signature as botocore's signer (tests compare them), over the same headers. Keeps the signing key, which is
the same for a day. Does not: sign other services, query strings, or more headers than DynamoDB needs.
"""

import hmac
from hashlib import sha256
from typing import NamedTuple, Protocol
from urllib.parse import quote

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
    """Signs POST requests to one path of one host. `host`: as the header `Host` has it. `path`: as in the URL."""

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

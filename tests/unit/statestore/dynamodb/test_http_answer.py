"""Answers as servers and proxies send them, in one piece or byte by byte."""

from io import BufferedReader, BytesIO, RawIOBase
from typing import Any

import pytest
from botocore.exceptions import ChecksumError, IncompleteReadError

from statestore.dynamodb.connections import HttpAnswer, read_answer


class Trickle(RawIOBase):
    """Gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        byte = self._data.read(1)
        buffer[: len(byte)] = byte
        return len(byte)


def read(data: bytes) -> HttpAnswer:
    return read_answer(BufferedReader(Trickle(data)))


def test_an_answer_with_a_length_leaves_the_next_answer_alone() -> None:
    one = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nX-Amz-CRC32: 2745614147\r\n\r\n{}"
    stream = BufferedReader(Trickle(one + one))

    for _ in range(2):
        assert read_answer(stream) == HttpAnswer(
            400, {b"content-length": b"2", b"x-amz-crc32": b"2745614147"}, b"{}", True
        )
    with pytest.raises(ConnectionResetError):
        read_answer(stream)


def test_chunks_are_joined() -> None:
    answer = read(
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n0002;x=y\r\n":\r\n2\r\n1}\r\n0\r\nt: u\r\n\r\n'
    )
    assert (answer.body, answer.reusable) == (b'{"a":1}', True)


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\n\r\n", False),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),
    ],
)
def test_a_connection_is_used_again_if_the_server_keeps_it(head: bytes, reusable: bool) -> None:
    assert read(head).reusable is reusable


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    assert read(b"HTTP/1.1 200 OK\r\n\r\nall of it").body == b"all of it"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", IncompleteReadError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", IncompleteReadError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}", IncompleteReadError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", ValueError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-amz-crc32: 1\r\n\r\n{}", ChecksumError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", ValueError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ValueError),
        (b"\x00\r\n", ValueError),
    ],
)
def test_a_broken_answer_is_an_error(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(data)

"""Reads and writes recorded topics: files of lines, plain, `.gz` or `.zst`. `-` is standard input or output.

The reader holds one line at a time, and refuses one that no record needs. A line is the JSON of one Kafka record:

    {"topic": "user", "partition": 0, "offset": 17, "timestamp": 1420070400000, "key": {"id": 1}, "value": {"id": 1}}

`key` and `value` have four forms: JSON (the record gets its compact bytes), a string (the record gets its text), null, or
base64 in `key_base64` and `value_base64`. A line without `key` makes a record without a key. Every line has a value; null is a
tombstone. Defaults: `partition` 0, `offset` one above the highest so far in that partition, `timestamp` the line's number,
no `headers`. A header is text, null or {"base64": ...}. If a name occurs twice, `headers` is a list of [name, value]. The
reader ignores other members.

Promise: the reader makes the same record, byte for byte, from a line of `to_line`. This module does not interpret keys and
values.
"""

import base64
import binascii
import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

import zstandard

from processor.errors import StatestoreError
from processor.values import canonical_json
from processor.values.reasons import describe_value
from processor.values.record import MAX_MESSAGE_BYTES, Record, Rejected

NO_TIMESTAMP: Final = -1
"""Kafka's value for a record without a timestamp."""


def read_record(line: Any, number: int, highest: dict[tuple[str, int], int], untimed: int | None = None) -> Record:
    """The record of a line. `number`: the line's number. `highest`: the highest offset of each partition so far; this function
    updates it. `untimed`: the timestamp of a line that names none; None for the line's number.

    Raises ValueError, with the cure, for a line that holds no record.
    """
    if not isinstance(line, dict):
        raise ValueError('not an object: expected {"topic": ..., "key": ..., "value": ...}')
    topic = line.get("topic")
    if not isinstance(topic, str) or not topic:
        raise ValueError('no topic: add "topic": "name"')
    if "value" not in line and "value_base64" not in line:
        raise ValueError('no value: add "value", null for a tombstone, or "value_base64"')
    partition = _read_integer(line, "partition", 0)
    record = Record(
        topic=topic,
        partition=partition,
        offset=_read_integer(line, "offset", highest.get((topic, partition), -1) + 1),
        epoch=_read_integer(line, "epoch", 0),
        timestamp=_read_integer(line, "timestamp", number if untimed is None else untimed, lowest=NO_TIMESTAMP),
        key=_read_bytes(line, "key"),
        value=_read_bytes(line, "value"),
        headers=_read_headers(line.get("headers")),
    )
    highest[topic, partition] = max(highest.get((topic, partition), -1), record.offset)
    return record


def to_line(record: Record) -> str:
    """The line that holds the record, without a line end."""
    return canonical_json.dumps(_members(record))


def to_reject_line(rejected: Rejected, **more: str) -> str:
    """The line that holds a dead letter: its record, then `epoch`, `code` and `reason`, then the members of `more`. A cut dead
    letter has `cut`, `size` and `sha256` too."""
    facts: dict[str, Any] = {"epoch": rejected.record.epoch, "code": rejected.code, "reason": rejected.reason}
    if rejected.cut is not None:
        facts |= {"cut": rejected.cut.parts, "size": rejected.cut.size, "sha256": rejected.cut.sha256}
    return canonical_json.dumps(_members(rejected.record) | facts | more)


def _read_integer(line: dict[str, Any], name: str, default: int, *, lowest: int = 0) -> int:
    value = line.get(name)
    if value is None:
        return default
    if type(value) is not int or not lowest <= value < 2**63:
        raise ValueError(f"{name} is {describe_value(value)}: write an integer from {lowest}, or leave it out")
    return value


def _read_bytes(line: dict[str, Any], name: str) -> bytes | None:
    encoded = f"{name}_base64"
    if encoded in line:
        if name in line:
            raise ValueError(f"both {name} and {encoded}: keep one of them")
        return _from_base64(encoded, line[encoded])
    value = line.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else canonical_json.encode(value)


def _from_base64(name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ValueError(f"{name} is not base64: write the bytes with the alphabet A-Z a-z 0-9 + / and padding")


def _read_headers(value: Any) -> tuple[tuple[str, bytes | None], ...]:
    pairs = list(value.items()) if isinstance(value, dict) else [] if value is None else value
    if not isinstance(pairs, list):
        raise ValueError('headers is not an object: write {"name": "text"}')
    return tuple(_read_header(pair) for pair in pairs)


def _read_header(pair: Any) -> tuple[str, bytes | None]:
    match pair:
        case (str(name), None):
            return name, None
        case (str(name), str(text)):
            return name, text.encode()
        case (str(name), {"base64": encoded}):
            return name, _from_base64(f"header {name!r}", encoded)
    raise ValueError('a header is not text: write {"name": "text"}')


def _members(record: Record) -> dict[str, Any]:
    members: dict[str, Any] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    members |= {
        "timestamp": record.timestamp,
        **_bytes_member("key", record.key),
        **_bytes_member("value", record.value),
    }
    if record.headers:
        pairs = [(name, _header_value(data)) for name, data in record.headers]
        named = dict(pairs)
        members["headers"] = named if len(named) == len(pairs) else [list(pair) for pair in pairs]
    return members


def _bytes_member(name: str, data: bytes | None) -> dict[str, Any]:
    """The bytes as JSON if the JSON gives the same bytes again, else as text, else as base64."""
    if data is None:
        return {name: None}
    try:
        value = canonical_json.loads(data)
        if value is not None and not isinstance(value, str) and canonical_json.encode(value) == data:
            return {name: value}
    except ValueError:
        pass
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _header_value(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


MAX_LINE_BYTES: Final = 2 * MAX_MESSAGE_BYTES
"""A message of 8 MiB fits into such a line, also as base64."""

_READ_ERRORS: Final = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class RecordedError(StatestoreError):
    """A recorded topic cannot be read. The message names the file, the line and the cure."""


def read_records(path: str, untimed: int | None = None) -> Iterator[Record]:
    """The records of a file, in its order, without blank lines. `untimed`: as in `read_record`. Raises RecordedError at a line
    that holds no record."""
    highest: dict[tuple[str, int], int] = {}
    for number, line in enumerate(_raw_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = read_record(canonical_json.loads_typed(line), number, highest, untimed)
        except ValueError as error:
            raise RecordedError(f"{path}:{number}: {_several_lines(line) or error}") from None
        yield record


def _several_lines(line: bytes) -> str:
    """The problem of a line that begins a JSON array, or an object over several lines; empty for any other line."""
    if line.lstrip().startswith(b"["):
        return "this begins a JSON array: write one record a line, as `jq -c '.[]' FILE` does"
    return "this begins an object of several lines: write one record a line, as `jq -c . FILE` does" * (
        line.strip() == b"{"
    )


@contextmanager
def open_writer(path: str) -> Iterator[TextIO]:
    """A text file for lines, compressed by its suffix. The caller ends each line with \\n. Raises RecordedError if the file
    cannot be written."""
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with (
            open(path, "wb") as raw,
            _compressor(path, raw) as binary,
            io.TextIOWrapper(binary, "utf-8", newline="\n") as text,
        ):
            yield text
    except (OSError, zstandard.ZstdError) as error:
        raise _unwritable(path, error) from error


def check_writable(path: str) -> None:
    """Raises RecordedError if `open_writer` cannot write the file, without a change of the file."""
    if path == "-":
        return
    target, folder = Path(path), Path(path).parent
    if target.is_dir():
        raise _unwritable(path, OSError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if not folder.is_dir():
        raise _unwritable(path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise _unwritable(path, OSError(errno.EACCES, os.strerror(errno.EACCES)))


def _unwritable(path: str, error: Exception) -> RecordedError:
    cause = getattr(error, "strerror", None) or str(error)
    return RecordedError(f"{path}: cannot be written: {cause}; give a file in a directory that exists and is writable")


def _raw_lines(path: str) -> Iterator[bytes]:
    try:
        if path == "-":
            yield from _bounded(path, sys.stdin.buffer)
            return
        with open(path, "rb") as raw, _decompressor(path, raw) as lines:
            yield from _bounded(path, lines)
    except _READ_ERRORS as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise RecordedError(f"{path}: cannot be read: {cause}; expected JSON lines, plain, .gz or .zst") from error


def _bounded(path: str, file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. Raises RecordedError at a line that is too long, before it reads the rest of the line."""
    number = 1
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            what = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB, and a record has {MAX_MESSAGE_BYTES >> 20} MiB at most"
            raise RecordedError(f"{path}:{number}: {what}: write one record a line")
        yield line
        number += 1


def _decompressor(path: str, raw: BinaryIO) -> BinaryIO:
    if path.endswith(".gz"):
        return cast(BinaryIO, gzip.open(raw))
    if path.endswith(".zst"):
        stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return cast(BinaryIO, io.BufferedReader(stream))
    return raw


def _compressor(path: str, raw: BinaryIO) -> BinaryIO:
    if path.endswith(".gz"):
        return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
    if path.endswith(".zst"):
        return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(raw))
    return raw

"""Reads and writes recorded topics: files of lines (`recorded_line`), plain, `.gz` or `.zst`. `-` is standard input or output.

The reader holds one line at a time, and refuses one that no record needs.
"""

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import zstandard

from processor.errors import StatestoreError
from processor.values import canonical_json
from processor.values.message import MAX_MESSAGE_BYTES
from processor.values.record import Record
from processor.values.recorded_line import read_record

MAX_LINE_BYTES: Final = 2 * MAX_MESSAGE_BYTES
"""A message of 8 MiB fits into such a line, also as base64."""

_READ_ERRORS: Final = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class RecordedError(StatestoreError):
    """A recorded topic cannot be read. The message names the file, the line and the cure."""


def read_records(path: str) -> Iterator[Record]:
    """The records of a file, in its order, without blank lines. Raises RecordedError at a line that holds no record."""
    highest: dict[tuple[str, int], int] = {}
    for number, line in enumerate(_raw_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = read_record(canonical_json.loads_typed(line), number, highest)
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

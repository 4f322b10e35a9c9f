"""The reader of recorded topics fills defaults, and reads written records back byte for byte."""

import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from processor.values.record import MAX_MESSAGE_BYTES, Record, Rejected
from processor.values.recorded_topics import (
    MAX_LINE_BYTES,
    NO_TIMESTAMP,
    RecordedError,
    open_writer,
    read_records,
    to_line,
    to_reject_line,
)

Read = Callable[..., list[Record]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(*lines: str | bytes) -> list[Record]:
        path = tmp_path / "topics.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
        return list(read_records(str(path)))

    return of


def test_missing_members_get_their_defaults(read: Read) -> None:
    records = read(
        '{"topic":"a","value":null}',
        "",
        '{"topic":"a","offset":7,"value":null}',
        '{"topic":"a","offset":5,"value":null}',
        '{"topic":"a","value":null,"key":{"id":1}}',
        '{"topic":"a","partition":1,"value":null}',
        '{"topic":"b","value":null,"timestamp":12,"headers":{"h":"é","n":null}}',
    )
    assert [(r.topic, r.partition, r.offset, r.timestamp) for r in records] == [
        ("a", 0, 0, 1),
        ("a", 0, 7, 3),
        ("a", 0, 5, 4),
        ("a", 0, 8, 5),
        ("a", 1, 0, 6),
        ("b", 0, 0, 12),
    ]
    assert [r.key for r in records] == [None, None, None, b'{"id":1}', None, None]
    assert records[-1].headers == (("h", "é".encode()), ("n", None))


@pytest.mark.parametrize(
    ("member", "data"),
    [
        ('"value":{"b": 9223372036854775807, "a": 1.50}', b'{"b":9223372036854775807,"a":1.50}'),
        ('"value":12345678901234567890.123456789012345678', b"12345678901234567890.123456789012345678"),
        ('"value":"{\\"a\\": 1}"', b'{"a": 1}'),
        ('"value":"plain"', b"plain"),
        ('"value":"\\"é\\""', '"é"'.encode()),
        ('"value":""', b""),
        ('"value":[true,null]', b"[true,null]"),
        ('"value_base64":"/w=="', b"\xff"),
        ('"value":null', None),
        ('"value_base64":null', None),
    ],
)
def test_a_value_is_json_text_or_base64(read: Read, member: str, data: bytes | None) -> None:
    assert read('{"topic":"a",' + member + "}")[0].value == data


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{ ", "this begins an object of several lines: write one record a line"),
        ('{"topic":', "not JSON: expecting value at character 10"),
        (b"\xff", "not UTF-8 at byte 1"),
        ("1", 'not an object: expected {"topic": ..., "key": ..., "value": ...}'),
        ('[{"topic":"a","value":1}]', "this begins a JSON array: write one record a line, as `jq -c '.[]' FILE` does"),
        ("[", "this begins a JSON array: write one record a line"),
        ('{"value":1}', 'no topic: add "topic": "name"'),
        ('{"topic":"a"}', 'no value: add "value", null for a tombstone, or "value_base64"'),
        ('{"topic":"a","value":1,"value_base64":""}', "both value and value_base64: keep one of them"),
        ('{"topic":"a","value_base64":"é"}', "value_base64 is not base64"),
        ('{"topic":"a","value":1,"offset":-1}', "offset is number -1: write an integer from 0, or leave it out"),
        ('{"topic":"a","value":1,"partition":"0"}', "partition is text '0': write an integer from 0"),
        ('{"topic":"a","value":1,"headers":5}', 'headers is not an object: write {"name": "text"}'),
        ('{"topic":"a","value":1,"headers":{"a":5}}', 'a header is not text: write {"name": "text"}'),
    ],
)
def test_the_error_of_a_bad_line_names_the_file_the_line_and_the_cure(
    read: Read, tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(RecordedError) as caught:
        read('{"topic":"a","value":null}', line)
    assert str(caught.value).startswith(f"{tmp_path}/topics.jsonl:2: {message}")


def test_the_error_names_a_file_that_is_missing_or_does_not_match_its_suffix(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match=r"none\.jsonl: cannot be read: No such file"):
        list(read_records(str(tmp_path / "none.jsonl")))
    for name in ("a.gz", "a.zst"):
        (tmp_path / name).write_bytes(b"plain text")
        with pytest.raises(RecordedError, match=rf"{name}: cannot be read: .*expected JSON lines"):
            list(read_records(str(tmp_path / name)))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b'{"topic":"a","value":1}\n' * 1000)[:-10])
    with pytest.raises(RecordedError, match=r"cut\.gz: cannot be read"):
        list(read_records(str(tmp_path / "cut.gz")))


UNPACK: dict[str, Callable[..., Any]] = {
    ".jsonl": lambda raw: raw,
    ".gz": gzip.open,
    ".zst": zstandard.ZstdDecompressor().stream_reader,
}
RECORD = Record(topic="t", partition=1, offset=2, timestamp=3, key=b'{"id":1}', value=b"null", headers=(("h", b"x"),))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_the_suffix_of_a_file_decides_its_compression(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with open_writer(str(path)) as out:
        out.writelines(to_line(RECORD) + "\n" for _ in range(3))
    assert list(read_records(str(path))) == [RECORD] * 3
    with path.open("rb") as raw:
        data = UNPACK[path.suffix](raw).read()
    assert data.decode().splitlines() == [to_line(RECORD)] * 3


def test_a_dash_is_standard_input_and_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_writer("-") as out:
        out.write(to_line(RECORD) + "\n")
    written = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(written.encode())))
    assert list(read_records("-")) == [RECORD]


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (b'{"a":1.50}', '"value":{"a":1.50}'),
        (b'{"a": 1}', '"value":"{\\"a\\": 1}"'),
        (b'"a"', '"value":"\\"a\\""'),
        (b"null", '"value":"null"'),
        (b"1e5", '"value":"1e5"'),
        (b"caf\xc3\xa9", '"value":"café"'),
        (b"\xff", '"value_base64":"/w=="'),
        (None, '"value":null'),
    ],
)
def test_bytes_are_written_as_json_if_the_json_gives_the_same_bytes(value: bytes | None, member: str) -> None:
    record = Record(topic="t", partition=0, offset=0, key=b"1", value=value)
    assert to_line(record) == '{"topic":"t","partition":0,"offset":0,"timestamp":0,"key":1,' + member + "}"


def test_a_dead_letter_keeps_its_epoch_code_and_reason() -> None:
    record = Record(topic="t", partition=0, offset=5, epoch=2, timestamp=9, key=None, value=b"{")
    assert json.loads(to_reject_line(Rejected(record=record, reason="value: not JSON", code="not-json"))) == {
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "timestamp": 9,
        "key": None,
        "value": "{",
        "epoch": 2,
        "code": "not-json",
        "reason": "value: not JSON",
    }


json_bytes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).map(lambda value: json.dumps(value, ensure_ascii=False).encode())
blobs = st.none() | st.binary() | json_bytes | st.text().map(str.encode)
numbers = st.integers(min_value=0, max_value=2**63 - 1)
records = st.builds(
    Record,
    topic=st.text(min_size=1),
    partition=numbers,
    offset=numbers,
    epoch=numbers,
    timestamp=st.integers(min_value=-1, max_value=2**63 - 1),
    key=blobs,
    value=blobs,
    headers=st.lists(st.tuples(st.text(), st.none() | st.binary())).map(tuple),
)


@given(st.lists(records))
def test_written_records_are_read_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, given: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("recorded") / "a.jsonl"
    with open_writer(str(path)) as out:
        out.writelines(to_reject_line(Rejected(record=record, reason="r")) + "\n" for record in given)
    assert list(read_records(str(path))) == given


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_line_that_no_record_needs_ends_the_reading_with_its_file_and_number(suffix: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"t.jsonl{suffix}")
    with open_writer(path) as file:
        file.write('{"topic": "t", "value": 1}\n')
        file.write(f'{{"topic": "t", "value": "{"x" * MAX_LINE_BYTES}"}}\n')
    records = read_records(path)
    assert next(records).value == b"1"
    message = f"{path}:2: the line is longer than 16 MiB, and a record has 8 MiB at most: write one record a line"
    with pytest.raises(RecordedError, match=f"^{re.escape(message)}$"):
        next(records)


def test_a_message_of_the_largest_size_fits_into_a_line(tmp_path: Path) -> None:
    path = str(tmp_path / "t.jsonl")
    record = Record(topic="t", partition=0, offset=0, key=b"k" * 1000, value=b"\xff" * MAX_MESSAGE_BYTES, timestamp=1)
    with open_writer(path) as file:
        file.write(to_line(record) + "\n")
    assert [*read_records(path)] == [record]


def test_a_line_without_a_timestamp_gets_that_of_the_caller(tmp_path: Path) -> None:
    """`local produce` gives none, so the broker takes the time of now."""
    file = tmp_path / "lines.jsonl"
    file.write_text('{"topic": "user", "value": {}}\n{"topic": "user", "value": {}, "timestamp": 7}\n')
    assert [record.timestamp for record in read_records(str(file))] == [1, 7]
    assert [record.timestamp for record in read_records(str(file), untimed=NO_TIMESTAMP)] == [NO_TIMESTAMP, 7]

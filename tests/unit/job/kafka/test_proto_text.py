"""The text of .proto files: what it compiles to, by the pool of Google's own descriptors, and what it refuses."""

from contextlib import suppress
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2  # noqa: E402

from processor.job.kafka.proto_text import compile_proto  # noqa: E402

WHOLE = """
// a comment; with signs {
syntax = "proto3";
package a.b; /* two
lines */
import public "google/protobuf/timestamp.proto";
option java_package = "x.y";
option (file_option) = { a: 1 };
message Row {
  message Inner { message Deep {} Deep d = 1; }
  enum Kind { option allow_alias = true; NONE = 0; NULL = 0; LESS = -1; HEX = 0x10; reserved 4; }
  reserved 5, 7 to max;
  reserved "gone";
  optional int64 id = 1 [json_name = "ID", (meta) = { params: [{ key: "scale", value: "]" }] }];
  map<string, Inner> by_name = 2 [deprecated = true];
  oneof choice { option (o) = 1; string text = 3; google.protobuf.Timestamp at = 4; }
  Kind kind = 6;
  repeated a.b.Row.Inner inners = 10;
  .a.b.Row fully = 11;
  string message = 17;
  string option = 13;
  bool reserved = 014;
  optional string optional = 15;
  map<int32, Kind> kinds = 16;
}
service Rows { rpc Get (Row) returns (stream Row) { option (http) = { get: "/x" }; } }
"""


def compiled(text: str) -> Any:
    pool, known = descriptor_pool.DescriptorPool(), descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(known)
    pool.Add(known)
    pool.Add(compile_proto("file.proto", text))
    return pool


def test_each_statement_of_a_file_is_read() -> None:
    row = compiled(WHOLE).FindMessageTypeByName("a.b.Row")
    of = {one.name: one for one in row.fields}
    assert {name: one.number for name, one in of.items()} == {
        "id": 1, "by_name": 2, "text": 3, "at": 4, "kind": 6, "inners": 10, "fully": 11, "message": 17, "option": 13,
        "reserved": 0o14, "optional": 15, "kinds": 16,
    }  # fmt: skip
    assert [name for name, one in of.items() if one.has_presence] == ["id", "text", "at", "fully", "optional"]
    assert {name for name, one in of.items() if one.is_repeated} == {"by_name", "inners", "kinds"}
    assert of["at"].message_type.full_name == "google.protobuf.Timestamp"
    assert of["by_name"].message_type.fields_by_name["value"].message_type.full_name == "a.b.Row.Inner"
    assert of["kind"].enum_type.values_by_name["LESS"].number == -1
    assert of["kind"].enum_type.values_by_name["HEX"].number == 16
    assert of["kind"].enum_type.GetOptions().allow_alias
    assert of["text"].containing_oneof.name == of["at"].containing_oneof.name == "choice"


def test_a_file_of_proto2_has_labels() -> None:
    text = 'message Row { required int32 id = 1; optional string name = 2 [default = "x"]; extensions 100 to 200; }'
    row = compiled(f"{text} extend Row {{ optional int32 more = 100; }}").FindMessageTypeByName("Row")
    assert [(one.name, one.is_required, one.has_presence) for one in row.fields] == [
        ("id", True, True),
        ("name", False, True),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('syntax = "proto4";', "line 1: the syntax 'proto4' is neither proto2 nor proto3"),
        ('edition = "2023";', "line 1: editions are not known here"),
        ('syntax = "proto3";\nmessage Row {\n  int32 id;\n}', "line 3: '=' is missing before ';'"),
        ("message Row { int32 id = 1; }", "has no label, which proto2 needs"),
        ("message Row { repeated group Result = 1 { } }", "groups are not known here"),
        ('syntax = "proto3"; message Row { int32 id = 1', "';' is missing before ''"),
        ('syntax = "proto3"; message Row { ', "the file ends within a statement"),
        ('syntax = "proto3"; message Row { ( x = 1; }', "'(' is no type of a field"),
        ('syntax = "proto3"; message Row { int32 id = 99999999999; }', "is no number of 32 bits"),
        ('syntax = "proto3"; message Row { int32 id = x; }', "'x' is no number"),
        ("message 1 {}", "'1' is no name"),
        ("import google;", "'google' is no text in quotes"),
        ("rows", "'rows' begins no statement of a file"),
        ("§", "'§' begins no word of a .proto file"),
        ("message A {" * 101, "more than 100 levels of messages"),
        ("option (x = {", "the file ends within a statement"),
    ],
)
def test_what_is_no_file_is_an_error_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"^line [0-9]+: ") as error:
        compile_proto("file.proto", text)
    assert why in str(error.value)


def test_each_beginning_of_a_file_is_a_file_or_an_error() -> None:
    for length in range(len(WHOLE)):
        with suppress(ValueError):
            compile_proto("file.proto", WHOLE[:length])

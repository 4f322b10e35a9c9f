"""Files and messages of Protobuf, made in a test, as Confluent's ProtobufConverter writes them."""

import base64
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.required import require_schema_packages

require_schema_packages()

from confluent_kafka.schema_registry.confluent import meta_pb2  # noqa: E402
from confluent_kafka.schema_registry.confluent.type import decimal_pb2  # noqa: E402
from google.protobuf import (  # noqa: E402
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message_factory import GetMessageClass  # noqa: E402
from google.type import date_pb2, timeofday_pb2  # noqa: E402

from processor.job.kafka.registry_client import WriterSchema  # noqa: E402
from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.framed import head, row  # noqa: E402

FIELD_META = meta_pb2.DESCRIPTOR.extensions_by_name["field_meta"]
Field = descriptor_pb2.FieldDescriptorProto
TYPES = {name.removeprefix("TYPE_").lower(): number for name, number in Field.Type.items()}
IMPORTS = {
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Struct": "google/protobuf/struct.proto",
    "google.protobuf.Any": "google/protobuf/any.proto",
    "google.protobuf.Duration": "google/protobuf/duration.proto",
    "google.protobuf.FieldMask": "google/protobuf/field_mask.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "confluent.type.Decimal": "confluent/type/decimal.proto",
}
for module in (
    any_pb2,
    duration_pb2,
    field_mask_pb2,
    timestamp_pb2,
    struct_pb2,
    date_pb2,
    timeofday_pb2,
    decimal_pb2,
    wrappers_pb2,
    meta_pb2,
):
    assert module.DESCRIPTOR is not None


def message(name: str, /, **fields: str) -> descriptor_pb2.DescriptorProto:
    """`fields`: a type, or `.full.Name` of a message. `[]` after it repeats, `?` makes it optional, `(2)` is Kafka Connect's
    scale."""
    made = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, text) in enumerate(fields.items(), start=1):
        kind, _, scale = text.rstrip("[]?").rstrip(")").partition("(")
        added = made.field.add(name=field, number=number, label=Field.LABEL_OPTIONAL)
        if text.endswith("[]"):
            added.label = Field.LABEL_REPEATED
        if text.endswith("?"):
            added.proto3_optional = True
            added.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field}")
        if scale:
            added.options.Extensions[FIELD_META].params["scale"] = scale
        if kind in TYPES:
            added.type = TYPES[kind]
        else:
            added.type_name = kind
            added.type = Field.TYPE_ENUM if kind.endswith("Kind") else Field.TYPE_MESSAGE
    return made


def proto(
    *messages: descriptor_pb2.DescriptorProto, package: str = "app", imports: Sequence[str] = ()
) -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name="default", package=package, syntax="proto3", message_type=messages)
    used = {field.type_name.removeprefix(".") for one in messages for field in one.field}
    made.dependency.extend(sorted({path for name, path in IMPORTS.items() if name in used}))
    if any(name.endswith("Value") and name.startswith("google.protobuf.") for name in used):
        made.dependency.append("google/protobuf/wrappers.proto")
    if any(field.HasField("options") for one in messages for field in one.field):
        made.dependency.append("confluent/meta.proto")
    made.dependency.extend(imports)
    return made


def schema_of(
    file: descriptor_pb2.FileDescriptorProto, **references: descriptor_pb2.FileDescriptorProto
) -> WriterSchema:
    texts = {name: base64.b64encode(one.SerializeToString()).decode() for name, one in references.items()}
    return WriterSchema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode(), texts)


def classes(*files: descriptor_pb2.FileDescriptorProto) -> Callable[[str], Any]:
    """Gives the message class of a full name."""
    pool = descriptor_pool.DescriptorPool()

    def add(name: str) -> None:
        known = descriptor_pb2.FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(name).CopyToProto(known)
        for needed in known.dependency:
            add(needed)
        pool.Add(known)

    own = {file.name for file in files}
    for file in files:
        for name in file.dependency:
            if name not in own:
                add(name)
        pool.Add(file)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(name))


def framed(number: int, made: Any, indexes: bytes = b"\0") -> bytes:
    return head(number) + indexes + bytes(made.SerializeToString())


def one_column(kind: str, value: Any, declared: str) -> Any:
    """The value of column `x` after decoding."""
    file = proto(message("Row", id="int32", x=kind))
    if kind.endswith("Kind"):
        file.enum_type.add(name="Kind").value.extend(
            [descriptor_pb2.EnumValueDescriptorProto(name=n, number=i) for i, n in enumerate(("NEW", "DONE"))]
        )
    made = classes(file)("app.Row")(id=7, **({} if value is None else {"x": value}))
    return row(entity("t", "id", f"id int, x {declared}"), None, framed(1, made), {1: schema_of(file)})["x"]

"""Reads Protobuf messages by compiled schemas, as Confluent's ProtobufConverter writes them: gives JSON values, and the schema by
Kafka Connect.

    confluent.type.Decimal                  base64 of the unscaled number; the options of the field have its scale
    google.type.Date, TimeOfDay             days since 1970, milliseconds since midnight
    google.protobuf.Timestamp               milliseconds since 1970; text where these are too coarse
    a wrapper (Int64Value), `optional`      the value, or null
    a map with text keys, any other map     an object, an array of pairs
    an absent message                       null
    any other absent field                  0, "", false, []: the bytes do not show that the value was null

The converter drops Debezium's other names of types, such as MicroTimestamp: there the declared type has to give the unit.

The compiled schema comes from a registry, in a pool of its own. The entries of maps are messages like others here: Google's maps
leave out what does not fit in an entry, and say nothing.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.schema_registry.serde import SchemaId
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from processor.values.connect_schema import (
    CONNECT,
    DECIMAL,
    VARIABLE_DECIMAL,
    ToJson,
    base64_text,
    float_value,
    shortest_float,
    unscaled_text,
)
from processor.values.framing import MessageForm, SchemedValue
from processor.values.record import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchema:
    """A file of messages. `entries`: the full names of the entries of maps."""

    pool: Any
    file: descriptor_pb2.FileDescriptorProto
    entries: frozenset[str]

    def message(self, path: Sequence[int]) -> Any:
        """The descriptor of a message, by the indexes of the framing."""
        names, messages = [self.file.package] if self.file.package else [], self.file.message_type
        for index in path:
            if not 0 <= index < len(messages):
                raise ValueError(f"the schema has no message {list(path)}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self.pool.FindMessageTypeByName(".".join(names))

    def paths(self) -> dict[str, tuple[int, ...]]:
        """The indexes of each message by its full name, the entries of maps among them."""
        found: dict[str, tuple[int, ...]] = {}
        waiting: list[tuple[str, tuple[int, ...], Sequence[Any]]] = [(self.file.package, (), self.file.message_type)]
        while waiting:
            outer, path, messages = waiting.pop()
            for index, one in enumerate(messages):
                name = f"{outer}.{one.name}" if outer else one.name
                found[name] = (*path, index)
                waiting.append((name, (*path, index), one.nested_type))
        return found


def compiled_schema(text: str, references: Mapping[str, str]) -> CompiledSchema:
    """The schema of a file. `text`, `references`: base64 of the compiled file, and of those that it imports by these names."""
    pool, entries = descriptor_pool.DescriptorPool(), set[str]()
    file = _parsed("the schema", text)
    _add(pool, file, references, entries)
    return CompiledSchema(pool=pool, file=file, entries=frozenset(entries))


def _parsed(name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except Exception:  # the registry ignored the format that the request names
        raise ValueError(f"the registry gives {name} as text, not compiled (format=serialized)") from None
    file.name = name
    return file


def _add(pool: Any, file: descriptor_pb2.FileDescriptorProto, references: Mapping[str, str], entries: set[str]) -> None:
    """Adds a file to the pool, and those that it imports before it. The pool takes an equal file twice. `entries` gets the names
    of the entries of maps."""
    for name in file.dependency:
        if name in references:
            _add(pool, _parsed(name, references[name]), references, entries)
        else:
            _add_known(pool, name)
    entries.update(_opened_entries(file.message_type, f"{file.package}." if file.package else ""))
    pool.Add(file)


def _add_known(pool: Any, name: str) -> None:
    """Adds a file of Google's or Confluent's that Python has compiled."""
    known = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(known)
    for needed in known.dependency:
        _add_known(pool, needed)
    pool.Add(known)


def _opened_entries(messages: Iterable[descriptor_pb2.DescriptorProto], outer: str) -> Iterator[str]:
    """Takes from the entries of maps the mark that makes a map of them. Gives their full names."""
    for message in messages:
        name = f"{outer}{message.name}"
        if message.options.map_entry:
            message.options.ClearField("map_entry")
            yield name
        yield from _opened_entries(message.nested_type, f"{name}.")


_FRAME: Final = b"\0\0\0\0\1"
"""The deserialiser needs a frame, and does not use its id."""


def _with_path(body: bytes, paths: Mapping[str, tuple[int, ...]], message: MessageForm) -> bytes:
    """A body that begins with the indexes of its message, in place of what another registry's clients write."""
    number, rest = _varint(body)
    if message == "place":  # among the full names, in order
        names = sorted(paths)
        if number >= len(names):
            raise ValueError(f"the schema has no message {number}: it has {len(names)}")
        path = paths[names[number]]
    else:
        name, rest = _name_in(rest[:number], number), rest[number:]
        found = [path for full, path in paths.items() if len(path) == 1 and full.rpartition(".")[2] == name]
        if not found:
            raise ValueError(f"the schema has no message {name!r}")
        path = found[0]
    return b"".join(_zigzag(index) for index in (len(path), *path)) + rest


def _name_in(message: bytes, length: int) -> str:
    """The name in the message before the body: its field 1. Raises ValueError where there is none."""
    if len(message) == length and message[:1] == b"\x0a":
        size, name = _varint(message[1:])
        if len(name) == size:
            return name.decode()
    raise ValueError("the body does not begin with the name of its message: let the producer send it (send-type-ref)")


def _varint(data: bytes) -> tuple[int, bytes]:
    """The number at the beginning, and the rest."""
    number = 0
    for n, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return number, data[n + 1 :]
    raise ValueError("the body does not begin with a number")


def _zigzag(number: int) -> bytes:
    made, number = b"", number * 2
    while number > 0x7F:
        made, number = made + bytes((number & 0x7F | 0x80,)), number >> 7
    return made + bytes((number,))


_FREE_FORM: Final = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}
_WRAPPERS: Final = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_BYTES_VALUE: Final = "google.protobuf.BytesValue"
_ENTRY: Final = frozenset((1, 2))
"""The numbers of the key and the value in an entry of a map."""
_EPOCH: Final = datetime(1970, 1, 1)
_FIELD_META: Final = meta_pb2.DESCRIPTOR.extensions_by_name["field_meta"]
_MOST_SCALES: Final = 1000


def protobuf_reader(
    text: str, references: Mapping[str, str], message: MessageForm = "path"
) -> Callable[[bytes], SchemedValue]:
    """The reader of a file's messages. `text`, `references`: base64 of the compiled file, and of those that it imports by these
    names."""
    schema = compiled_schema(text, references)
    paths = schema.paths()
    readers: dict[tuple[int, ...], tuple[ProtobufDeserializer, ToJson, dict[str, Any]]] = {}

    def read(body: bytes) -> SchemedValue:
        data = _FRAME + (body if message == "path" else _with_path(body, paths, message))
        framing = SchemaId("PROTOBUF")
        framing.from_bytes(BytesIO(data))
        path = tuple(framing.message_indexes or ())
        if path not in readers:
            descriptor = schema.message(path)
            fields = _Messages(schema.entries)
            readers[path] = (
                ProtobufDeserializer(GetMessageClass(descriptor), {}),
                fields.to_json(descriptor),
                fields.connect(descriptor),
            )
        deserialise, to_json, connect = readers[path]
        return SchemedValue(to_json(deserialise(data)), connect)

    return read


def _parameters(field: Any) -> Mapping[str, str]:
    """The parameters of Kafka Connect in the options of a field. The pool of the schema has types of its own for options, so this
    reads the options again."""
    options = descriptor_pb2.FieldOptions.FromString(field.GetOptions().SerializeToString())
    return dict(options.Extensions[_FIELD_META].params)


class _Messages:
    """Makes the functions and the schemas of message types, each once, since a type may contain itself."""

    def __init__(self, entries: frozenset[str]) -> None:
        self._entries = entries
        self._converts: dict[str, list[tuple[str, bool, ToJson]]] = {}
        self._schemas: dict[str, dict[str, Any]] = {}

    def to_json(self, descriptor: Any) -> ToJson:
        """The function from a message to its JSON object."""
        fields, known = self._converts.get(descriptor.full_name), frozenset(descriptor.fields_by_number)
        if fields is None:
            fields = self._converts[descriptor.full_name] = []
            fields += [(field.name, field.has_presence, self._field(field)) for field in descriptor.fields]

        def convert(message: Any) -> Value:
            _check_known(message, known)
            return {
                name: None if presence and not message.HasField(name) else to_json(getattr(message, name))
                for name, presence, to_json in fields
            }

        return convert

    def connect(self, descriptor: Any) -> dict[str, Any]:
        """The schema of a message by Kafka Connect."""
        schema = self._schemas.get(descriptor.full_name)
        if schema is None:
            schema = self._schemas[descriptor.full_name] = {"type": "struct"}
            schema["fields"] = [{**self._field_schema(field), "field": field.name} for field in descriptor.fields]
        return schema

    def _field(self, field: Any) -> ToJson:
        if self._is_map(field):
            return self._map(field.message_type)
        single = self._single(field)
        return (lambda values: [single(value) for value in values]) if field.is_repeated else single

    def _is_map(self, field: Any) -> bool:
        return field.message_type is not None and field.message_type.full_name in self._entries

    def _map(self, entry: Any) -> ToJson:
        key, value = (self._single(entry.fields_by_name[name]) for name in ("key", "value"))
        texts = entry.fields_by_name["key"].type == entry.fields_by_name["key"].TYPE_STRING

        def convert(entries: Any) -> Value:
            members: dict[Any, Value] = {}
            for one in entries:
                _check_known(one, _ENTRY)
                members[key(one.key)] = value(one.value)
            return members if texts else [[name, member] for name, member in members.items()]

        return convert

    def _single(self, field: Any) -> ToJson:
        if field.message_type is not None:
            return self._message(field)
        if field.enum_type is not None:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return lambda number: names.get(number, number)
        by_type: Mapping[int, ToJson] = {
            field.TYPE_BYTES: base64_text,
            field.TYPE_DOUBLE: float_value,
            field.TYPE_FLOAT: lambda number: float_value(shortest_float(number)),
        }
        return by_type.get(field.type, lambda value: value)

    def _message(self, field: Any) -> ToJson:
        name, descriptor = field.message_type.full_name, field.message_type
        if name in _WRAPPERS:
            inner = self._single(descriptor.fields_by_name["value"])
            return _checked(lambda message: inner(message.value))
        if name == "confluent.type.Decimal":
            scale = _parameters(field).get("scale")
            return _checked(lambda message: _decimal(message, None if scale is None else int(scale)))
        if name in _FREE_FORM:
            return _checked(lambda message: _free_form(json_format.MessageToDict(message)))
        known: Mapping[str, ToJson] = {
            "google.type.Date": _days,
            "google.type.TimeOfDay": lambda at: (
                ((at.hours * 60 + at.minutes) * 60 + at.seconds) * 1000 + at.nanos // 1_000_000
            ),
            "google.protobuf.Timestamp": _instant,
        }
        return _checked(known[name]) if name in known else self.to_json(descriptor)

    def _field_schema(self, field: Any) -> dict[str, Any]:
        if self._is_map(field):
            return {"type": "map"}
        schema = self._single_schema(field)
        return {"type": "array", "items": schema} if field.is_repeated else schema

    def _single_schema(self, field: Any) -> dict[str, Any]:
        name = "" if field.message_type is None else field.message_type.full_name
        match name:
            case "confluent.type.Decimal":
                scale = _parameters(field).get("scale")
                # without a scale, each number has its own
                if scale is None:
                    return {"type": "struct", "name": VARIABLE_DECIMAL}
                return {"type": "bytes", "name": DECIMAL, "parameters": {"scale": scale}}
            case "google.type.Date" | "google.type.TimeOfDay":
                return {"type": "int32", "name": CONNECT + name.rpartition(".")[2].removesuffix("OfDay")}
            case "google.protobuf.Timestamp":
                return {"type": "int64", "name": f"{CONNECT}Timestamp"}
        if name == _BYTES_VALUE or field.type == field.TYPE_BYTES:
            return {"type": "bytes"}
        if not name or name in _WRAPPERS or name in _FREE_FORM:
            return {"type": "scalar"}
        return self.connect(field.message_type)


def _check_known(message: Any, known: frozenset[int]) -> None:
    """Raises ValueError where the bytes have a field of the schema in another wire type: the reader then leaves it out. A field
    that the schema does not have at all is no error."""
    for field in UnknownFieldSet(message):
        if field.field_number in known:
            name = message.DESCRIPTOR.fields_by_number[field.field_number].name
            raise ValueError(f"the bytes of field {name!r} ({field.field_number}) are of another type")


def _checked(to_json: ToJson) -> ToJson:
    """The function for a message that Google or Confluent define, after the same check."""

    def convert(message: Any) -> Value:
        _check_known(message, frozenset(message.DESCRIPTOR.fields_by_number))
        return to_json(message)

    return convert


def _decimal(message: Any, scale: int | None) -> Value:
    """As Kafka Connect's bytes in the scale of the field; without one, with the scale of the number."""
    number = int.from_bytes(message.value, "big", signed=True)
    if scale is None:
        return {"scale": message.scale, "value": unscaled_text(number)}
    if abs(message.scale - scale) > _MOST_SCALES:
        raise ValueError(f"a decimal with {message.scale} digits after the point, and its field declares {scale}")
    if message.scale > scale:
        number, rest = divmod(number, 10 ** (message.scale - scale))
        if rest:
            raise ValueError(f"a decimal has more than the {scale} digits after the point that its field declares")
    else:
        number *= 10 ** (scale - message.scale)
    return unscaled_text(number)


def _days(day: Any) -> Value:
    return date(day.year, day.month, day.day).toordinal() - _EPOCH.toordinal()


def _instant(at: Any) -> Value:
    if at.nanos % 1_000_000 == 0:
        return at.seconds * 1000 + at.nanos // 1_000_000
    return f"{(_EPOCH + timedelta(seconds=at.seconds)).isoformat()}.{at.nanos:09d}Z"


def _free_form(value: Any) -> Value:
    """JSON in messages, whose numbers are all doubles."""
    match value:
        case float():
            number = float_value(value)
            return int(number) if isinstance(number, Decimal) and number == number.to_integral_value() else number
        case list():
            return [_free_form(one) for one in value]
        case dict():
            return {name: _free_form(one) for name, one in value.items()}
    return value

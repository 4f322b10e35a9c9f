"""The compiled schema of Protobuf messages, as a registry gives it, in a pool of its own.

The entries of maps are messages like others here: Google's maps leave out what does not fit in an entry, and say nothing.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool


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

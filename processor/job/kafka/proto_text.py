"""Compiles the text of a .proto file, as registries without Confluent's API give it. Google's compiler is a program of its own,
and no package of Python has it.

Reads the syntax `proto2` and `proto3`: messages, enums, `oneof`, `map`, `optional`, `repeated`, imports. Leaves out what no
reader needs: options, services, extensions, reserved numbers. Refuses what changes the bytes and is not known here: groups,
`editions`.

Source: protobuf.dev/reference/protobuf/proto3-spec and proto2-spec, read on 2026-11-27.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf import descriptor_pb2

_F = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _F.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
_LABELS: Final = {
    "optional": _F.LABEL_OPTIONAL,
    "required": _F.LABEL_REQUIRED,
    "repeated": _F.LABEL_REPEATED,
}
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<word>\.?[A-Za-z_][\w]*(?:\s*\.\s*[A-Za-z_]\w*)*)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|[0-9][\w.]*(?:[eE][+-]?[0-9]+)?))|(?P<sign>[-+{}()\[\]<>;=,:./])""",
    re.DOTALL,
)
_CLOSES: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
MOST_LEVELS: Final = 100


def compiled_text(name: str, text: str) -> str:
    """The compiled file in base64, as Confluent's registry gives it. Raises ValueError with the line of an error."""
    return base64.b64encode(compile_proto(name, text).SerializeToString()).decode()


def compile_proto(name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    """The compiled file. Names of types are as the text has them: the pool of descriptors finds them."""
    parser = _Parser(list(_tokens(text)))
    file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto2")
    parser.file(file)
    return file


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """The kind, the text and the line of each token."""
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"line {line}: {text[place]!r} begins no word of a .proto file")
        if found.lastgroup is not None:
            yield found.lastgroup, re.sub(r"\s+", "", found[0]) if found.lastgroup == "word" else found[0], line
        line += found[0].count("\n")
        place = found.end()


@dataclass(slots=True)
class _Parser:
    tokens: list[tuple[str, str, int]]
    at: int = 0
    newer: bool = False
    """Whether the syntax is proto3."""

    def file(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        """Reads the whole file."""
        while self.at < len(self.tokens):
            match self._next():
                case "syntax":
                    self._expect("=")
                    file.syntax = self._quoted()
                    if file.syntax not in ("proto2", "proto3"):
                        raise self._error(f"the syntax {file.syntax!r} is neither proto2 nor proto3")
                    self.newer = file.syntax == "proto3"
                    self._expect(";")
                case "edition":
                    raise self._error("editions are not known here: use the syntax proto2 or proto3")
                case "package":
                    file.package = self._word()
                    self._expect(";")
                case "import":
                    if self._peek() in ("public", "weak"):
                        self._next()
                    file.dependency.append(self._quoted())
                    self._expect(";")
                case "message":
                    self._message(file.message_type.add(), 1)
                case "enum":
                    self._enum(file.enum_type.add())
                case "option" | "service" | "extend":
                    self._skip()
                case ";":
                    pass
                case other:
                    raise self._error(f"{other!r} begins no statement of a file")

    def _message(self, message: descriptor_pb2.DescriptorProto, level: int) -> None:
        if level > MOST_LEVELS:
            raise self._error(f"more than {MOST_LEVELS} levels of messages")
        message.name = self._word()
        self._expect("{")
        while (word := self._next()) != "}":
            match word:
                case "message" if self._kind() == "word" and self._peek(1) == "{":
                    self._message(message.nested_type.add(), level + 1)
                case "enum" if self._kind() == "word" and self._peek(1) == "{":
                    self._enum(message.enum_type.add())
                case "oneof" if self._kind() == "word" and self._peek(1) == "{":
                    self._oneof(message)
                case "map" if self._peek() == "<":
                    self._map(message)
                case "option" | "reserved" | "extensions" | "extend" if self._peek(1) != "=":
                    self._skip()
                case ";":
                    pass
                case label if label in _LABELS and self._kind() == "word" and self._peek(1) != "=":
                    optional = label == "optional" and self.newer
                    self._field(message, self._word(), _LABELS[label], optional=optional)
                case _:
                    if not self.newer:
                        raise self._error(f"the field of type {word!r} has no label, which proto2 needs")
                    self._field(message, word, _F.LABEL_OPTIONAL)
        # the groups of `optional` fields come after those that the text names
        for one in message.field:
            if one.proto3_optional:
                one.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{one.name}")

    def _field(
        self, message: descriptor_pb2.DescriptorProto, kind: str, label: int, *, optional: bool = False
    ) -> descriptor_pb2.FieldDescriptorProto:
        if kind == "group":
            raise self._error("groups are not known here")
        if kind[0] not in "._" and not kind[0].isalpha():
            raise self._error(f"{kind!r} is no type of a field")
        made = message.field.add(name=self._word(), label=label)
        if optional:
            made.proto3_optional = True
        if kind in _SCALARS:
            made.type = _SCALARS[kind]
        else:
            made.type_name = kind
        self._expect("=")
        made.number = self._number()
        if self._peek() == "[":
            self._bracket()
        self._expect(";")
        return made

    def _oneof(self, message: descriptor_pb2.DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._word())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option" and self._peek(1) != "=":
                self._skip()
            elif word != ";":
                self._field(message, word, _F.LABEL_OPTIONAL).oneof_index = index

    def _map(self, message: descriptor_pb2.DescriptorProto) -> None:
        self._expect("<")
        key = self._word()
        self._expect(",")
        value = self._word()
        self._expect(">")
        made = self._field(message, "map", _F.LABEL_REPEATED)
        entry = message.nested_type.add(
            name="".join(part[:1].upper() + part[1:] for part in made.name.split("_")) + "Entry"
        )
        entry.options.map_entry = True
        made.type_name = entry.name
        made.type = _F.TYPE_MESSAGE
        for number, (name, kind) in enumerate((("key", key), ("value", value)), start=1):
            inner = entry.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL)
            if kind in _SCALARS:
                inner.type = _SCALARS[kind]
            else:
                inner.type_name = kind

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._word()
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                if self._skip()[:3] == ["allow_alias", "=", "true"]:
                    enum.options.allow_alias = True
            elif word != ";":
                self._expect("=")
                enum.value.add(name=word, number=self._number())
                if self._peek() == "[":
                    self._bracket()
                self._expect(";")

    def _skip(self) -> list[str]:
        """Skips a statement after its first word: up to its semicolon, or over its block. Returns what it skipped."""
        start = self.at
        while (word := self._next()) != ";":
            if word in _CLOSES:
                self.at -= 1
                self._bracket()
            if word == "{" and self.tokens[start - 1][1] != "option":
                break
        return [text for _, text, _ in self.tokens[start : self.at]]

    def _bracket(self) -> None:
        """Skips a bracket with all that is in it."""
        open_: list[str] = []
        while True:
            word = self._next()
            if word in _CLOSES:
                open_.append(_CLOSES[word])
            elif open_ and word == open_[-1]:
                open_.pop()
            if not open_:
                return

    def _kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][1] if self.at + ahead < len(self.tokens) else ""

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise self._error("the file ends within a statement")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def _word(self) -> str:
        if self._kind() != "word":
            raise self._error(f"{self._peek()!r} is no name")
        return self._next()

    def _quoted(self) -> str:
        if self._kind() != "text":
            raise self._error(f"{self._peek()!r} is no text in quotes")
        return self._next()[1:-1]

    def _number(self) -> int:
        sign = -1 if self._peek() == "-" else 1
        if self._peek() in ("-", "+"):
            self._next()
        text = self._next()
        try:
            number = sign * int(text, 8 if re.fullmatch(r"[+-]?0[0-7]+", text) else 0)
        except ValueError:
            raise self._error(f"{text!r} is no number") from None
        if not -(2**31) <= number < 2**31:
            raise self._error(f"{text} is no number of 32 bits")
        return number

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._error(f"{sign!r} is missing before {self._peek()!r}")
        self._next()

    def _error(self, what: str) -> ValueError:
        line = self.tokens[min(self.at, len(self.tokens)) - 1][2] if self.tokens else 1
        return ValueError(f"line {line}: {what}")

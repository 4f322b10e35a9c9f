"""Reads numbers of columns, and the form of text in decimal columns: digits, or Debezium's bytes. Its values, its rules, and what
`doctor` says of it.

The source writes digits (`decimal.handling.mode=string`: "12.34") or, by default, bytes ("BNI="). Without a schema, nothing can
tell the digits "1000" from the bytes of -2667212, nor the word "free" from the bytes of 8304542. The entity may say the form
(`decimals`). Else the first record whose text has one meaning settles it for the column, and a text with two meanings is refused
before. The engine remembers a settled form in the table (processor/engine/rounds/decoding.py).

Numbers are exact, and within the limits of a DynamoDB number. A canonical Decimal has no trailing zeros and no positive exponent.
So equal numbers have equal text, whatever their source.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal, DecimalException, Inexact, Overflow, Subnormal
from typing import Any, Final, Literal, NamedTuple

from processor.finding import Finding, ok, warning
from processor.values.entity import MAX_DIGITS, ColumnType, DecimalForm, Entity
from processor.values.reasons import Mismatch, beyond, unexpected
from processor.values.record import Record, Value

NUMERIC: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DYNAMODB: Final = Context(prec=MAX_DIGITS, Emin=-130, Emax=125, traps=[Inexact, Overflow, Subnormal])
_TOO_LARGE: Final = 10**MAX_DIGITS
_MAX_SCALE: Final = 1000
_MAX_BASE64: Final = 1024
_EXACT: Final = Context(prec=4000, traps=[Inexact, Overflow, Subnormal])
_LIMIT: Final = f"the table keeps {MAX_DIGITS} digits and magnitudes from 1E-130 to 1E+126"
ENDLESS: Final = re.compile(r"nan|[+-]?infinity|(?:positive|negative)_infinity", re.IGNORECASE)
_INFINITE: Final = "no finite number; declare json to pass it through as it comes"
_BYTES: Final = "for Debezium's bytes: declare `decimals: bytes` and decimal(precision,scale), or send schemas"
_NO_SCALE: Final = "the entity has `decimals: bytes`: declare decimal(precision,scale), or send schemas"
_OTHER_SCALE: Final = (
    "bytes with more digits than the declared precision: the source has another precision or scale; declare that of the "
    "source, or send schemas"
)
_NO_BYTES: Final = "not Debezium's bytes"


def to_int(value: Any, column_type: ColumnType) -> int:
    """An integral JSON number (42, 42.0, 4.2e1) as int."""
    if type(value) is int:
        if -_TOO_LARGE < value < _TOO_LARGE:
            return value
        raise beyond(column_type, value, _LIMIT)
    if type(value) is float:
        value = _from_float(value, column_type)
    if type(value) is not Decimal or not value.is_finite():
        raise _no_number(column_type, value)
    if value.adjusted() >= MAX_DIGITS:
        raise beyond(column_type, value, _LIMIT)
    if value != value.to_integral_value():
        raise unexpected(column_type, value)
    return int(value)


def to_float(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text as the shortest decimal form of its double."""
    try:
        number = value if type(value) is float else float(to_number(value, column_type))
    except OverflowError:
        raise beyond(column_type, value, "beyond a double") from None
    return canonical_decimal(_from_float(number, column_type, value), column_type)


def to_decimal(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text, exactly."""
    return canonical_decimal(to_number(value, column_type), column_type)


def canonical_decimal(number: int | Decimal, column_type: ColumnType) -> Decimal:
    """The one form of a number: 1.5 for 1.50, 100 for 1E+2, 0 for -0.0. Raises ValueError for a number that DynamoDB cannot
    hold."""
    try:
        result = _DYNAMODB.normalize(number if type(number) is Decimal else Decimal(number))
    except DecimalException:
        raise beyond(column_type, number, _LIMIT) from None
    if not result:
        return Decimal(0)
    return Decimal(int(result)) if "E+" in str(result) else result


def to_number(value: Any, column_type: ColumnType) -> int | Decimal:
    """The number in a JSON number, in numeric text, or in Debezium's `{scale, value}`."""
    match value:
        case bool():
            pass
        case int():
            return value
        case Decimal() if value.is_finite():
            return value
        case float():
            return _from_float(value, column_type)
        case str() if NUMERIC.fullmatch(value):
            try:
                return Decimal(value)
            except DecimalException:
                raise beyond(column_type, value, _LIMIT) from None
        case {"scale": int(scale), "value": str(text), **rest} if not rest and abs(scale) <= _MAX_SCALE:
            return decode_decimal(text, scale, column_type, stated=True)
    raise _no_number(column_type, value)


def decode_decimal(value: str, scale: int | None, column_type: ColumnType, *, stated: bool = False) -> Decimal:
    """Decodes a Decimal of Debezium (Kafka Connect): base64 of the unscaled value, two's-complement, big-endian. `scale` None:
    it is undeclared, and the text is refused. `stated`: the record says the scale. Else it is that of the declared type, and more
    digits than this type has show that the source has another one."""
    unscaled = unscaled_of(value)
    if unscaled is None or scale is None:
        raise unexpected(column_type, value, _NO_BYTES if unscaled is None else _NO_SCALE)
    if not stated and column_type.precision is not None and abs(unscaled) >= 10**column_type.precision:
        raise unexpected(column_type, value, _OTHER_SCALE, code="column-range")
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _no_number(column_type: ColumnType, value: Any) -> Mismatch:
    """The error of a value that is not read as a number here. A word of letters is hardly ever bytes."""
    if isinstance(value, Decimal):
        return unexpected(column_type, value, unrepresentable=not value.is_finite())
    if not isinstance(value, str) or NUMERIC.fullmatch(value):
        return unexpected(column_type, value)
    if ENDLESS.fullmatch(value):
        return unexpected(column_type, value, _INFINITE, unrepresentable=True)
    return unexpected(column_type, value, _BYTES if not value.isalpha() and unscaled_of(value) is not None else "")


def unscaled_of(text: str) -> int | None:
    """The integer in base64 of Java's BigInteger: padded, and in as few bytes as possible. None for other text."""
    if not 0 < len(text) <= _MAX_BASE64:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    number = int.from_bytes(data, "big", signed=True)
    length = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return number if len(data) == length and base64.b64encode(data).decode() == text else None


def _from_float(number: float, column_type: ColumnType, value: Any = None) -> Decimal:
    result = Decimal(repr(number))
    if not result.is_finite():
        raise beyond(column_type, number if value is None else value, "")
    return result


_AMBIGUOUS: Final = (
    "it may be a {other} or Debezium's bytes: declare `decimals: text` or `decimals: bytes`, or send schemas"
)
_ONLY_BASE64: Final = re.compile(r"[+/=]")
_OTHER_FORM: Final = (
    "the column has `decimals: {form}` since the record {since}: declare the form that the connector writes, "
    "`decimals: text` or `decimals: bytes`, or send schemas"
)
TextForm = DecimalForm | Literal["either", "letters"]
"""`text`: digits. `bytes`: base64 of Debezium's bytes, by a character that only base64 has. The others are ambiguous: `either`
may be digits or bytes, and `letters` may be bytes or a word, which is no number."""


class LearnedForm(NamedTuple):
    """The form of a column, and the record that settled it."""

    form: DecimalForm
    topic: str
    partition: int
    epoch: int
    offset: int

    @property
    def since(self) -> str:
        """The position of the record, for people."""
        return f"{self.topic}/{self.partition}/{self.offset}"


ColumnForms = Mapping[str, LearnedForm]
"""Column -> its form. A column that is not there has none yet."""
NO_FORMS: Final[ColumnForms] = {}


def learned_at(record: Record, form: DecimalForm) -> LearnedForm:
    """The form of a column, settled by this record."""
    return LearnedForm(form, record.topic, record.partition, record.epoch, record.offset)


def text_form(text: str, column_type: ColumnType) -> TextForm | None:
    """The form that a text shows in a column with a precision. None: of no number. Bytes of more digits than the precision are
    none."""
    digits, unscaled = NUMERIC.fullmatch(text) is not None, unscaled_of(text)
    if (
        unscaled is not None
        and abs(unscaled) < 10 ** (column_type.precision or MAX_DIGITS)
        and not ENDLESS.fullmatch(text)
    ):
        return "either" if digits else "bytes" if _ONLY_BASE64.search(text) else "letters"
    return "text" if digits else None


def shown_form(value: Value, column_type: ColumnType) -> DecimalForm | None:
    """The form of a value: of the first text in an array that shows one. None for a value that shows none."""
    for text in value if type(value) is list else [value]:
        form = text_form(text, column_type) if type(text) is str else None
        if form == "text" or form == "bytes":
            return form
    return None


def read_undeclared(value: str, column_type: ColumnType, settled: LearnedForm | None) -> int | Decimal:
    """The number in text of a Debezium record without a schema, in a column with a scale whose entity does not say the form.

    `settled`: the form that the column has; None: the first text with one meaning settles it, and a text with two is refused."""
    digits = NUMERIC.fullmatch(value) is not None
    if settled is not None and digits == (settled.form == "text"):
        return to_number(value, column_type) if digits else decode_decimal(value, column_type.scale, column_type)
    form = text_form(value, column_type)
    if settled is None and form in ("either", "letters"):
        raise unexpected(column_type, value, _AMBIGUOUS.format(other="number" if digits else "word"))
    if settled is not None and form not in ("either", None):
        raise unexpected(column_type, value, _OTHER_FORM.format(form=settled.form, since=settled.since))
    if form in ("bytes", "either"):
        return decode_decimal(value, column_type.scale, column_type)
    return to_number(value, column_type)


Forms = Mapping[str, ColumnForms]
"""Entity -> column -> the form of its text."""


class FormNote(NamedTuple):
    """The form of a column, as an item holds it."""

    entity: str
    column: str
    settled: LearnedForm


def with_notes(forms: Forms, notes: Iterable[FormNote]) -> Forms:
    """The forms, and those of the notes."""
    result = dict(forms)
    for entity, column, settled in notes:
        result[entity] = {**result.get(entity, {}), column: settled}
    return result


def obsolete_notes(forms: Forms, entities: Mapping[str, Entity]) -> Iterator[FormNote]:
    """The notes of columns whose form no record settles: the entity says it, or the column is gone or has another type."""
    for entity, columns in forms.items():
        for column, settled in columns.items():
            if entity not in entities or not entities[entity].learns(column):
                yield FormNote(entity, column, settled)


def without_notes(forms: Forms, notes: Iterable[FormNote]) -> Forms:
    """The forms without those of the notes."""
    gone = {(note.entity, note.column) for note in notes}
    return {
        entity: {column: settled for column, settled in columns.items() if (entity, column) not in gone}
        for entity, columns in forms.items()
    }


BYTES_CURE = "declare `decimals: bytes` in the entity, and decimal(precision,scale) with the scale of the source"
WORDS = {"text": "digits", "bytes": "Debezium's bytes"}
SampledForm = Literal["text", "bytes", "either", "unread"]
"""`text` and `bytes` as `text_form` has them; `either`: ambiguous. `unread`: bytes that decode refuses, because the column
has no scale, or the row looks like a plain one."""


def is_undeclared(entity: Entity, column: str) -> bool:
    """Whether a column takes text of numbers, and the entity does not say their form."""
    return entity.columns[column].name in ("decimal", "float") and entity.decimal_form(column) is None


def sampled_forms(value: Value, column_type: ColumnType, *, plain: bool) -> Iterator[SampledForm]:
    """The forms of the text in one row. `plain`: of a plain row. Its text is numbers, as is that of a column without a scale."""
    digits = plain or column_type.scale is None
    for text in value if isinstance(value, list) else [value]:
        form = text_form(text, column_type) if isinstance(text, str) else None
        if form is not None and not digits:
            yield "either" if form == "letters" else form
        elif form in ("bytes", "letters"):
            yield "unread"


def form_finding(
    entity: Entity, column: str, forms: frozenset[SampledForm], settled: LearnedForm | None
) -> Finding | None:
    """What `doctor` says of a column. `forms`: of the text in the last records; `settled`: the form that the column has."""
    what = f"{entity.topic}: column {column} of entity {entity.name}"
    arrives = f"{what} arrives without a schema, as"
    if "unread" in forms:
        return warning(f"{arrives} Debezium's bytes: these records become dead letters", BYTES_CURE)
    if settled is not None and not entity.learns(column):
        return None
    if settled is not None:
        text = f"{what} has `decimals: {settled.form}` since the record {settled.since}"
        if not ({"text", "bytes"} & forms) - {settled.form}:
            return ok(text)
        cure = "declare in the entity the `decimals` that the connector writes; that replaces what the record settled"
        return warning(f"{text}, and records of the other form become dead letters", cure)
    if {"text", "bytes"} <= forms:
        cure = "declare `decimals` as the newer records are; those of the other form become dead letters"
        return warning(f"{arrives} digits in some records and as Debezium's bytes in others", cure)
    for form in ("text", "bytes"):
        if form in forms:
            text = f"{arrives} {WORDS[form]}: the first such record settles the form; before, text that may be either is refused"
            return warning(text, f"declare `decimals: {form}` in the entity")
    if forms:
        text = f"{arrives} text that may be digits or Debezium's bytes: these records become dead letters"
        return warning(text, "declare `decimals: text` if decimal.handling.mode is string, else `decimals: bytes`")
    return None

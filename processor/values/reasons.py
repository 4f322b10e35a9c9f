"""The reasons of dead letters: a code for each kind, with its meaning and its cure, and the error that carries one.

A code is stable: headers, metrics and scripts hold it. The reason itself names columns and values. It is short, in one line, and
the same for equal values. It shows the value, for the dead letter; its plain form does not, for log lines.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

ReasonCode = Literal[
    "schema-missing", "schema-differs", "other-registry", "not-utf8", "not-json", "too-deep", "number-too-long",
    "half-surrogate", "not-a-row", "other-format", "other-table", "delete-unsaid", "unknown-op", "row-missing",
    "column-type", "column-range", "not-sent", "key-shape", "key-type", "key-null", "key-missing", "key-differs",
    "key-moved", "row-too-large", "other-partition", "document-too-large", "document-misfit", "source-differs", "other",
]  # fmt: skip


class RejectReason(NamedTuple):
    """What a code means, and what a person does about it."""

    meaning: str
    cure: str


SEND_AGAIN: Final = "let the source send the row again, and drop the letter"
"""The second half of many cures."""
REASONS: Final[Mapping[ReasonCode, RejectReason]] = {
    "schema-missing": RejectReason(
        "the record is framed for a schema registry, and the job has no registry, or cannot read its schema",
        "give [schema_registry] in the settings file, or register the schema again, then replay",
    ),
    "schema-differs": RejectReason(
        "the bytes of the record do not fit its schema in the schema registry",
        f"let the producer write by the schema that it names; {SEND_AGAIN}",
    ),
    "other-registry": RejectReason(
        "the record is framed for a registry of another kind than [schema_registry] names, or of none that statestore reads",
        "write the `kind` that the reason names into [schema_registry], then replay; else let the producer write JSON; "
        f"{SEND_AGAIN}",
    ),
    "not-utf8": RejectReason(
        "the key or the value is not text in UTF-8", f"let the producer write UTF-8; {SEND_AGAIN}"
    ),
    "not-json": RejectReason(
        "the key or the value is not JSON: empty, incomplete, with NaN, or with a byte order mark",
        f"let the producer write JSON; {SEND_AGAIN}",
    ),
    "too-deep": RejectReason("the JSON has more than 200 levels", f"let the producer write fewer levels; {SEND_AGAIN}"),
    "number-too-long": RejectReason(
        "the JSON holds a number of too many digits, or with too large an exponent",
        f"let the producer write it as text; {SEND_AGAIN}",
    ),
    "half-surrogate": RejectReason(
        "a text holds half of a surrogate pair, which UTF-8 lacks", f"correct the text at the source; {SEND_AGAIN}"
    ),
    "not-a-row": RejectReason(
        "the value is JSON, but no object", "correct `topic` of the entity if it names the wrong topic; drop the letter"
    ),
    "other-format": RejectReason(
        "the value is an envelope of another system, or has no declared column outside the key",
        f"correct `topic` or the columns of the entity, then replay; else let a transform write rows; {SEND_AGAIN}",
    ),
    "other-table": RejectReason(
        "the record is of another table than the entity: it has no declared column outside the key; or it names no table, and "
        "the entity has `table`",
        "write `table` in the entity, and `format` if null values are refused, then replay",
    ),
    "delete-unsaid": RejectReason(
        "a member of the row may say that the row is deleted, and the entity does not explain it",
        "write `deleted` in the entity, or declare the member as a column, then replay",
    ),
    "unknown-op": RejectReason(
        "the operation is none of its system's, or the entity pins the `format` of an envelope and the record is none",
        "correct `format` of the entity, then replay",
    ),
    "row-missing": RejectReason(
        "the envelope has no row: no object in `after` or `data`, or a schema without its payload",
        f"correct the transforms of the connector; {SEND_AGAIN}",
    ),
    "column-type": RejectReason(
        "a value is not of the declared type of its column",
        f"declare a type that takes it (`int`, `string` and `bool` may become `json`), then replay; else {SEND_AGAIN}",
    ),
    "column-range": RejectReason(
        "a number or a time is beyond the range of its column",
        "declare `unrepresentable` of the column, or `json` for an `int`, then replay; else correct the value at the source; "
        f"{SEND_AGAIN}",
    ),
    "not-sent": RejectReason(
        "a value holds the placeholder of Debezium inside, or an update of the key lacks columns: a part of the row was not sent",
        "leave out the transform that nests columns, or let the source log all columns (REPLICA IDENTITY FULL, "
        f"NOCOMPRESSUPDATES); {SEND_AGAIN}",
    ),
    "key-shape": RejectReason(
        "the Kafka key is one value, and the key of the entity has several columns",
        f"let the connector write the key of the entity (`message.key.columns`); {SEND_AGAIN}",
    ),
    "key-type": RejectReason(
        "a part of the Kafka key is null, or not of the declared type of its column",
        f"let the producer write the declared type; {SEND_AGAIN}",
    ),
    "key-null": RejectReason(
        "a key column is null in the row", "let the source give each row a key, and drop the letter"
    ),
    "key-missing": RejectReason(
        "neither the Kafka key nor the row has a part of the key",
        f"let the connector write the key of the entity (`message.key.columns`); {SEND_AGAIN}",
    ),
    "key-differs": RejectReason(
        "the Kafka key and the row have different values for a part of the key",
        f"let the connector write the key of the entity (`message.key.columns`); {SEND_AGAIN}",
    ),
    "key-moved": RejectReason(
        "an update gives a row another key, and the order of the changes of its old key is unknown",
        f"give the table a primary key, or its topic one partition; `verify --source --repair` deletes the old row; {SEND_AGAIN}",
    ),
    "row-too-large": RejectReason(
        "the row does not fit into an item of the table (400 KB)",
        f"let the connector leave out the large column (`column.exclude.list`); {SEND_AGAIN}",
    ),
    "other-partition": RejectReason(
        "the row has changes from two partitions, so their order is unknown",
        f"let the producer use one partition for each key, run `statestore epoch TOPIC`; {SEND_AGAIN}",
    ),
    "document-too-large": RejectReason(
        "a document is larger than the messages that the topic of its product takes; the letter has the document's key",
        "raise `max.message.bytes` of the topic, or give the lists of the product a `limit`; then start the job again",
    ),
    "document-misfit": RejectReason(
        "a document has a value that its Avro type does not hold; the letter has the document's key",
        "correct the row at the source, and the document goes out; or declare a type that holds the value, and apply it",
    ),
    "source-differs": RejectReason(
        "no refused record: `verify --source --repair` found that the source's row differs, and the letter has that row",
        "the job takes it by itself; after `--withdraw`, drop it",
    ),
    "other": RejectReason(
        "the cause has no code, or a release without codes refused the record", "the reason names the cause"
    ),
}
"""Each code with its meaning and its cure, in the order in which decode and write find them."""
OF_DOCUMENTS: Final[frozenset[ReasonCode]] = frozenset({"document-too-large", "document-misfit"})
"""The codes of dead letters in place of documents."""


def known_code(text: str) -> ReasonCode:
    """The code of a header; `other` for a text that this release does not know."""
    return next((code for code in REASONS if code == text), "other")


SHOWN_CHARACTERS: Final = 60
"""A reason shows at most this many characters of the value."""

_READABLE_BITS: Final = 4096


class Mismatch(ValueError):
    """A value does not fit. `plain`: the reason without the value; `code`: its kind; `unrepresentable`: whether the source may
    hold the value, and no value of the declared type is equal to it, such as infinity."""

    def __init__(
        self, reason: str, code: ReasonCode, plain: str | None = None, *, unrepresentable: bool = False
    ) -> None:
        super().__init__(reason)
        self.plain, self.code = reason if plain is None else plain, code
        self.unrepresentable = unrepresentable


def unexpected(
    expected: object, value: Any, why: str = "", code: ReasonCode = "column-type", *, unrepresentable: bool = False
) -> Mismatch:
    """The error `expected int, found text 'abc'`, followed by `why` in parentheses."""
    found, kind = describe_value(value), _kind(value)
    end = f" ({why})" if why else ""
    plain = f"expected {expected}, found {kind}{end}"
    return Mismatch(f"expected {expected}, found {found}{end}", code, plain, unrepresentable=unrepresentable)


def beyond(expected: object, value: Any, limit: str) -> Mismatch:
    """The same error for a number or a time that its column cannot hold."""
    return unexpected(expected, value, limit, "column-range", unrepresentable=True)


def within(place: str, error: ValueError, code: ReasonCode | None = None) -> Mismatch:
    """The error, with the place of the value before it, and with another code if given."""
    plain = f"{place}: {plain_reason(error)}"
    return Mismatch(f"{place}: {error}", code or reason_code(error), plain, unrepresentable=is_unrepresentable(error))


def reason_code(error: ValueError) -> ReasonCode:
    """The code of the reason; `other` for an error that carries none."""
    return error.code if isinstance(error, Mismatch) else "other"


def is_unrepresentable(error: ValueError) -> bool:
    """Whether the source may hold the value of the error, and the declared type has none that is equal to it."""
    return isinstance(error, Mismatch) and error.unrepresentable


def plain_reason(error: ValueError) -> str:
    """The reason without values of the record."""
    return error.plain if isinstance(error, Mismatch) else str(error)


def describe_value(value: Any) -> str:
    """A JSON value in words: `text 'abc'`, `number 42`, `true`, `null`, `an array`, `an object`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text {_shown(value)!r}"
        case int() if value.bit_length() > _READABLE_BITS:
            return "a number of more than 1,000 digits"
        case int() | float() | Decimal():
            return f"number {_shown(str(value))}"
        case list():
            return "an array"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def _kind(value: Any) -> str:
    """The same words without the value."""
    match value:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float() | Decimal():
            return "a number"
    return describe_value(value)


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"

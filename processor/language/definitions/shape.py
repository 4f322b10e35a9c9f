"""What authors may write: the words of each mapping with their meaning and schema, the form of a value, and durations.

`Members` are the words of one mapping. The readers know no other words, and the JSON Schemas that editors use (json_schemas.py)
have exactly these. The checks say whether a node is a mapping, text, a list of text, a number or a name. In each of them,
`subject` names the node in a problem's text ("`on`", "a test"), and `cure` says what would be right. A duration has a unit:
`500 ms`, `2 s`, `5 min`, `1 h`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, get_args

from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.product import DocumentFormat
from processor.values.entity import (
    AbsentChoice,
    CompareWord,
    DecimalForm,
    KeepChoice,
    TimestampUnit,
    TruncateChoice,
    TypeName,
    UnrepresentableChoice,
)
from processor.values.envelopes.kinds import FORMATS
from statestore.values import MAX_COLUMNS

JsonSchema = dict[str, Any]


class Word(NamedTuple):
    """A key of a mapping."""

    meaning: str
    """With the default."""
    schema: JsonSchema
    """What its value may be, for editors."""


Members = Mapping[str, Word]
"""The keys of a mapping, in their order."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
TOPIC = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}")
DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(ms|s|min|h)")
MOST_SHARDS: Final = 100
MAX_LIMIT: Final = 2**31 - 1
MAX_LEVELS: Final = 32
"""Of a recursive join. Each level is a join of its own in the plan, and a document of more levels is hard to read."""


def _one_of(choices: Iterable[str | None], **more: Any) -> JsonSchema:
    return {"enum": list(choices), **more}


def _map_of(values: JsonSchema, least: int = 1, **more: Any) -> JsonSchema:
    limits = {"minProperties": least} if least else {}
    return {"type": "object", **limits, **more, "additionalProperties": values}


def _by_column(choice: JsonSchema) -> JsonSchema:
    """The choice of all columns, or of the named ones."""
    return {"anyOf": [choice, _map_of(choice, 0)]}


def mapping(members: Members, *required: str) -> JsonSchema:
    """The schema of a mapping with exactly these members."""
    properties = {name: {**word.schema, "description": word.meaning} for name, word in members.items()}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _column_type() -> JsonSchema:
    """The common types to choose from, and all that the reader of types takes."""
    names, units = "|".join(get_args(TypeName)), "|".join(get_args(TimestampUnit))
    arguments = rf"decimal\s*\(\s*\d+\s*(,\s*\d+\s*)?\)|timestamp\s*\(\s*({units})\s*\)|json\s*\(\s*text\s*\)|({names})"
    more = ("decimal(12,2)", "timestamp(ms)", "timestamp(us)", "json(text)", "string[]", "int[]", "json[]")
    every = {"type": "string", "pattern": rf"^\s*({arguments})\s*(\[\s*\])?\s*$"}
    return {"anyOf": [_one_of((*get_args(TypeName), *more)), every]}


TEXT: Final[JsonSchema] = {"type": "string", "minLength": 1}
NAME_TEXT: Final[JsonSchema] = {"type": "string", "pattern": f"^{NAME.pattern}$"}
TOPIC_TEXT: Final[JsonSchema] = {"type": "string", "pattern": f"^{TOPIC.pattern}$"}
CLOCK_STEP: Final = re.compile(r"([0-9]{1,5}) ?(s|seconds?|min|minutes?|h|hours?|day)")
CLOCK_TEXT: Final[JsonSchema] = {"type": "string", "pattern": f"^{CLOCK_STEP.pattern}$"}
DURATION_TEXT: Final[JsonSchema] = {"type": "string", "pattern": f"^{DURATION.pattern}$"}
KEEPS: Final = _one_of(get_args(KeepChoice))
EXPRESSION: Final[JsonSchema] = {"type": ["string", "number", "boolean", "null"]}
_PROSE: Final[JsonSchema] = {"type": "string"}
_IS: Final[JsonSchema] = {"type": "boolean", "default": False}
_COLUMNS: Final[JsonSchema] = {"type": "array", "items": TEXT}
_WORDS: Final = _one_of(get_args(CompareWord))
_COMPARE: Final[JsonSchema] = {"anyOf": [_WORDS, {"type": "array", "items": _WORDS}]}
_JOINS: Final[JsonSchema] = {"$ref": "#/definitions/joins"}
_DOCUMENTS: Final[JsonSchema] = {"type": "object", "minProperties": 1}

NOTE: Final[Members] = {
    "description": Word("Words for readers; the pages of `statestore catalogue` show them.", _PROSE),
    "owner": Word("The team or the person that answers for it, for readers.", _PROSE),
}
COLUMN: Final[Members] = {
    "type": Word("The type of the column. `[]` makes an array.", _column_type()),
    "compare": Word(
        "How its text compares: ci (upper and lower case are one), trimmed (spaces at the end do not count), or a list of "
        "both. Default: by code point.",
        _COMPARE,
    ),
    "as": Word(
        "An expression over the other columns of the row, which makes a column that the source does not have.", TEXT
    ),
    "not_null": Word(
        "true: the source has no null in the column, so null means a value that it did not send, and the stored value "
        "stays. Default: false.",
        _IS,
    ),
    "description": NOTE["description"],
}
_FLAG_VALUES: Final = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}
FLAG: Final[Members] = {
    "column": Word("The member: a column, or a path below one, `_cdc.op`.", TEXT),
    "values": Word(
        "The values that say a delete. Default: every value but null, empty text and false.",
        _FLAG_VALUES,
    ),
    "truncates": Word("The values that say that the source emptied the table, `[T]`. Default: none.", _FLAG_VALUES),
}


def _columns() -> JsonSchema:
    """Each column is its type, or a mapping with it."""
    alone = COLUMN["type"]
    column = {"anyOf": [*alone.schema["anyOf"], mapping(COLUMN, "type")], "description": alone.meaning}
    return _map_of(column, maxProperties=MAX_COLUMNS)


_DELETED: Final = mapping(FLAG, "column")
ENTITY: Final[Members] = {
    "topic": Word("The Kafka topic of the changes. Default: the name of the entity.", TOPIC_TEXT),
    "key": Word(
        "The columns of the primary key, in order. Each is a declared column, not json and not an array.",
        {**_COLUMNS, "minItems": 1, "uniqueItems": True},
    ),
    "columns": Word(
        "Columns with their types, or with `{type: T, compare: ci, description: text}`. The job stores "
        "other columns too, and passes them through as they came.",
        _columns(),
    ),
    "shards": Word(
        "The number of partitions of the table for the rows; it never changes later. Default: 1.",
        {"type": "integer", "minimum": 1, "maximum": MOST_SHARDS, "default": 1},
    ),
    "format": Word("The form of the values. Default: each record shows its own form.", _one_of(FORMATS)),
    "table": Word(
        "The table whose records count, `orders` or `public.orders`; the job ignores other tables in the topic. Default: "
        "all records of the topic.",
        TEXT,
    ),
    "deleted": Word(
        "The member of rows without an envelope that says a delete, `{column: op_type, values: [D]}`, or several of them. "
        "Default: a null value, and Debezium's own members.",
        {"anyOf": [_DELETED, {"type": "array", "items": _DELETED}]},
    ),
    "decimals": Word(
        "The form of text in decimal and float columns without a schema, for all or by column: text is digits "
        "(decimal.handling.mode string), bytes is Base64 (precise). Default: the first clear record of a decimal(p,s) decides.",
        _by_column(_one_of(get_args(DecimalForm))),
    ),
    "truncate": Word(
        "What the job does when the source empties the table. Default: refuse, which stops the job.",
        _one_of(get_args(TruncateChoice), default="refuse"),
    ),
    "keep": Word(
        "The columns that rows store: all, or only the declared ones. Default: that of the file, else all.", KEEPS
    ),
    "source": Word(
        "The table in the source database, `schema.table`, for `verify --source`. Default: the end of the topic's name.",
        TEXT,
    ),
    "transactions": Word(
        "The topic of the connector's transaction metadata: how many records each transaction has. Default: that of "
        "the file, else none.",
        TOPIC_TEXT,
    ),
    "unavailable": Word(
        "The unavailable.value.placeholder of the connector. Default: that of the file, else Debezium's.", TEXT
    ),
    "absent": Word(
        "What declared columns have that a record lacks, for all or by column: null, or keep for the stored value. "
        "Default: null, and `status` names them.",
        _by_column(_one_of((*get_args(AbsentChoice), None))),
    ),
    "unrepresentable": Word(
        "What becomes of a value of the source that the declared type cannot hold (infinity, NaN, a zero date), in all columns "
        "outside the key or by column: null, or refuse, a dead letter. Default: refuse.",
        _by_column(_one_of((*get_args(UnrepresentableChoice), None))),
    ),
    **NOTE,
}
FILE: Final[Members] = {
    "keep": Word("The columns that rows of all entities store, where an entity does not say it. Default: all.", KEEPS),
    "transactions": Word(
        "The topic of the transaction metadata of all entities that do not name another. Default: none.", TOPIC_TEXT
    ),
    "unavailable": Word(
        "The unavailable.value.placeholder of the connector, of all entities that do not say it. Default: Debezium's.",
        TEXT,
    ),
}
"""What entities.yaml may say for all its entities."""
_WHERE: Final[Members] = {
    "where": Word("The rows that count: an SQL condition. At the root: the rows that have a document.", EXPRESSION),
}
_SHOWN: Final[Members] = {
    "fields": Word(
        "The members of the object: a list of columns, or a mapping `name: expression`, also of mappings and lists; `*` is all "
        "declared columns. Default: the whole row.",
        {"anyOf": [{**_COLUMNS, "uniqueItems": True}, _map_of({"$ref": "#/definitions/member"}, 0)]},
    ),
    "except": Word(
        "The declared columns without these: of `*` in `fields`, or in place of `fields`.",
        {**_COLUMNS, "minItems": 1, "uniqueItems": True},
    ),
    "value": Word(
        "One expression in place of an object; for a list, a list of values; an aggregate such as count(*).", EXPRESSION
    ),
    "join": Word(
        "Joins that `fields`, `value`, `where` and `order_by` of this level use, and that show nothing themselves.",
        _JOINS,
    ),
    "embed": Word("Joins that the document shows under their names.", {"$ref": "#/definitions/embeds"}),
}
PUBLISH: Final[Members] = {
    "transactions": Word(
        "whole: wait until each source transaction that touched the root is complete. Its tables name the topic "
        "of the connector's transaction metadata with `transactions`.",
        _one_of(("whole",)),
    ),
    "quiet": Word("Wait until the root has not changed for this long, e.g. `2 s`.", DURATION_TEXT),
    "every": Word("At most one message of a root in this time, e.g. `30 s`.", DURATION_TEXT),
    "at_most": Word(
        "No document waits longer, whatever the others say. Default: 60 s, or `every` where that is longer.",
        DURATION_TEXT,
    ),
}
GROUP: Final[Members] = {
    "group": Word("The entity whose rows make groups.", TEXT),
    "by": Word(
        "The columns of a group, a list, or a mapping `name: column or expression`: one document for each of their values.",
        {"anyOf": [{**_COLUMNS, "minItems": 1, "uniqueItems": True}, _map_of(TEXT)]},
    ),
    "where": Word("Which rows count. Default: all of them.", EXPRESSION),
    "join": Word("Joins of the rows, for `where` and for aggregates.", _JOINS),
}
PRODUCT: Final[Members] = {
    "product": Word("The name of the product.", NAME_TEXT),
    "root": Word(
        "The entity at the top: one document for each of its rows, or with `{group: entity, by: [column]}` one for each value.",
        {"anyOf": [TEXT, mapping(GROUP, "group", "by")]},
    ),
    "topic": Word("The Kafka topic of the documents. Default: the name of the product.", TOPIC_TEXT),
    "format": Word(
        "The form of the documents in the topic. Default: json.", _one_of(get_args(DocumentFormat), default="json")
    ),
    "publish": Word(
        "When a document goes out, once its root has changed. Default: with the batch of the change.",
        {**mapping(PUBLISH), "minProperties": 1},
    ),
    "clock": Word(
        "The step of the time that expressions read as `clock`, e.g. `1 minute`: a document changes when time passes a "
        "boundary, not with each step. Default: no clock.",
        CLOCK_TEXT,
    ),
    "tzdata": Word(
        "The release of the time zones that `at time zone` asks, `2026f`. The registry has it of each product that names one. "
        "Default: the installed release.",
        TEXT,
    ),
    "key": Word(
        "The key of the messages, `name: column` of the root's key, or `name: \"'constant'\"`. Products may then share a topic. "
        "Default: the key of the root.",
        _map_of(EXPRESSION),
    ),
    "headers": Word(
        "Kafka headers of the messages, `name: column or expression` of the root. Default: those of statestore alone.",
        _map_of(EXPRESSION),
    ),
    "partition_by": Word(
        "Columns of the root that choose the partition of its messages. Default: the key of the message.",
        {**_COLUMNS, "minItems": 1, "uniqueItems": True},
    ),
    "compare": Word(
        "How columns compare in this product, `{entity: {column: ci}}`, whatever entities.yaml says. Default: as it says.",
        _map_of(_map_of(_COMPARE), 0),
    ),
    "computed": Word(
        "The computed columns of this product, `{entity: {column: {type: T, as: expression}}}`. Default: those of entities.yaml.",
        _map_of(_map_of(mapping(COLUMN, "type", "as")), 0),
    ),
    **NOTE,
    **_WHERE,
    **_SHOWN,
    "sql": Word("The whole product as one SELECT, in place of root, fields, join and embed.", TEXT),
    "flat": Word(
        "true: the document has exactly the columns of the query, whose rows are those of the root. Default: a table joined "
        "to the root is a member of its own, unless the query has aggregates, subqueries or GROUP BY.",
        _IS,
    ),
}
JOIN: Final[Members] = {
    "one": Word("The joined entity: an object, or null without a match.", TEXT),
    "many": Word("The joined entity: a list, empty without a match.", TEXT),
    "on": Word(
        "Child column: parent column, for one or several. `column[]` on one side joins by the elements of an array.",
        _map_of(TEXT),
    ),
    "through": Word(
        "A join between: the rows of all its rows are one list. `on` then names its columns; `parent` is its row.",
        {"$ref": "#/definitions/through"},
    ),
    "strong": Word("true: read the join without an index. Default: false.", _IS),
    **_WHERE,
    "required": Word("true: without a match the row above is left out. Default: false, a left join.", _IS),
    "order_by": Word(
        "The order of the rows: columns or expressions, `-` before one for descending. Default: the primary key.",
        {"anyOf": [TEXT, _COLUMNS]},
    ),
    "limit": Word("The longest list. Default: all rows.", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
    "ordered": Word(
        "true: an index has the rows in their order, so a read ends at the limit, and a row costs a write more. Default: false.",
        _IS,
    ),
    "total": Word("true: add NAME_total, the number of rows before the limit. Default: false.", _IS),
    "distinct": Word("true: each element of the list is in it once, the first of the order. Default: false.", _IS),
    "key": Word(
        "A column or an expression: the list is an object by its text. Of rows with one key the first.", EXPRESSION
    ),
    "recursive": Word(
        "The most levels of a join between rows of one entity: each row shows the join again, down a tree or up to its top. A "
        "row that is above itself is left out.",
        {"type": "integer", "minimum": 2, "maximum": MAX_LEVELS},
    ),
    "as_list": Word("true: the rows of all levels are one list; `depth()` is the level, 1 for the first.", _IS),
    **_SHOWN,
}
PART: Final[Members] = {word: JOIN[word] for word in ("many", "on", "through", "strong", "where", "fields", "join")}
UNION: Final[Members] = {
    "union": Word(
        "The rows of several joins in one list, `{name: {many: entity, on: ..., fields: ...}}`. All parts show the same "
        "`fields`, which `order_by` and `key` name.",
        {"type": "object", "minProperties": 2, "additionalProperties": {"$ref": "#/definitions/part"}},
    ),
    **{word: JOIN[word] for word in ("order_by", "limit", "total", "distinct", "key")},
}
"""An embed of the rows of several joins."""
THROUGH: Final[Members] = {
    word: JOIN[word] for word in ("one", "many", "on", "through", "strong", "where", "required", "join")
}
"""The join that leads to another one of its level."""
PAUSE: Final[Members] = {
    "after": Word(
        "So much time passes, e.g. `2 s`, before the next changes come, or before the test looks at the documents.",
        DURATION_TEXT,
    ),
}
_LINE: Final[JsonSchema] = {
    "type": "object",
    "properties": {"topic": TEXT},
    "required": ["topic"],
    "anyOf": [{"required": ["value"]}, {"required": ["value_base64"]}],
}
TEST: Final[Members] = {
    "test": Word("The name of the test.", TEXT),
    "product": Word("The product. Default: the only one.", TEXT),
    "clock": Word("The moment at which the changes come, for a product with `clock`: `2026-11-20T08:00:00Z`.", TEXT),
    "given": Word("Rows by entity, stored first.", _map_of({"type": "array", "items": _DOCUMENTS})),
    "changes": Word(
        "Then lines of recorded topics, in order. Between them and at the end, `after: 2 s` lets time pass.",
        {"type": "array", "items": {"anyOf": [_LINE, mapping(PAUSE, "after")]}},
    ),
    "expect": Word("Whole documents by their keys; null for no document.", _DOCUMENTS),
    "contains": Word("Some members of documents by their keys.", _map_of({"type": "object"})),
}

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_PROSE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_SHOWN = 60


def as_map(node: YamlNode | None, subject: str, cure: str, problems: Problems) -> Map | None:
    """The node as a mapping with at least one entry. For another node: adds a problem and returns None. None gives None."""
    if isinstance(node, Map) and node.entries:
        return node
    if node is not None:
        problems.add(node, _mismatch(subject, node, "a mapping"), cure)
    return None


def as_text(node: YamlNode, subject: str, cure: str, problems: Problems) -> str | None:
    """The node as text that is not empty and has no control characters. For another node: adds a problem and returns None."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value and not _CONTROL.search(node.value):
        return node.value
    problems.add(node, _mismatch(subject, node, "text"), cure)
    return None


def as_prose(node: YamlNode | None, subject: str, problems: Problems) -> str:
    """The node as text of one or several lines; empty for None. For another node: adds a problem and returns empty text."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and not _CONTROL_IN_PROSE.search(node.value):
        return node.value.strip()
    if node is not None:
        problems.add(node, _mismatch(subject, node, "text"), "write text, in quotes if it has a colon or a comma")
    return ""


def as_texts(node: YamlNode, subject: str, cure: str, problems: Problems) -> list[tuple[YamlNode, str]]:
    """The node as a list of texts, each with its node. Leaves out every item that is not text, and adds a problem for it."""
    if not isinstance(node, Sequence):
        problems.add(node, _mismatch(subject, node, "a list"), cure)
        return []
    read = [(item, as_text(item, f"an item of {subject}", cure, problems)) for item in node.items]
    return [(item, text) for item, text in read if text is not None]


def as_count(node: YamlNode, subject: str, most: int | None, problems: Problems) -> int | None:
    """The node as an integer from 1 to `most` (None: no limit). For another node: adds a problem and returns None."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 and (most is None or value <= most):
        return value
    cure = f"write an integer from 1 to {most}" if most else "write an integer above 0"
    if isinstance(value, str) and value.isdecimal():
        cure = f"write {value} without quotes: quotes make a text of it"
    problems.add(node, f"{subject} is {describe_node(node)}", cure)
    return None


def as_flag(body: Map, word: str, problems: Problems, place: str = "") -> bool:
    """The value of a word as true or false; false without the word. For another value: adds a problem and returns false. `place`:
    behind the word in a problem's text."""
    node = body.get(word)
    if node is None or (isinstance(node, Scalar) and isinstance(node.value, bool)):
        return isinstance(node, Scalar) and bool(node.value)
    problems.add(node, f"`{word}`{place} is {describe_node(node)}", f"write `{word}: true`, or leave it out")
    return False


def as_name(node: YamlNode, subject: str, problems: Problems) -> str | None:
    """The node as the name of an entity or a product. For another node: adds a problem and returns None."""
    cure = "use letters, digits, `_`, `-` and `.`, and begin with a letter or `_`"
    text = as_text(node, subject, cure, problems)
    if text is None or NAME.fullmatch(text):
        return text
    problems.add(node, f"{subject} is `{text}`, which is not a valid name", cure)
    return None


def as_topic(node: YamlNode, problems: Problems, key: str = "topic") -> str | None:
    """The node as the name of a Kafka topic. For another node: adds a problem and returns None."""
    cure = "use at most 249 letters, digits, `_`, `-` and `.`, and not `.` or `..` alone"
    text = as_text(node, f"`{key}`", cure, problems)
    if text is None or TOPIC.fullmatch(text):
        return text
    problems.add(node, f"`{text}` is not a valid Kafka topic name", cure)
    return None


ELSEWHERE: Final = {
    "group_by": "write `root: {group: entity, by: [column]}` for a document of each group",
    "having": "write `where` of the product, over aggregates: `count(*) > 1`",
    "recursive": "write it in a join of a table to itself: `{many: node, on: {parent_id: id}, recursive: 8}`",
}
"""What to write in place of words that other tools have."""


def check_keys(node: Map, subject: str, known: Collection[str], problems: Problems) -> None:
    """Adds a problem for each unknown key of the mapping."""
    for name, (key, _) in node.entries.items():
        if name not in known:
            problems.add(key, f"{subject} has no key `{name}`", ELSEWHERE.get(name) or suggest(name, known))


def _mismatch(subject: str, node: YamlNode, expected: str) -> str:
    is_empty = describe_node(node) == "empty" or (isinstance(node, Map) and not node.entries)
    return f"{subject} is empty" if is_empty else f"{subject} is {describe_node(node)}, not {expected}"


def describe_node(node: YamlNode) -> str:
    """The words for a node in a problem's text: "a list", "`7`", "empty"."""
    match node:
        case Map(entries=entries):
            return "a mapping" if entries else "an empty mapping"
        case Sequence(items=items):
            return "a list" if items else "an empty list"
        case Scalar(value=None) | Scalar(text=""):
            return "empty"
        case Scalar(value=bool()):
            return f"the boolean {node.text}"
        case _:
            return f"`{node.text}`" if len(node.text) <= _MAX_SHOWN else f"`{node.text[:_MAX_SHOWN]}...`"


_SECONDS: Final = {"ms": 0.001, "s": 1, "min": 60, "h": 3_600}
MOST_SECONDS: Final = 86_400.0


def read_duration(node: YamlNode, subject: str, problems: Problems) -> float | None:
    """The seconds of a duration from 1 ms to a day. For another node: adds a problem and returns None."""
    cure = "write a duration with its unit: `500 ms`, `2 s`, `5 min` or `1 h`"
    if isinstance(node, Scalar) and type(node.value) in (int, float):
        problems.add(node, f"{subject} is `{node.text}`, which has no unit", cure)
        return None
    text = as_text(node, subject, cure, problems)
    if text is None:
        return None
    match = DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not match:
        problems.add(node, f"{subject} is `{text}`, which is no duration", cure)
    elif not 0.001 <= seconds <= MOST_SECONDS:
        problems.add(node, f"{subject} is `{text}`", "write a duration from 1 ms to 24 h")
    else:
        return round(seconds, 3)
    return None


def read_clock(node: YamlNode, problems: Problems) -> int:
    """The step of a clock in seconds, which divides a day. For another node: adds a problem and returns 0."""
    cure = "write a step that divides a day: `clock: 1 minute`, `10 s`, `1 hour` or `1 day`"
    text = as_text(node, "`clock`", cure, problems)
    match = None if text is None else CLOCK_STEP.fullmatch(text)
    step = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2][0]] if match else 0
    if text is not None and (not match or not step or 86_400 % step):
        problems.add(node, f"`clock` is `{text}`", cure)
        return 0
    return step


def write_duration(seconds: float) -> str:
    """The duration as an author writes it, in the largest unit that holds it as a whole number."""
    for unit in ("h", "min", "s"):
        if seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f} {unit}"
    return f"{seconds * 1000:.0f} ms"

"""Deletes that a member of a row says: of plain and flattened records, whose transform or connector writes no null.

The entity names the member in `deleted`. A member that only looks like such a flag decides nothing: where its value says delete,
and the entity does not declare it as a column, the row must not be stored.

    op_type: D, _op: d, Op: DELETE      the operation            _cdc: {op: D}, _cdc.op: D                the same in an object
    _deleted: true                      whether it is deleted    _ab_cdc_deleted_at: 2026-03-01T09:00Z    since when it is deleted

`deleted: true` and `is_deleted: 1` are no such flags: tables have columns of these names, and their rows are there.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from processor.values.entity import DeleteFlag, Entity
from processor.values.reasons import Mismatch, describe_value
from processor.values.record import Value


class SeenFlag(NamedTuple):
    """A flag in a row, as `deleted` names it. `gone`: whether its value says delete; `member`: the member of the row."""

    column: str
    value: Value
    gone: bool
    member: str


def is_flagged(row: Mapping[str, Value], flags: Iterable[DeleteFlag]) -> bool:
    """Whether a row says by one of the entity's flags that it is deleted."""
    return any(_is_gone(flag_value(row, flag.column), flag) for flag in flags)


def is_truncate(row: Mapping[str, Value], flags: Iterable[DeleteFlag]) -> bool:
    """Whether a row says by one of the entity's flags that the source emptied its table."""
    return any(flag.truncates and flag_text(flag_value(row, flag.column)) in flag.truncates for flag in flags)


def flag_value(row: Mapping[str, Value], column: str) -> Value:
    """The value of the member with this name, else at this path of members. None where nothing is there."""
    if column in row:
        return row[column]
    found: Value = row
    for step in column.split("."):
        found = found.get(step) if type(found) is dict else None
    return found


def flag_text(value: Value) -> str:
    """The value as in `values` of a flag."""
    return str(value).lower() if type(value) is bool else str(value)


def seen_flags(row: Mapping[str, Value], columns: Collection[str]) -> Iterator[SeenFlag]:
    """The members of a row that look like flags. `columns`: the declared columns, which are none."""
    for name in FLAG_MEMBERS.intersection(row):
        if name in columns:
            continue
        value = row[name]
        if name in _FLAGS:
            yield SeenFlag(name, value, _FLAGS[name](value), name)
        elif type(value) is dict:
            inner = (step for step in value if step in _INNER)
            yield from (SeenFlag(f"{name}.{step}", value[step], _INNER[step](value[step]), name) for step in inner)


def unsaid_delete(row: Mapping[str, Value], entity: Entity) -> Mismatch | None:
    """The reason to refuse a row that may say a delete, which the entity does not explain. None for any other row."""
    said = ((flag.column, flag_value(row, flag.column)) for flag in entity.deleted)
    seen = [SeenFlag(column, value, _is_operation(value), column) for column, value in said]
    gone = [flag for flag in (*seen, *seen_flags(row, entity.columns)) if flag.gone]
    return _refusal(min(gone, key=lambda flag: flag.column)) if gone else None


def _refusal(flag: SeenFlag) -> Mismatch:
    text = flag_text(flag.value)
    word = f"`deleted: {{column: {flag.column}" + (f", values: [{text}]}}`" if len(text) <= 10 else "}`")
    cure = f"if it does, write {word} in the entity; if {flag.member} is a column of the table, declare it"
    what = "which may say that the row is deleted"
    plain = f"{flag.column} has a value {what}: {cure}"
    return Mismatch(f"{flag.column} is {describe_value(flag.value)}, {what}: {cure}", "delete-unsaid", plain)


def _is_gone(value: Value, flag: DeleteFlag) -> bool:
    text = "" if value is None else flag_text(value)
    return text in flag.values if flag.values else text.lower() not in ("", "false")


def _is_operation(value: Value) -> bool:
    return type(value) is str and value.lower() in ("d", "del", "delete", "deleted", "-d", "dl")


def _is_true(value: Value) -> bool:
    return value is True or value == 1 or (type(value) is str and value.lower() in ("true", "t", "1", "y", "yes"))


def _is_time(value: Value) -> bool:
    return value is not None and value != ""


Says = Callable[[Value], bool]


def _names(says: Says, *texts: str, prefixes: tuple[str, ...] = ("_", "__")) -> dict[str, Says]:
    """Flags of one meaning: each name behind each prefix, in the cases that systems write."""
    cased = [form for text in texts for form in (text, text.upper(), text.capitalize())]
    camel = ["".join(part.capitalize() if n else part for n, part in enumerate(text.split("_"))) for text in texts]
    return {f"{prefix}{name}": says for name in (*cased, *camel) for prefix in prefixes}


_OPERATIONS: Final = (
    "op",
    "op_type",
    "operation",
    "operation_type",
    "change_type",
    "row_kind",
    "cdc_op",
    "cdc_operation",
)
_INNER: Final[Mapping[str, Says]] = _names(
    _is_operation, *_OPERATIONS, "optype", "type", "kind", "action", prefixes=("", "_")
) | _names(_is_true, "deleted", "is_deleted", prefixes=("", "_"))
_OBJECTS: Final = ("_cdc", "__cdc", "_meta", "__meta", "_metadata", "__metadata", "cdc")
_FLAGS: Final[Mapping[str, Says]] = {
    **_names(_is_operation, *_OPERATIONS, "optype", "rowkind", "header__change_oper", prefixes=("", "_", "__")),
    **_names(_is_true, "deleted", "is_deleted", "delete", "fivetran_deleted", "cdc_deleted"),
    **_names(_is_time, "deleted_at", "ab_cdc_deleted_at", "sdc_deleted_at"),
    "__$operation": lambda value: value == 1,  # SQL Server
    **{f"{name}.{step}": says for name in _OBJECTS for step, says in _INNER.items()},  # made flat by a transform
}
FLAG_MEMBERS: Final = frozenset((*_FLAGS, *_OBJECTS))
"""A row without any of these members says no delete, unless the entity names another."""

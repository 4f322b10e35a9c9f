"""A source table as a definition describes it: its key, its columns with their types, and its topic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from processor.values.placeholders import PLACEHOLDER

TypeName = Literal["int", "string", "float", "decimal", "bool", "date", "timestamp", "json"]
TimestampUnit = Literal["ms", "us", "ns"]
RecordFormat = Literal["debezium", "flattened", "plain"]
DecimalForm = Literal["text", "bytes"]
TruncateChoice = Literal["refuse", "ignore", "delete"]
KeepChoice = Literal["all", "declared"]
AbsentChoice = Literal["null", "keep"]
CompareWord = Literal["ci", "trimmed"]
Compare = tuple[CompareWord, ...]
"""How text compares, where not by its code points. `ci`: upper and lower case are one. `trimmed`: spaces at the end do not
count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The type of a column. `decimal(12,2)` has a precision and a scale, `string[]` is an array. `timestamp(us)` has the
    unit (ms, us or ns) of timestamps that come as bare numbers. `json(text)` has `text`: text is JSON in every record. `compare`:
    how its text compares; the text of the type has no word of it."""

    name: TypeName
    array: bool = False
    precision: int | None = None
    scale: int | None = None
    unit: TimestampUnit | None = None
    text: bool = False
    compare: Compare = ()

    @property
    def kind(self) -> str | None:
        """Values compare and are ordered within one kind. None: values of this type do not compare."""
        if self.array or self.name == "json":
            return None
        return "number" if self.name in ("int", "float", "decimal") else self.name

    def __str__(self) -> str:
        args = [str(x) for x in (self.precision, self.scale, self.unit, "text" if self.text else None) if x is not None]
        return self.name + (f"({','.join(args)})" if args else "") + ("[]" if self.array else "")


class DeleteFlag(NamedTuple):
    """The member of plain and flattened records that says a delete, a column or a path (`_cdc.op`), and the texts of the values
    that say so; empty: every value but null, empty text and false."""

    column: str
    values: tuple[str, ...] = ()


def united(compares: Iterable[Compare]) -> Compare:
    """How texts compare with each other: by the words of all of them, in one order."""
    words = {word for compare in compares for word in compare}
    return tuple(word for word in get_args(CompareWord) if word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A source table. `columns` keeps the declared order, and key columns are not null. `format` None: each record shows
    its own format. `decimals`: the form of text in number columns, or in some of them, where a record has no schema: digits, or
    Debezium's bytes. `truncate`: when the source empties the table, the job stops (`refuse`), keeps the rows (`ignore`), or
    deletes those that are older than the truncate (`delete`). `keep`: the columns that rows store. `source`: its table in the
    source, `schema.table`; empty: by the topic. `transactions`: the topic of the connector that says which transactions have
    ended; empty: the records name no transaction. `unavailable`: the connector's `unavailable.value.placeholder`. `absent`: what
    declared columns, or some of them, have where a record lacks them: null, or the stored value; None: null, and somebody should
    know. `not_null`: the columns in which the source has no null, so null means a value that it did not send.
    `table`: the table whose records count, `orders` or `public.orders`; the job ignores those of other tables; empty: all count.
    `deleted`: the members by which rows say that they are deleted."""

    name: str
    topic: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    shards: int = 1
    format: RecordFormat | None = None
    truncate: TruncateChoice = "refuse"
    decimals: DecimalForm | Mapping[str, DecimalForm] | None = None
    keep: KeepChoice = "all"
    source: str = ""
    transactions: str = ""
    unavailable: str = PLACEHOLDER
    absent: AbsentChoice | Mapping[str, AbsentChoice] | None = None
    not_null: frozenset[str] = frozenset()
    table: str = ""
    deleted: tuple[DeleteFlag, ...] = ()

    @property
    def keeps_undeclared(self) -> bool:
        """Whether rows store the columns that the entity does not declare."""
        return self.keep == "all"

    def decimal_form(self, column: str) -> DecimalForm | None:
        """What the entity says of the text of numbers in a column."""
        return self.decimals.get(column) if isinstance(self.decimals, Mapping) else self.decimals

    def absent_choice(self, column: str) -> AbsentChoice | None:
        """What the entity says of a column that a record lacks."""
        return self.absent.get(column) if isinstance(self.absent, Mapping) else self.absent

    def settles(self, column: str) -> bool:
        """Whether a record settles the form of text in a column: the column has a scale, so bytes can be read, and the entity
        does not say the form. A plain row has digits."""
        column_type = self.columns.get(column)
        scaled = column_type is not None and column_type.scale is not None
        return scaled and self.format != "plain" and self.decimal_form(column) is None

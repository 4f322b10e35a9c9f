"""A source table as a definition describes it: its key, its columns with their types, and its topic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

TypeName = Literal["int", "string", "float", "decimal", "bool", "date", "timestamp", "json"]
TimestampUnit = Literal["ms", "us", "ns"]
RecordFormat = Literal["debezium", "flattened", "plain"]
DecimalForm = Literal["text", "bytes"]
TruncateChoice = Literal["refuse", "ignore", "delete"]
KeepChoice = Literal["all", "declared"]
CompareWord = Literal["ci", "trimmed"]
Compare = tuple[CompareWord, ...]
"""How text compares, where not by its code points. `ci`: upper and lower case are one. `trimmed`: spaces at the end do not
count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The type of a column. `decimal(12,2)` has a precision and a scale, `string[]` is an array. `timestamp(us)` has the
    unit (ms, us or ns) of timestamps that come as bare numbers. `compare`: how its text compares; the text of the type has no
    word of it."""

    name: TypeName
    array: bool = False
    precision: int | None = None
    scale: int | None = None
    unit: TimestampUnit | None = None
    compare: Compare = ()

    @property
    def kind(self) -> str | None:
        """Values compare and are ordered within one kind. None: values of this type do not compare."""
        if self.array or self.name == "json":
            return None
        return "number" if self.name in ("int", "float", "decimal") else self.name

    def __str__(self) -> str:
        args = [str(x) for x in (self.precision, self.scale, self.unit) if x is not None]
        return self.name + (f"({','.join(args)})" if args else "") + ("[]" if self.array else "")


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
    ended; empty: the records name no transaction."""

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

    @property
    def keeps_undeclared(self) -> bool:
        """Whether rows store the columns that the entity does not declare."""
        return self.keep == "all"

    def decimal_form(self, column: str) -> DecimalForm | None:
        """What the entity says of the text of numbers in a column."""
        return self.decimals.get(column) if isinstance(self.decimals, Mapping) else self.decimals

    def settles(self, column: str) -> bool:
        """Whether a record settles the form of text in a column: the column has a scale, so bytes can be read, and the entity
        does not say the form. A plain row has digits."""
        column_type = self.columns.get(column)
        scaled = column_type is not None and column_type.scale is not None
        return scaled and self.format != "plain" and self.decimal_form(column) is None

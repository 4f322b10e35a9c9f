"""A source table as a definition describes it: its key, its columns and their types, where its records come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TypeName = Literal["int", "string", "float", "decimal", "bool", "date", "timestamp", "json"]
RecordFormat = Literal["debezium", "flattened", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The type of a column: `decimal(12,2)` has precision and scale, `timestamp(us)` the unit (ms, us or ns) of bare
    numbers, `string[]` is an array."""

    name: TypeName
    array: bool = False
    precision: int | None = None
    scale: int | None = None
    unit: Literal["ms", "us", "ns"] | None = None

    @property
    def kind(self) -> str | None:
        """What values compare and are ordered as: those of one kind do so with each other; None: not at all."""
        if self.array or self.name == "json":
            return None
        return "number" if self.name in ("int", "float", "decimal") else self.name

    def __str__(self) -> str:
        args = [str(x) for x in (self.precision, self.scale, self.unit) if x is not None]
        return self.name + (f"({','.join(args)})" if args else "") + ("[]" if self.array else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A source table. `columns` keeps the declared order; key columns are not null; `format` None: recognised record by
    record."""

    name: str
    topic: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    shards: int = 1
    format: RecordFormat | None = None

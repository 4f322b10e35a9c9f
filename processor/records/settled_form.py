"""The form of the text in a decimal column, as the first record with one meaning settled it: digits, or Debezium's bytes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from processor.records.entity import DecimalForm
from processor.records.record import Record


class SettledForm(NamedTuple):
    """The form of a column since a record. `early`: the record to decode came before that one, in the same partition. Text that
    may be digits and bytes has no form there: a repeated batch refuses what its first try refused."""

    form: DecimalForm
    topic: str
    partition: int
    epoch: int
    offset: int
    early: bool = False

    @property
    def since(self) -> str:
        """The position of the record, for people."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    def is_after(self, record: Record) -> bool:
        """Whether the record came before the one that settled the form, in the same partition."""
        if (record.topic, record.partition) != (self.topic, self.partition):
            return False
        return (record.epoch, record.offset) < (self.epoch, self.offset)


ColumnForms = Mapping[str, SettledForm]
"""Column -> its form. A column that is not there has none yet."""
NO_FORMS: Final[ColumnForms] = {}


def settled_at(record: Record, form: DecimalForm) -> SettledForm:
    """The form of a column since this record."""
    return SettledForm(form, record.topic, record.partition, record.epoch, record.offset)

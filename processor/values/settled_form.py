"""The form of the text in a decimal column, as the first record with one meaning settled it: digits, or Debezium's bytes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from processor.values.entity import DecimalForm
from processor.values.record import Record


class SettledForm(NamedTuple):
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


ColumnForms = Mapping[str, SettledForm]
"""Column -> its form. A column that is not there has none yet."""
NO_FORMS: Final[ColumnForms] = {}


def settled_at(record: Record, form: DecimalForm) -> SettledForm:
    """The form of a column, settled by this record."""
    return SettledForm(form, record.topic, record.partition, record.epoch, record.offset)

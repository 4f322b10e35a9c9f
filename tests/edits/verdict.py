"""The verdict of `tests.edits.soak`: compares all documents with Postgres over the source tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.language.product.product import Definitions
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import oracle
from processor.values.record import Record, Value
from registry.repository import Registry
from tests.simulator.edit_shapes import CONTENTS, definitions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EditVerdict:
    """The comparison. `tables`: of the source, by entity and key."""

    settings: Settings
    registry: Registry
    tables: Mapping[str, Mapping[bytes, Mapping[str, Any]]]

    def differences(self) -> list[str]:
        """A line for each document that is not the answer of SQL, and for each of an older version."""
        stored = self.registry.snapshot()
        truth = self._truth(definitions_of(stored.products))
        found = []
        for name in CONTENTS:
            published = self.published(name)
            found += [
                f"{name} {key}: the last document is not that of SQL" for key in differing_keys(published, truth[name])
            ]
            found += list(disordered(name, published))
            version = next((one.version for one in stored.products if one.name == name), None)
            last = {record.key: record for record in published}
            found += [
                f"{name} {key!r}: the last document has version {shown}, and the product has {version}"
                for key, record in last.items()
                if record.value is not None and (shown := _header(record, "statestore.product_version")) != version
            ]
        return found

    def published(self, name: str) -> list[Record]:
        """All messages of a product so far."""
        if not Admin(self.settings.bootstrap_servers, {}).topics([name]):
            return []
        return list(read_topic(self.settings.bootstrap_servers, {}, name))

    def _truth(self, definitions: Definitions) -> dict[str, dict[str, Value]]:
        """The documents of SQL over the source tables, none for products that are not live."""
        with oracle(self.settings.registry, "soak_oracle", definitions.entities) as tables:
            tables.load({name: rows.values() for name, rows in self.tables.items()})
            return {
                name: tables.documents(definitions.products[name]) if name in definitions.products else {}
                for name in CONTENTS
            }


def disordered(name: str, published: list[Record]) -> Iterator[str]:
    """A line for each message whose sequence is not above that of an earlier message of its key."""
    highest: dict[bytes | None, int] = {}
    for record in published:
        sequence = _header(record, "statestore.sequence")
        if sequence <= highest.get(record.key, 0):
            yield f"{name} {record.key!r}: sequence {sequence} comes after {highest[record.key]}"
        highest[record.key] = sequence


def _header(record: Record, name: str) -> int:
    return int(dict(record.headers)[name] or b"")

"""Switches for a topic that several entities share (rule 2)."""

import processor.values.envelopes.kinds as kinds
from processor.engine.protocol.decode import TopicEntities
from processor.values.entity import Entity
from processor.values.envelopes.kind import Images, RowImage
from tests.simulator.without.switch import replacing


def _deleted(entity: Entity) -> Images:
    return RowImage({}, deleted=True)


first_entity = replacing(
    (TopicEntities, "of", lambda of: lambda self, record, schemas=None: next(iter(self._sharing[record.topic])))
)
"""The first entity of a topic has all its records."""

null_deletes = replacing((kinds, "_without_table", lambda _: _deleted))
"""A null value deletes the row of its key, whatever table it is of."""

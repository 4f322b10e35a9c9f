"""Switches for records of several rows (rule 2)."""

import processor.engine.protocol.decode as decode
from processor.engine.rounds import follow_up_stages
from processor.values.record import Change
from tests.simulator.without.switch import replacing


def _each_change(*changes: Change) -> Change:
    first, *others = reversed(changes)
    return first._replace(others=tuple(change._replace(part=n) for n, change in enumerate(reversed(others), start=1)))


all_changes = replacing((decode, "one_change", lambda _: _each_change))
"""A record keeps each change of a row, and all of them have its version."""


one_note = replacing((follow_up_stages, "note_key", lambda note_key: lambda place, index=0: note_key(place)))
"""The rows of a dead letter share one note."""

"""Switches for the protections of documents that move between partitions, and of headers."""

from typing import Any

import processor.engine.protocol.publish as publish
from tests.simulator.without.switch import replacing


def _of_the_value(hash_of: Any) -> Any:
    return lambda value, headers=(): hash_of(value)


hash_of_the_value_alone = replacing((publish, "hash_of", _of_the_value))


def _the_newest(shown_places: Any) -> Any:
    return lambda entry, places, acknowledged: shown_places(entry, places, acknowledged=acknowledged)[:1]


newest_place_alone = replacing((publish, "shown_places", _the_newest))


def _without_tombstones(messages: Any) -> Any:
    def changed(*args: Any) -> Any:
        return list(messages(*args))[-1:]

    return changed


no_tombstone_where_it_was = replacing((publish, "_messages", _without_tombstones))

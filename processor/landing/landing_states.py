"""The landings that a broker knows: how far each is, and when it landed something last. `statestore status` shows them.

A landing stores a note with the offsets of its group. The broker forgets a group without processes after
`offsets.retention.minutes`, 7 days by default.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from processor.kafka.group_states import GroupState, group_states

PREFIX: Final = "statestore-land-"


class LandingState(NamedTuple):
    """A landing. `landed_at`: when it landed a batch last, in seconds since 1970; `behind`: messages that have not landed;
    `processes`: how many run."""

    product: str
    place: str
    landed_at: float
    topic: str
    behind: int
    processes: int


def group_of(product: str, place: str) -> str:
    """The group of all processes that land a product in a place."""
    return f"{PREFIX}{product}-{sha256(place.encode()).hexdigest()[:8]}"


def landing_note(product: str, place: str, now: float) -> str:
    """The note that a landing stores with its offsets."""
    return orjson.dumps({"product": product, "place": place, "landed_at": now}).decode()


def landing_states(bootstrap: str, extra: Mapping[str, str]) -> list[LandingState]:
    """The landings that the broker knows. Raises KafkaError."""
    return landings_of(group_states(bootstrap, extra, PREFIX))


def landings_of(groups: Iterable[GroupState]) -> list[LandingState]:
    """The landings of groups. A group whose processes have landed nothing is none yet."""
    states = []
    for group in groups:
        notes: list[dict[str, Any]] = [orjson.loads(note) for note in group.notes]
        if notes:
            last = max(notes, key=lambda note: float(note["landed_at"]))
            states.append(LandingState(**last, topic=group.topic, behind=group.behind, processes=group.members))
    return states

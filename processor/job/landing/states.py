"""The landings of a registry: where each is, how far it is, and when it landed something last. `status` shows them.

The registry knows each landing until a person removes it. The broker knows how far it is: a landing stores a note with the
offsets of its group. The broker forgets a group without processes after `offsets.retention.minutes`, 7 days by default.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from processor.job.kafka.admin import GroupState, group_states
from registry.model import KnownLanding

PREFIX: Final = "statestore-land-"


class LandingState(NamedTuple):
    """A landing. `landed_at`: when it landed a batch last, in seconds since 1970; `behind`: messages that have not landed; both
    None where the broker does not know; `processes`: how many run. `id`: empty for a landing that no registry knows, of an
    earlier release. `seen_at`: when the registry had a sign of it last."""

    product: str
    place: str
    landed_at: float | None
    topic: str
    behind: int | None
    processes: int
    id: str = ""
    seen_at: float | None = None


def group_of(product: str, id_: str) -> str:
    """The group of all processes of a landing. `id_`: of the landing, so that no two landings share a group."""
    return f"{PREFIX}{product}-{id_}"


def landing_note(product: str, place: str, now: float) -> str:
    """The note that a landing stores with its offsets. The broker takes at most 4,096 bytes."""
    return orjson.dumps({"product": product, "place": place[:1_000], "landed_at": now}).decode()


def landing_states(known: Iterable[KnownLanding], bootstrap: str, extra: Mapping[str, str]) -> list[LandingState]:
    """The landings that the registry knows, and those of earlier releases that the broker knows. Without an address of a broker
    nobody asks it. Raises KafkaError."""
    return landings_of(known, group_states(bootstrap, extra, PREFIX) if bootstrap else ())


def landings_of(known: Iterable[KnownLanding], groups: Iterable[GroupState]) -> list[LandingState]:
    """The landings that the registry knows, each with its group, and then those of groups that it does not know. A group whose
    processes have landed nothing is no landing of an earlier release."""
    found = {group.name: group for group in groups}
    states = []
    for one in known:
        group = found.pop(group_of(one.product, one.id), None)
        seen_at, landed_at = one.seen_at.timestamp(), _last(group)["landed_at"] if group and group.notes else None
        behind, processes = (group.behind, group.members) if group else (None, 0)
        states.append(LandingState(one.product, one.place, landed_at, one.topic, behind, processes, one.id, seen_at))
    for group in found.values():
        if group.notes:
            note = _last(group)
            states.append(LandingState(**note, topic=group.topic, behind=group.behind, processes=group.members))
    return states


def _last(group: GroupState) -> dict[str, Any]:
    """The last note of a group."""
    notes: list[dict[str, Any]] = [orjson.loads(note) for note in group.notes]
    return max(notes, key=lambda note: float(note["landed_at"]))

"""A protection of the job, and how the simulator turns it off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.simulator.without.switch import Switch


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """A protection. `against`: the danger. `switch`: turns the protection off. `overrides`: conditions under which a run without
    it soon ends wrong. `also_without`: another protection that does the same work earlier, so it is off in both runs.
    `saves_requests`: a run without the protection ends right, but needs more requests. `kind`: of the runs: operators may also
    replay dead letters, by a run of their own or by the running job, repair rows from the source, erase rows, or edit the
    registry, at random or by a script;
    topics may take only small messages for a while; text of decimals may have two meanings; the table may lose its last
    writes."""

    name: str
    against: str
    switch: Switch
    overrides: Mapping[str, Any] = field(default_factory=dict)
    also_without: str | None = None
    saves_requests: bool = False
    kind: Literal[
        "changes",
        "replays",
        "live replays",
        "source repairs",
        "erasures",
        "edits",
        "scripted edits",
        "large documents",
        "settled forms",
        "lost writes",
    ] = "changes"


def protection(
    name: str, against: str, switch: Switch, overrides: Mapping[str, Any] | None = None, also_without: str | None = None
) -> Protection:
    return Protection(name=name, against=against, switch=switch, overrides=overrides or {}, also_without=also_without)

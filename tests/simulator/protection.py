"""A protection of the job, and how the simulator turns it off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.without.switch import Switch


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """A protection. `against`: the danger. `switch`: turns the protection off. `overrides`: conditions under which a run without
    it soon ends wrong. `also_without`: another protection that does the same work earlier, so it is off in both runs.
    `saves_requests`: a run without the protection ends right, but needs more requests. `kind`: of the runs, in
    `ablations.KINDS`."""

    name: str
    against: str
    switch: Switch
    overrides: Mapping[str, Any] = field(default_factory=dict)
    also_without: str | None = None
    saves_requests: bool = False
    kind: str = "changes"


def protection(
    name: str, against: str, switch: Switch, overrides: Mapping[str, Any] | None = None, also_without: str | None = None
) -> Protection:
    return Protection(name=name, against=against, switch=switch, overrides=overrides or {}, also_without=also_without)

"""Simulates operators who also drop columns that no product uses. They declare a column again with the next product that they
apply, or when they drop another column."""

import json

from processor.engine.plan.planning import check_dropped, requirements_of
from processor.errors import PlanError
from processor.language.definitions.load import load
from registry.edits.apply import apply
from registry.edits.edit import Edit, edited
from registry.errors import RegistryError
from registry.model import Requirements, Snapshot
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.shape_definitions import STARS

DROPPED = (("user", "bio"), ("star", "note"), ("repo", "about"), ("repo", "stars"), ("label", "text"))
"""Columns that some contents of products use, and others do not."""


class ColumnSimulation(EditSimulation):
    """A run in which about half of the edits drop a column."""

    __slots__ = ()

    def _edit(self) -> None:
        if self.rng.random() < 0.5:
            self.edits_left -= 1
            self._drop(*self.rng.choice(DROPPED))
        else:
            EditSimulation._edit(self)

    def _drop(self, entity: str, column: str) -> None:
        entities = json.loads(STARS["entities.yaml"])
        del entities[entity]["columns"][column]
        required = requirements_of(load({"entities.yaml": json.dumps(entities)}))
        try:
            self._change(lambda stored: self._without(stored, required))
            self.facts["drops"] += 1
        except (RegistryError, PlanError) as error:
            self.world.log(f"the registry refuses: {error}")

    def _without(self, stored: Snapshot, required: Requirements) -> Edit:
        change = apply(stored, required, self.world.registry.has_run)
        check_dropped(stored, edited(stored, change))
        return change

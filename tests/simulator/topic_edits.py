"""Simulates operators who also give products another topic, and the former topic again."""

from registry.errors import RegistryError
from tests.simulator.registry_edits import EditSimulation


class TopicSimulation(EditSimulation):
    """A run in which about half of the edits give a product its other topic."""

    __slots__ = ()

    def _edit(self) -> None:
        if self.rng.random() < 0.5:
            self.edits_left -= 1
            self._give_other_topic(self.rng.choice(sorted(self.contents)))
        else:
            EditSimulation._edit(self)

    def _give_other_topic(self, name: str) -> None:
        now = self.topics.get(name, name)
        try:
            self._apply({name: self.contents[name]}, {name: f"{name}.b" if now == name else name})
        except RegistryError as error:
            self.world.log(f"the registry refuses: {error}")

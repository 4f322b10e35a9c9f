"""Without parts of what follows up a change with many documents above it (rule 8)."""

from processor.model.fan_out import FanOuts
from processor.rounds import Rounds
from tests.simulator.without.switch import replacing

rest_forgotten = replacing((Rounds, "_keep_rest", lambda _: lambda _self, _results: None))
in_memory = replacing((Rounds, "_keep", lambda _: lambda _self, _request: None))
no_second_pass = replacing(
    (FanOuts, "asked", lambda _: lambda self, fan_out: self._put(self.held.get(fan_out[:3]) or fan_out))
)

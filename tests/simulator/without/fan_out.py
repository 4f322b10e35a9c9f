"""Switches for the protections of fan-outs (rule 8 of docs/architecture.md)."""

from processor.engine.protocol.pending import FanOuts
from processor.engine.rounds.run_progress import RunProgress
from tests.simulator.without.switch import always, replacing

first_page_only = replacing((FanOuts, "add", always(None)), (RunProgress, "keep", always(None)))
in_memory = replacing((RunProgress, "keep", always(None)))
no_second_pass = replacing(
    (FanOuts, "add", lambda _: lambda self, fan_out: self._put(self.waiting.get(fan_out[:3]) or fan_out))
)

"""Switches for the protections of fan-outs (rule 8 of docs/architecture.md)."""

from processor.driver.round_runner import RoundRunner
from processor.progress.fan_outs import FanOuts
from tests.simulator.without.switch import always, replacing

first_page_only = replacing((FanOuts, "add", always(None)), (RoundRunner, "_keep", always(None)))
in_memory = replacing((RoundRunner, "_keep", always(None)))
no_second_pass = replacing(
    (FanOuts, "add", lambda _: lambda self, fan_out: self._put(self.waiting.get(fan_out[:3]) or fan_out))
)

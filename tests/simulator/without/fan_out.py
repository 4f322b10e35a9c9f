"""Switches for the protections of fan-outs (rule 8 of docs/architecture.md)."""

from typing import Any

from processor.engine.protocol.pending import FanOuts
from tests.simulator.without.switch import always, replacing


def _in_memory(take: Any) -> Any:
    def changed(self: FanOuts, *args: Any) -> tuple[()]:
        list(take(self, *args))
        return ()

    return changed


first_page_only = replacing((FanOuts, "take", always(())))
in_memory = replacing((FanOuts, "take", _in_memory))
no_second_pass = replacing(
    (FanOuts, "add", lambda _: lambda self, fan_out: self._put(self.waiting.get(fan_out[:3]) or fan_out))
)

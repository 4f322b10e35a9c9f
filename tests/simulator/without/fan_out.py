"""Switches for the protections of fan-outs (rule 8 of docs/architecture.md)."""

from typing import Any

from processor.engine.protocol.pending import FanOut, FanOuts
from tests.simulator.without.switch import always, replacing


def _in_memory(take: Any) -> Any:
    def changed(self: FanOuts, *args: Any) -> tuple[()]:
        list(take(self, *args))
        return ()

    return changed


def _added(change: Any) -> Any:
    """A change of the fan-out that waits after another one was added: by the one before and the one after."""

    def switch(add: Any) -> Any:
        def changed(self: FanOuts, fan_out: FanOut) -> Any:
            before = self.waiting.get(fan_out[:3])
            add(self, fan_out)
            return self._put(change(before, self.waiting[fan_out[:3]]))

        return changed

    return switch


first_page_only = replacing((FanOuts, "take", always(())))
in_memory = replacing((FanOuts, "take", _in_memory))
no_second_pass = replacing(
    (FanOuts, "add", lambda _: lambda self, fan_out: self._put(self.waiting.get(fan_out[:3]) or fan_out))
)
end_stays = replacing(
    (FanOuts, "add", _added(lambda before, after: after._replace(end=before.end) if before else after))
)
whole_second_pass = replacing((FanOuts, "add", _added(lambda _, after: after._replace(next_after=None, next_end=None))))

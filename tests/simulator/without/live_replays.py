"""Switches that turn the protections of replays by a running job off."""

from collections.abc import Callable
from typing import Any

import processor.engine.protocol.replays as step
import processor.engine.rounds.follow_up_stages as stage
from processor.engine.rounds.operators import LiveReplays
from statestore.store import Done
from tests.simulator.without.switch import always, replacing

unsettled = replacing((LiveReplays, "_is_published", always(True)))
"""The job notes an outcome before the changes of the portion are settled."""

unpublished = replacing((LiveReplays, "_unpublished", always(())))
"""The job notes an outcome before the fan-outs of the portion have ended."""

taken_again = replacing((LiveReplays, "_ended", always({})))
"""A run takes letters whose replay has ended."""

any_version_seen = replacing(
    (
        step,
        "merge_image",
        lambda make: lambda image, seen: make(image, seen)._replace(when=None),
    )
)
"""A replay writes over any row, also where another run has replayed a newer letter meanwhile."""


def _entry_after_write(step: Callable[..., Any]) -> Callable[..., Any]:
    """A replay that makes its entry durable only after the write of the row."""

    def changed(*args: Any, **kw: Any) -> Any:
        running, answers = step(*args, **kw), None
        late: tuple[Any, ...] = ()
        try:
            while True:
                requests = running.send(answers)
                if len(requests) == 2 and all(hasattr(one, "set") for one in requests):
                    late, answers = requests, (Done(None), Done(None))
                    continue
                answers = yield requests
        except StopIteration as end:
            if late:
                yield late
            return end.value

    return changed


entry_after_write = replacing((stage, "replay", _entry_after_write))

"""Switches for changes of one row in two partitions (rule 2)."""

from collections.abc import Iterable
from typing import Any

import processor.engine.plan.row_image as row_image
import processor.engine.rounds.write_stage as write_stage
import statestore.writes as row_writes
from processor.engine.protocol.decode import NetChange, net_change
from processor.values.record import Change
from statestore.store import AbsentOrBelow
from tests.simulator.without.switch import always, replacing

any_partition = replacing((row_writes, "_committed", lambda _: lambda _since, below: AbsentOrBelow("_v", below)))
"""A write is conditional on the version, not on the partition."""

not_refused = replacing((row_image, "are_comparable", always(True)))
"""A refused change of another partition counts as superseded."""


def _by_key_alone(changes: Iterable[Change]) -> list[NetChange]:
    by_key: dict[Any, list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.entity, change.key), []).append(change)
    return [net_change(of_key) for of_key in by_key.values()]


dedupe_over_partitions = replacing((write_stage, "dedupe", lambda _: _by_key_alone))
"""A net change combines changes of two partitions."""

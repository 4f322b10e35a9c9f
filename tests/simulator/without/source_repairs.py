"""Switches that turn the protections of repairs from the source off."""

from collections.abc import Callable
from typing import Any

import processor.engine.plan.row_image as images
import processor.engine.protocol.replays as step
import processor.engine.rounds.follow_up_stages as stage
from statestore.items import encode_version
from tests.simulator.without.switch import replacing


def _newest(version_of: Callable[[Any], str]) -> Callable[[Any], str]:
    def changed(change: Any) -> str:
        if getattr(change, "seen", None) is None:
            return version_of(change)
        return encode_version(999, change.record.partition, change.record.offset)

    return changed


newest_version = replacing(*((owner, "version_of", _newest) for owner in (images, stage, step)))
"""A repair is newer than every record of the stream."""

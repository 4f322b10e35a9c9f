"""Switches that turn the protections of records that no batch has committed off."""

import tests.simulator.run as run
from processor.engine.protocol.epochs import Published
from tests.simulator.without.switch import replacing

older_than_the_batch = replacing((Published, "__call__", lambda _: lambda self, version: version < self.below))
"""Every row with a lower version counts as published, also one of another epoch or partition."""

begin_forgotten = replacing(
    (run, "committed_by", lambda make: lambda epochs, _begins, positions: make(epochs, {}, positions))
)
"""What the topics had before the checkpoint began counts as published."""

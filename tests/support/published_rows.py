"""What is published for a change: the rows of one partition below a version, as after a batch that ended there."""

from processor.engine.protocol.epochs import Committed, Published, published_before
from statestore.items import decode_version


def published_below(version: str, topic: str = "", until: str = "~") -> Published:
    """All rows of the version's epoch and partition below it."""
    epoch, partition, offset = decode_version(version)
    place = (topic, epoch, partition)
    return published_before(Committed({place: (0, offset)}), place, offset, until)

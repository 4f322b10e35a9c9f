"""Versions of rows: the position of the change that wrote a row last, as text of fixed width, `epoch.partition.offset`.

Text order is version order. Between two partitions of one epoch no order exists, and `are_comparable` says so. A row whose
columns an older change filled later has a count behind its version (`next_fill`).
"""

_EPOCH, _PARTITION, _VERSION = 6, 13, 33
"""Characters up to the end of the epoch, of the partition, and of the offset."""


def encode_version(epoch: int, partition: int, offset: int) -> str:
    """The version of a change."""
    return f"{str(epoch).zfill(6)}.{str(partition).zfill(6)}.{str(offset).zfill(19)}"


def decode_version(version: str) -> tuple[int, int, int]:
    """The epoch, the partition and the offset of the change that made a version; without the count of fills."""
    epoch, partition, offset = map(int, version[:_VERSION].split("."))
    return epoch, partition, offset


def version_prefixes(version: str) -> tuple[str, str]:
    """The beginnings that all versions of the same epoch have, and all of the same epoch and partition."""
    return version[:_EPOCH], version[:_PARTITION]


def are_comparable(version: str, other: str) -> bool:
    """Whether the order of two versions is the order of delivery: in one epoch, only the offsets of one partition are."""
    (epoch, partition), (other_epoch, other_partition) = version_prefixes(version), version_prefixes(other)
    return epoch != other_epoch or partition == other_partition


def next_fill(version: str) -> str:
    """The version of a row after an older change filled columns of it: above the row's own, below that of every later change."""
    own, fills = version[:_VERSION], version[_VERSION + 1 :]
    return f"{own}.{int(fills or 0) + 1:06d}"

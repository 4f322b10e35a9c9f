"""Sets of whole numbers as ranges, which stay few where the numbers come in order. Pure."""

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range, rising, with a gap between two ranges."""


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """The numbers."""
    return _joined((number, number) for number in sorted(numbers))


def union(one: Ranges, other: Ranges) -> Ranges:
    """The numbers of both."""
    return _joined(sorted((*one, *other)))


def count(ranges: Ranges) -> int:
    """How many numbers there are."""
    return sum(last - first + 1 for first, last in ranges)


def _joined(rising: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in rising:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)

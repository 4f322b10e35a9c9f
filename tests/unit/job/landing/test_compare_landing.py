"""Which partitions a comparison calls missed."""

from collections.abc import Collection, Mapping

import pytest

from processor.job.landing.target import LOOKS, missed_partitions


class Offsets:
    """The offsets of a target, which a landing raises at the n-th look."""

    def __init__(self, before: Mapping[int, int], later: Mapping[int, int], at: int) -> None:
        self.before, self.later, self.at, self.looks = before, later, at, 0

    def __call__(self, partitions: Collection[int]) -> Mapping[int, int]:
        self.looks += 1
        return {**self.before, **self.later} if self.looks >= self.at else self.before


@pytest.mark.parametrize(
    ("before", "later", "missed"),
    [
        ({0: 5, 1: 7}, {}, []),
        ({0: 5, 1: 3}, {1: 4}, []),
        ({0: 5}, {1: 1}, []),
        (
            {0: 5, 1: 3},
            {},
            ["missed: 4 messages of partition 1 wait: the landing runs, and took none of them for 30 s"],
        ),
        ({0: 5}, {}, ["missed: 7 messages of partition 1 wait: the landing runs, and took none of them for 30 s"]),
    ],
)
def test_a_partition_of_which_a_running_landing_takes_nothing(
    before: dict[int, int], later: dict[int, int], missed: list[str]
) -> None:
    offsets, pauses = Offsets(before, later, 3), list[float]()
    assert missed_partitions({0: 5, 1: 7}, before, offsets, runs=True, sleep=pauses.append) == missed
    assert len(pauses) == (LOOKS if missed else 2 if later else 0)


@pytest.mark.parametrize(("before", "missed"), [({}, 0), ({0: 1, 1: 1}, 0), ({0: 5}, 1), ({1: 2}, 1)])
def test_a_partition_that_never_landed_where_others_did(before: dict[int, int], missed: int) -> None:
    offsets = Offsets(before, {}, 1)
    assert len(missed_partitions({0: 5, 1: 7}, before, offsets, runs=False, sleep=lambda _: None)) == missed
    assert offsets.looks == 0

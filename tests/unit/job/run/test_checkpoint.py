"""A checkpoint is fitted to the topics that the job reads: those that entities left, came back to, or took from each other."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from processor.errors import CheckpointError
from processor.job.run.checkpoint import Checkpoint, check_positions, prepare_checkpoint
from registry.model import EpochBoundary

NO_SPARK: Any = None


class FilesInMemory(Checkpoint):
    """A checkpoint without a file system, and a broker whose topics have one partition that begins at offset 3."""

    files: dict[str, str]

    def __init__(self, **offsets: int) -> None:
        super().__init__(spark=NO_SPARK, path="checkpoint")
        start = json.dumps({topic: {"0": offset} for topic, offset in offsets.items()})
        object.__setattr__(self, "files", {"sources/0/0": f"v1\n{start}"})

    def exists(self, file: str) -> bool:
        return file in self.files

    def read(self, file: str) -> str:
        return self.files[file]

    def write(self, file: str, text: str) -> None:
        self.files[file] = text

    def _last(self, directory: str) -> int:
        return -1

    def topics_of_broker(self, names: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(names, 1)

    def begins_of_broker(self, topic: str) -> dict[int, int]:
        return {0: 3}

    def fit(
        self, readers: Mapping[str, str], boundaries: Sequence[EpochBoundary] = (), paused: Collection[str] = ()
    ) -> dict[str, int]:
        """Where the next batch begins in each topic, once the checkpoint is fitted."""
        admin: Any = _Admin(self)
        prepare_checkpoint(self, readers, paused, boundaries, admin)
        return {topic: offset for (topic, _), offset in self.offsets("sources/0/0").items()}


class _Admin:
    def __init__(self, checkpoint: FilesInMemory) -> None:
        self.topics, self.begins = checkpoint.topics_of_broker, checkpoint.begins_of_broker


def boundary(topic: str, entity: str, epoch: int, from_offset: int = 0) -> EpochBoundary:
    return EpochBoundary(topic=topic, topic_id="", partition=0, from_offset=from_offset, epoch=epoch, entity=entity)


FIRST = boundary("a", "user", 1)
MOVED = [FIRST, boundary("a", "user", 2, 7), boundary("b", "user", 3)]
BACK = [*MOVED, boundary("b", "user", 4, 9), boundary("a", "user", 5, 7)]


def test_a_topic_that_its_entity_has_left_goes_and_the_next_one_begins_at_its_first_record() -> None:
    assert FilesInMemory(a=7, stars=4).fit({"b": "user", "stars": "star"}, MOVED) == {"stars": 4, "b": 3}


def test_a_topic_to_which_its_entity_comes_back_goes_on_where_the_entity_left_it() -> None:
    checkpoint = FilesInMemory(a=7)
    assert checkpoint.fit({"a": "user"}, [FIRST], paused=["a"]) == {}
    assert checkpoint.fit({"a": "user"}, [FIRST]) == {"a": 7}
    assert checkpoint.fit({"b": "user"}, MOVED) == {"b": 3}
    assert checkpoint.fit({"a": "user"}, BACK) == {"a": 7}
    assert FilesInMemory(a=5).fit({"a": "user"}, BACK) == {"a": 5}  # an old checkpoint


def test_two_entities_that_swap_their_topics_begin_them_again() -> None:
    checkpoint = FilesInMemory(a=7, b=9)
    read = [FIRST, boundary("b", "guest", 1)]
    assert checkpoint.fit({"a": "user", "b": "guest"}, read) == {"a": 7, "b": 9}
    swapped = [*read, boundary("b", "user", 3), boundary("a", "guest", 5)]
    assert checkpoint.fit({"b": "user", "a": "guest"}, swapped) == {"a": 3, "b": 3}
    assert checkpoint.fit({"b": "user", "a": "guest"}, swapped) == {"a": 3, "b": 3}


def test_a_checkpoint_of_a_topic_that_no_entity_has_or_had_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"no entity reads other as checkpoint checkpoint does: run with another"):
        FilesInMemory(other=1).fit({"a": "user"}, [FIRST])


@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        ((6, 9), r"orders, partition 0: .* offset 5, and the partition begins at 6: retention removed records"),
        (
            (0, 4),
            r"orders, partition 0: .* offset 5, and the partition ends at 4: it lost records that the job has read",
        ),
    ],
    ids=["retention", "lost"],
)
def test_a_topic_without_the_records_that_the_job_reads_next_is_refused(marks: tuple[int, int], reason: str) -> None:
    class Broker:
        def topics(self, names: Sequence[str]) -> Sequence[str]:
            return names

        def watermarks(self, topic: str) -> dict[int, tuple[int, int]]:
            return {0: marks}

    admin: Any = Broker()
    with pytest.raises(CheckpointError, match=reason):
        check_positions(FilesInMemory(orders=5), admin, {"orders": "order"})


def test_a_checkpoint_keeps_where_its_stream_began_with_each_topic() -> None:
    """Batches have committed the records from there on; a pause leaves none out."""
    checkpoint = FilesInMemory(a=2)
    assert checkpoint.begins() == {("a", 0): 2}
    readers = {"a": "user", "b": "star"}
    checkpoint.fit(readers)
    assert checkpoint.begins() == {("a", 0): 2, ("b", 0): 3}
    checkpoint.write("sources/0/0", 'v1\n{"a":{"0":6},"b":{"0":8}}')  # the stream has read on
    checkpoint.fit(readers, paused=["b"])
    checkpoint.fit(readers)
    assert checkpoint.begins() == {("a", 0): 6, ("b", 0): 3}


def test_a_topic_to_which_an_entity_comes_begins_again_and_one_that_an_entity_leaves_continues() -> None:
    files = FilesInMemory(app=9)
    known = [boundary("app", "user", 1), boundary("app", "user", 2, 5)]
    assert files.fit({"app": "user"}, known) == {"app": 9}
    assert files.fit({"app": "order, user"}, known) == {"app": 3}, "the first offset that the broker has"
    files.files["sources/0/0"] = files.files["sources/0/0"].replace("3", "8")
    assert files.fit({"app": "order, user"}, known) == {"app": 8}
    assert files.fit({"app": "order"}, known) == {"app": 8}

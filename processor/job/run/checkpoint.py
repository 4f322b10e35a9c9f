"""Spark's checkpoint, which may be on any file system that Hadoop knows: the offsets that Spark planned.

sources/0/0    the offsets at which the stream began
offsets/N      where batch N ends in each partition; it begins where batch N - 1 ended
commits/N      batch N is committed
paused/TOPIC   where the stream continues with a topic that operators have paused
statestore.readers    topic -> its reader, since the stream begins or begins again
statestore.begins     where the stream began with the topics that came after its begin

Spark does not know the last three.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from processor.engine.protocol.epochs import Partition, begin_of_stay, entities_of
from processor.errors import CheckpointError
from processor.job.kafka.admin import Admin
from registry.model import EpochBoundary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = "sources/0/0"
PAUSED = "paused"
READERS = "statestore.readers"
BEGINS = "statestore.begins"
NEW_CHECKPOINT = (
    "run with another --checkpoint: the job then reads all topics from their beginning, and publishes what differs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The checkpoint in directory `path`."""

    spark: "SparkSession"
    path: str

    def began(self) -> bool:
        """Whether a stream has begun with this checkpoint."""
        return self.exists(START)

    def offsets(self, file: str) -> dict[Partition, int]:
        """The offsets in a file: `offsets/N`, or `sources/0/0`. Raises CheckpointError where the file is gone."""
        if not self.exists(file):
            raise CheckpointError(f"checkpoint {self.path} is not whole: it lacks the file {file}; {NEW_CHECKPOINT}")
        topics = json.loads(self.read(file).splitlines()[-1])
        return {(topic, int(partition)): offset for topic, ends in topics.items() for partition, offset in ends.items()}

    def planned(self) -> list[str]:
        """The files that say where the next batch begins and, if Spark has planned it already, where it ends."""
        committed, planned = self._last("commits"), self._last("offsets")
        begin = START if committed < 0 else f"offsets/{committed}"
        return [begin, f"offsets/{planned}"] if planned > committed else [begin]

    def committed(self) -> dict[Partition, int]:
        """Where the next batch begins in each partition; empty before a stream has begun."""
        return self.offsets(self.planned()[0]) if self.began() else {}

    def begins(self) -> dict[Partition, int]:
        """Where the stream began in each partition of the topics that it named at its begin or later. It has read all records
        from there on, one batch after another. A partition that a topic got later begins at offset 0."""
        return {
            **(self.offsets(START) if self.began() else {}),
            **(self.offsets(BEGINS) if self.exists(BEGINS) else {}),
        }

    def topics(self) -> list[frozenset[str]]:
        """The topics that each of the `planned` files names."""
        return [frozenset(topic for topic, _ in self.offsets(file)) for file in self.planned()]

    def keep_begins(self, begins: Mapping[Partition, int]) -> None:
        """Keeps where the stream begins with topics."""
        if begins:
            known = self.offsets(BEGINS) if self.exists(BEGINS) else {}
            self.write(BEGINS, json.dumps(_by_topic({**known, **begins})))

    def begin_topics(self, begins: Mapping[Partition, int]) -> None:
        """Makes the next batch begin these partitions, of topics that no batch has read, at these offsets. Changes
        nothing in a file that names the topic already."""
        self._change_planned(
            lambda topics: topics | _by_topic({at: offset for at, offset in begins.items() if at[0] not in topics})
        )

    def leave_topic(self, topic: str) -> None:
        """Makes the next batch leave a topic out. The checkpoint keeps where the topic continues: at the offsets at which that
        batch would begin."""
        begins = {str(p): offset for (name, p), offset in self.offsets(self.planned()[0]).items() if name == topic}
        if begins:
            self.write(f"{PAUSED}/{topic}", json.dumps(begins))
        self._change_planned(lambda topics: {name: of for name, of in topics.items() if name != topic})

    def _change_planned(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes the offsets by topic in each of the `planned` files. A file that stays equal is not written again."""
        for file in self.planned():
            *head, last = self.read(file).split("\n")
            topics = json.loads(last)
            if (changed := change(topics)) != topics:
                self.write(file, "\n".join([*head, json.dumps(changed, separators=(",", ":"))]))

    def drop_topic(self, topic: str) -> None:
        """Makes the next batch leave a topic out for good: its entity has left it, or comes back to it at another offset."""
        self.leave_topic(topic)
        if self.exists(f"{PAUSED}/{topic}"):
            self.write(f"{PAUSED}/{topic}", "{}")

    def readers(self) -> dict[str, str]:
        """Topic -> the entity that read it when the stream last began; empty before its first time."""
        return dict(json.loads(self.read(READERS))) if self.exists(READERS) else {}

    def keep_readers(self, readers: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Keeps which entity reads each topic. `before`: as in the checkpoint."""
        if readers != before:
            self.write(READERS, json.dumps(dict(readers)))

    def paused_at(self, topic: str) -> dict[int, int]:
        """Where the stream continues with a topic that was paused; empty for another one."""
        file = f"{PAUSED}/{topic}"
        return {int(p): offset for p, offset in json.loads(self.read(file)).items()} if self.exists(file) else {}

    def read(self, file: str) -> str:
        """A text file of the checkpoint."""
        path, files = self._file(file)
        stream = files.open(path)
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text

    def write(self, file: str, text: str) -> None:
        """Puts a text file into the checkpoint, in place of the one that is there. A reader sees one of the two, where
        the file system renames at once."""
        path, files = self._file(file)
        written, _ = self._file(f"{file}.statestore.tmp")
        stream = files.create(written, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._configuration)
        overwrite = self._jvm.org.apache.hadoop.fs.Options.Rename
        options = self.spark._sc._gateway.new_array(overwrite, 1)  # type: ignore[union-attr]
        options[0] = overwrite.OVERWRITE
        context.rename(written, path, options)

    def _last(self, directory: str) -> int:
        """The highest number that names a file of the directory; -1 without one."""
        path, files = self._file(directory)
        names = [status.getPath().getName() for status in files.listStatus(path)] if files.exists(path) else []
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def exists(self, file: str) -> bool:
        """Whether the checkpoint has this file."""
        path, files = self._file(file)
        return bool(files.exists(path))

    def _file(self, file: str) -> tuple[Any, Any]:
        """The path of a file, and its file system."""
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self.path.rstrip('/')}/{file}")
        return path, path.getFileSystem(self._configuration)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @property
    def _configuration(self) -> Any:
        return self.spark._jsc.hadoopConfiguration()


def prepare_checkpoint(
    checkpoint: Checkpoint,
    readers: Mapping[str, str],
    paused: Collection[str],
    boundaries: Sequence[EpochBoundary],
    admin: Admin,
) -> None:
    """Fits a checkpoint to the topics that the job reads. A paused topic waits at its offsets. A topic that
    its entity has left goes: the job has read it to its end (`processor.job.run.topics`). A topic that no batch has read
    begins where its entity came to it, at the first offset that the broker has: Spark would begin it at offset 0, and fail
    where retention has removed that record. The checkpoint keeps the offset, so every try of the batch begins there. A batch
    that Spark planned with the topic, and failed, is no exception.

    Args:
        readers: each topic that the job reads, and its reader. A topic to which an entity has come begins again.
        paused: those of them that the job does not read now.
        boundaries: of these topics and entities.

    Raises:
        CheckpointError: the checkpoint reads a topic that no entity has or had.
    """
    before = checkpoint.readers()
    if not checkpoint.began():
        checkpoint.keep_readers(readers, before)
        return
    known = frozenset().union(*checkpoint.topics())
    entities = {entity for reader in readers.values() for entity in entities_of(reader)}
    had = {b.topic for b in boundaries if b.entity in entities}
    if stale := sorted(known - readers.keys() - had):
        raise CheckpointError(
            f"no entity reads {', '.join(stale)} as checkpoint {checkpoint.path} does: {NEW_CHECKPOINT}"
        )
    for topic in sorted(known | before.keys()):
        if topic not in readers or {*entities_of(readers[topic])} - {*entities_of(before.get(topic, readers[topic]))}:
            checkpoint.drop_topic(topic)
    checkpoint.keep_readers(readers, before)
    named = checkpoint.topics()
    for topic in sorted(frozenset().union(*named) & {*paused}):
        checkpoint.leave_topic(topic)
    new = admin.topics(sorted(readers.keys() - frozenset.intersection(*named) - {*paused}))
    begins: dict[Partition, int] = {}
    for topic in new:
        stay = begin_of_stay(readers[topic], topic, boundaries)
        first = {p: max(begin, stay.get(p, 0)) for p, begin in admin.begins(topic).items()}
        waits_at = checkpoint.paused_at(topic)
        checkpoint.keep_begins({(topic, p): begin for p, begin in first.items() if p not in waits_at})
        begins |= {(topic, p): begin for p, begin in (first | waits_at).items()}
    checkpoint.begin_topics(begins)


def check_positions(checkpoint: Checkpoint, admin: Admin, readers: Mapping[str, str]) -> None:
    """Raises CheckpointError where the next batch would begin at an offset that its partition no longer has, or does not have
    any more. Spark fails in that batch. `readers`: each topic of an entity, and the entity."""
    if not checkpoint.began():
        return
    positions = checkpoint.offsets(checkpoint.planned()[0])
    marks = {topic: admin.watermarks(topic) for topic in admin.topics(sorted({topic for topic, _ in positions}))}
    for (topic, partition), position in sorted(positions.items()):
        begin, end = marks.get(topic, {}).get(partition, (position, position))
        where = f"topic {topic}, partition {partition}: the job reads on at offset {position}, and the partition"
        if position < begin:
            raise CheckpointError(
                f"{where} begins at {begin}: retention removed records that the job has not read. Rows of entity "
                f"{readers.get(topic, '?')} that changed in them are stale, and rows that were deleted in them are still "
                f"there. Let the source send its rows again (a new snapshot), and {NEW_CHECKPOINT}"
            )
        if position > end:
            raise CheckpointError(
                f"{where} ends at {end}: it lost records that the job has read. Pause its producer, run `statestore epoch "
                f"{topic}`, and {NEW_CHECKPOINT}"
            )


def _by_topic(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """Offsets in the form of Spark's files."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics

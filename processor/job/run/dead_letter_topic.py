"""The dead letter topic, as a job uses it: how large a dead letter may be, and the whole records of those that were cut."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.message_limits import KAFKA_DEFAULT_BYTES
from processor.job.kafka.reader import read_record
from processor.values.dead_letters import SMALLEST_LIMIT, DeadLetter, record_hash
from processor.values.record import MAX_MESSAGE_BYTES

PORTION_LETTERS = 500
PORTION_BYTES = 64 * 1024 * 1024


def letter_bytes(admin: Admin, settings: Settings) -> int:
    """The most bytes of a dead letter. Takes Kafka's default for a topic whose configuration the job may not read. Raises
    KafkaError where not even a cut dead letter fits."""
    topic = settings.dead_letter_topic
    limit = min(admin.max_message_bytes(topic) or KAFKA_DEFAULT_BYTES, MAX_MESSAGE_BYTES)
    if limit < SMALLEST_LIMIT:
        raise KafkaError(
            f"topic {topic} takes messages of at most {limit} bytes, too few for dead letters: set its max.message.bytes to "
            f"{MAX_MESSAGE_BYTES} (at least {SMALLEST_LIMIT})"
        )
    return limit


def portions(letters: Sequence[DeadLetter]) -> Iterator[list[DeadLetter]]:
    """The letters in portions that a job replays together, in their order: few in number and in bytes."""
    portion: list[DeadLetter] = []
    size = 0
    for letter in letters:
        record, cut = letter.rejected.record, letter.rejected.cut
        bytes_ = cut.size if cut else len(record.key or b"") + len(record.value or b"")
        if portion and (len(portion) == PORTION_LETTERS or size + bytes_ > PORTION_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(letter)
        size += bytes_
    if portion:
        yield portion


def with_whole_record(settings: Settings, letter: DeadLetter) -> DeadLetter:
    """The letter, with the whole record from its source topic if the letter keeps it cut. The letter stays as it is where the
    topic holds another record there, or none."""
    kept, cut = letter.rejected.record, letter.rejected.cut
    if cut is None:
        return letter
    read = read_record(settings.bootstrap_servers, dict(settings.kafka), kept.topic, kept.partition, kept.offset)
    if read is None or record_hash(read) != cut.sha256:
        return letter
    whole = replace(kept, key=read.key, value=read.value, headers=read.headers)
    return replace(letter, rejected=replace(letter.rejected, record=whole, cut=None))

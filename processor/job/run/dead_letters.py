"""The dead letters of a job: how large one may be, the whole record of one that was cut, those that operators ask the job to
replay, and what became of each. The notes of replays in the table say the last.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING

from processor.engine.protocol.epochs import read_epochs
from processor.engine.protocol.replays import (
    PARTITION,
    ended_replays,
    kept_letter,
    letter_position,
    note_key,
    refused_replays,
)
from processor.engine.rounds.events import JobEvent, Report
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.values.dead_letters import SMALLEST_LIMIT, DeadLetter, read_dead_letters, record_hash, rejected_record
from processor.values.record import MAX_MESSAGE_BYTES, Message, Record
from registry.model import DROPPED, LetterPosition
from statestore.keys import Key
from statestore.store import Item, Store

if TYPE_CHECKING:
    from processor.engine.rounds.operators import RequestedLetters
    from processor.job.kafka.admin import Admin
    from registry.repository import Registry

HEX_COLUMNS = 16


def readable_lines(data: bytes | None) -> Iterator[str]:
    """Bytes as text, else in hexadecimal; each line is indented, so none looks like a line of statestore."""
    if data is None:
        yield "    null"
        return
    try:
        for line in data.decode().split("\n"):
            yield f"    {line}"
    except UnicodeDecodeError:
        for first in range(0, len(data), HEX_COLUMNS):
            row = data[first : first + HEX_COLUMNS]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            yield f"    {first:08x}  {row.hex(' '):<{3 * HEX_COLUMNS}} |{text}|"


LetterFate = tuple[DeadLetter, str]
"""A dead letter, and what became of it; empty while it waits."""


def dead_letter_outcomes(letters: Sequence[DeadLetter], notes: Iterable[Item]) -> list[LetterFate]:
    """The letters, each with the outcome of its replay or drop, and with its last refusal. `notes`: the items of the replays."""
    items = list(notes)
    ended, refused = ended_replays(items), refused_replays(items)
    found = []
    for letter in letters:
        key, *former = note_keys([letter])
        if key in refused:
            at, why = refused[key]
            letter = replace(letter, last_seen=max(at.timestamp(), letter.last_seen), refused_again=why)
        dropped = (ended[one] for one in former if ended.get(one, "").startswith(DROPPED))
        found.append((letter, ended.get(key) or next(dropped, "")))
    return found


def note_keys(letters: Iterable[DeadLetter]) -> list[Key]:
    """The keys of the items that say what became of the letters. A letter that a person dropped in a former epoch stays so."""
    places = (letter_position(one.rejected.record)._replace(epoch=epoch) for one in letters for epoch in _epochs(one))
    return [note_key(place) for place in places]


def _epochs(letter: DeadLetter) -> tuple[int, ...]:
    return letter.rejected.record.epoch, *letter.former


def age(since: float) -> str:
    """How long ago a time (in seconds since 1970) is, in its largest unit."""
    seconds = max(0, int(datetime.now(UTC).timestamp() - since))
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def fill_account(settings: Settings, registry: "Registry", admin: "Admin", store: Store, report: Report) -> None:
    """Accounts once for the letters of releases that knew no account, and of a registry that was lost. Reads the topic only where
    the account has never had a letter, and the topic has some."""
    from processor.job.kafka.reader import read_topic

    topic = settings.dead_letter_topic
    try:
        if not registry.letters.is_empty() or not any(admin.ends(topic).values()):
            return
        began = time()
        found = read_dead_letters(read_topic(settings.bootstrap_servers, dict(settings.kafka), topic))
    except KafkaError as error:  # the job may lack the right to read this topic
        text = f"the count of dead letters that wait begins at 0, since the job cannot read the earlier ones: {error}"
        report(JobEvent(what="dead letters", text=text, level="warning"))
        return
    if found:
        settle_account(registry, dead_letter_outcomes(found, store.partition(PARTITION)), began)


def settle_account(registry: "Registry", found: Iterable[LetterFate], began: float) -> None:
    """Brings the account to all letters of the topic. `began`: when the reading began, in seconds since 1970."""
    outcomes = {kept_letter(letter.rejected, letter.kept_since): fate.partition(" ")[0] for letter, fate in found}
    registry.letters.settle(outcomes, began)


def record_position(record: Record) -> str:
    """The topic, partition, offset and epoch of a record, for a person."""
    return f"{record.topic}/{record.partition} offset {record.offset} epoch {record.epoch}"


PORTION_LETTERS = 500
PORTION_BYTES = 64 * 1024 * 1024


def letter_bytes(admin: "Admin", settings: Settings) -> int:
    """The most bytes of a dead letter. Takes Kafka's default for a topic whose configuration the job may not read. Raises
    KafkaError where not even a cut dead letter fits."""
    topic = settings.dead_letter_topic
    limit = admin.message_limit(topic)
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
    from processor.job.kafka.reader import read_record

    kept, cut = letter.rejected.record, letter.rejected.cut
    if cut is None:
        return letter
    read = read_record(settings.bootstrap_servers, dict(settings.kafka), kept.topic, kept.partition, kept.offset)
    if read is None or record_hash(read) != cut.sha256:
        return letter
    whole = replace(kept, key=read.key, value=read.value, headers=read.headers)
    return replace(letter, rejected=replace(letter.rejected, record=whole, cut=None))


def read_requested(settings: Settings, registry: "Registry", places: Sequence[LetterPosition]) -> "RequestedLetters":
    """The dead letters at these places, in portions: those that are still in their topic. Keeps no others in memory."""
    from processor.engine.rounds.operators import RequestedLetters
    from processor.job.kafka.reader import read_topic

    wanted = frozenset(places)
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.dead_letter_topic)
    found = read_dead_letters(record for record in records if _is_at(record, wanted))
    topics = sorted({place.topic for place in places})
    return RequestedLetters(
        portions=tuple(portions(found)), incarnations=read_epochs(registry.epochs(topics)).incarnations
    )


def _is_at(kept: Record, places: Collection[LetterPosition]) -> bool:
    """Whether a message of the topic is a dead letter of one of these places. Other programs may write there, too."""
    message = Message(topic=kept.topic, key=kept.key, value=kept.value, headers=kept.headers)
    try:
        return letter_position(rejected_record(message).record) in places
    except (KeyError, ValueError):
        return False

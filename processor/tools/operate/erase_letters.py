"""Removes the dead letters of a row from their topic.

Kafka removes records only from the beginning of a partition. So the other dead letters go to the end of the topic, with their own
times, and then the broker removes all before them. A crash between the two leaves dead letters twice, and a reader counts each
once.

    1. Wait until no transaction is open: behind it are letters that no reader sees yet.
    2. Read the topic up to that end, and find the letters of the row (`letters_of_row.py`).
    3. End their replays, copy the others to the end of the topic, and let the broker remove what step 2 read, and nothing else.
"""

from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import NamedTuple

from processor.engine.protocol.replays import forget_letter
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import TRANSACTION_SECONDS, KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.tools.operate.letters_of_row import Belonging, RowLetters
from processor.values.dead_letters import rejected_record
from processor.values.record import Message, Record, Rejected
from statestore.store import Store

TRANSACTION_WAIT = 30.0
"""So many seconds the erasure waits for open transactions of the topic. A job that lives ends each of its own within a batch."""


class RemovedLetters(NamedTuple):
    """The records of the dead letters of a row. `refusal`: why the topic still holds them, else empty. `unread`: the records of
    dead letters of the entity whose key nobody can read, and that stay; `mentions`: those among them that have the key's text."""

    records: tuple[Record, ...] = ()
    refusal: str = ""
    unread: tuple[Record, ...] = ()
    mentions: tuple[Record, ...] = ()


class _Read(NamedTuple):
    """What the topic holds. `messages`: all of them; `letters`: those among them that are dead letters, by their place in
    `messages`; `ends`: where the reading ended."""

    messages: list[Record]
    letters: dict[int, Rejected]
    ends: Mapping[int, int]


def erase_letters(
    settings: Settings, admin: Admin, store: Store, row: RowLetters, patience: float = TRANSACTION_WAIT
) -> RemovedLetters:
    """Removes the dead letters of the row. No replay takes them afterwards, even if the broker keeps them. `patience`: seconds
    to wait for open transactions of other jobs."""
    waits = _wait_for_transactions(admin, settings.rejects_topic, patience)
    read = _read(settings, admin)
    found = {at: row.belongs(letter) for at, letter in read.letters.items()}

    def records(*kinds: Belonging) -> tuple[Record, ...]:
        by_place = {letter.record: None for at, letter in read.letters.items() if found[at] in kinds}
        return tuple(by_place)

    for record in records("row"):
        store.write(forget_letter(record))
    refusal = waits
    own = {at for at, kind in found.items() if kind == "row"}
    try:
        if own and not refusal:
            _rewrite(settings, admin, [one for at, one in enumerate(read.messages) if at not in own], read.ends)
    except StatestoreError as error:
        refusal = str(error)
    return RemovedLetters(records("row"), refusal, records("unread", "mention"), records("mention"))


def _wait_for_transactions(admin: Admin, topic: str, patience: float) -> str:
    """Waits until readers see all that the topic holds now. Returns why they do not, after a while; else nothing."""
    ends, until = admin.ends(topic), monotonic() + patience
    while behind := {p: end for p, end in admin.stable_ends(topic).items() if end < ends.get(p, 0)}:
        if monotonic() >= until:
            at = ", ".join(f"{topic}/{p} from offset {offset}" for p, offset in sorted(behind.items()))
            return (
                f"a transaction of another job is open, and nobody can read the dead letters behind it ({at}). Wait until it "
                f"ends: the broker ends that of a killed job after {TRANSACTION_SECONDS // 60} minutes"
            )
        sleep(0.2)
    return ""


def _read(settings: Settings, admin: Admin) -> _Read:
    """All that readers see of the topic now."""
    topic = settings.rejects_topic
    ends = admin.stable_ends(topic)
    read = read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)
    messages = [message for message in read if message.offset < ends.get(message.partition, 0)]
    letters = {at: letter for at, message in enumerate(messages) if (letter := _letter(message))}
    return _Read(messages, letters, ends)


def _letter(message: Record) -> Rejected | None:
    """The dead letter that a message is, if it is one."""
    kept = Message(topic=message.topic, key=message.key, value=message.value, headers=message.headers)
    try:
        return rejected_record(kept)
    except (KeyError, ValueError):  # another program wrote to the topic
        return None


def _rewrite(settings: Settings, admin: Admin, kept: Sequence[Record], ends: Mapping[int, int]) -> None:
    """Sends these messages again, and removes all before `ends`."""
    topic = settings.rejects_topic
    config = admin.configs([topic]).get(topic, {})
    if config.get("message.timestamp.type") == "LogAppendTime":
        raise StatestoreError(
            f"topic {topic} keeps its own times (LogAppendTime), and a copy would make old dead letters new"
        )
    admin.delete_before(topic, admin.begins(topic))  # removes nothing: it asks for the right before the first copy
    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for message in kept:
        copy = Message(topic=topic, key=message.key, value=message.value, headers=message.headers)
        outbox.produce(copy, message.partition, message.timestamp)
    outbox.flush()
    admin.delete_before(topic, ends)

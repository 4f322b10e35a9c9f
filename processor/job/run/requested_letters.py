"""Reads the dead letters that operators ask the running job to replay (`processor.engine.rounds.live_replays`)."""

from collections.abc import Collection, Sequence
from functools import partial

from processor.engine.protocol.epochs import read_epochs
from processor.engine.protocol.replays import letter_position
from processor.engine.rounds.live_replays import LiveReplays, RequestedLetters
from processor.job.kafka.reader import read_topic
from processor.job.run.dead_letter_topic import portions, with_whole_record
from processor.job.run.job import Job
from processor.values.dead_letters import read_dead_letters, rejected_record
from processor.values.record import Message, Record
from registry.model import LetterPosition


def live_replays(job: Job) -> LiveReplays:
    """The replays of an open job."""
    return LiveReplays(
        driver=job.driver,
        requests=job.registry.replays,
        lease=job.lease,
        read=partial(read_requested, job),
        whole=partial(with_whole_record, job.settings),
    )


def read_requested(job: Job, places: Sequence[LetterPosition]) -> RequestedLetters:
    """The dead letters at these places, in portions: those that are still in their topic. Keeps no others in memory."""
    settings, wanted = job.settings, frozenset(places)
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.dead_letter_topic)
    found = read_dead_letters(record for record in records if _is_at(record, wanted))
    topics = sorted({place.topic for place in places})
    return RequestedLetters(
        portions=tuple(portions(found)), incarnations=read_epochs(job.registry.epochs(topics)).incarnations
    )


def _is_at(kept: Record, places: Collection[LetterPosition]) -> bool:
    """Whether a message of the topic is a dead letter of one of these places. Other programs may write there, too."""
    message = Message(topic=kept.topic, key=kept.key, value=kept.value, headers=kept.headers)
    try:
        return letter_position(rejected_record(message).record) in places
    except (KeyError, ValueError):
        return False

"""The last dead letters of the topic, with what became of each: read at most once in a few seconds, and never the whole topic."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from processor.errors import KafkaError
from processor.kafka.reader import read_sample
from processor.progress.replays import replay_key
from processor.records.dead_letters import DeadLetter, read_dead_letters
from processor.serve.problem import LookUpProblem
from processor.serve.state_reader import StateReader
from processor.settings.settings import Settings
from processor.topics.letter_fates import LetterFate, with_fates

MOST_MESSAGES: Final = 2_000
SHELF_SECONDS: Final = 5.0


@dataclass(slots=True)
class LetterShelf:
    """The dead letters of a job. `open_reader`: of its table, which has the notes of replays."""

    settings: Settings
    open_reader: Callable[[], StateReader]
    _lock: Lock = field(default_factory=Lock)
    _kept: tuple[float, list[DeadLetter]] | None = None

    def letters(self) -> list[LetterFate]:
        """Those among the last messages of the topic, in the order of their positions. What became of each is as of now."""
        found = self._read()
        keys = [replay_key(letter.rejected.record) for letter in found]
        return with_fates(found, self.open_reader().items(keys) if keys else ())

    def _read(self) -> list[DeadLetter]:
        settings = self.settings
        if not settings.bootstrap_servers:
            raise LookUpProblem(503, "dead letters are in Kafka: start the console with --bootstrap-servers")
        with self._lock:
            if self._kept is None or monotonic() - self._kept[0] > SHELF_SECONDS:
                try:
                    records = read_sample(
                        settings.bootstrap_servers, dict(settings.kafka), settings.rejects_topic, MOST_MESSAGES
                    )
                except KafkaError as error:
                    raise LookUpProblem(503, f"{error}; this page goes on when the broker answers") from None
                self._kept = (monotonic(), read_dead_letters(records, []))
            return self._kept[1]

"""The dead letters of the topic, a page at a time from its end, with what became of each: a page is read at most once in a few
seconds, and is bounded in messages and in bytes."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from processor.console.shelves.letter_page import LetterPage, place_text, read_place
from processor.errors import KafkaError
from processor.kafka.topic_page import TopicPage, read_page
from processor.progress.replays import replay_key
from processor.records.dead_letters import DeadLetter, read_dead_letters
from processor.serve.problem import LookUpProblem
from processor.serve.reader import StateReader
from processor.settings.settings import Settings
from processor.topics.letter_fates import with_fates

MOST_MESSAGES: Final = 2_000
MOST_BYTES: Final = 32 * 1024 * 1024
SHELF_SECONDS: Final = 5.0
OLD_SECONDS: Final = 60.0
"""So long the console keeps an earlier page, which changes only by what the topic deletes."""
MOST_PAGES: Final = 4
"""Pages that the console keeps."""


@dataclass(slots=True)
class LetterShelf:
    """The dead letters of a job. `open_reader`: of its table, which has the notes of replays."""

    settings: Settings
    open_reader: Callable[[], StateReader]
    _lock: Lock = field(default_factory=Lock)
    _kept: OrderedDict[str, tuple[float, TopicPage, list[DeadLetter]]] = field(default_factory=OrderedDict)

    def letters(self, before: str) -> LetterPage:
        """The page before a place. What became of each letter is as of now."""
        page, found = self._read(before)
        keys = [replay_key(letter.rejected.record) for letter in found]
        fates = with_fates(found, self.open_reader().items(keys) if keys else ())
        return LetterPage(fates, page.messages, place_text(page.begins) if page.has_earlier else "")

    def _read(self, before: str) -> tuple[TopicPage, list[DeadLetter]]:
        settings, place = self.settings, read_place(before)
        if not settings.bootstrap_servers:
            raise LookUpProblem(503, "dead letters are in Kafka: start the console with --bootstrap-servers")
        with self._lock:
            kept = self._kept.get(before)
            if kept is None or monotonic() - kept[0] > (OLD_SECONDS if before else SHELF_SECONDS):
                try:
                    page = read_page(
                        settings.bootstrap_servers,
                        dict(settings.kafka),
                        settings.rejects_topic,
                        place,
                        most=MOST_MESSAGES,
                        most_bytes=MOST_BYTES,
                    )
                except KafkaError as error:
                    raise LookUpProblem(503, f"{error}; this page goes on when the broker answers") from None
                self._kept[before] = kept = (monotonic(), page, read_dead_letters(page.records, []))
                while len(self._kept) > MOST_PAGES:
                    self._kept.popitem(last=False)
            return kept[1], kept[2]

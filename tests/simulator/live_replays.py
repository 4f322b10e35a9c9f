"""Simulates an operator who asks the running job to replay dead letters, at any moment and while batches go on.

The job takes the request between its rounds, and notes the outcome of each letter. At the moment of the note no last document
shows an older version of the letter's row.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from processor.engine.protocol.replays import PARTITION, ended_replays, letter_position, note_key
from processor.engine.rounds.operators import AGAIN_SECONDS, LiveReplays, RequestedLetters
from processor.errors import KafkaError
from processor.values.dead_letters import DeadLetter
from processor.values.record import Message
from registry.model import LetterOutcome, LetterPosition
from statestore import keys
from tests.simulator.check import KEYS, shown_versions
from tests.simulator.erased_rows import ErasedLettersSimulation, ErasingSimulation
from tests.simulator.history import Event
from tests.simulator.replayed_dead_letters import ReplaySimulation, shape_with_odd_column
from tests.simulator.run import Simulation
from tests.simulator.shapes import STAMP

PORTION = 2


class LiveReplaySimulation(ReplaySimulation):
    """A run whose job replays dead letters on request."""

    __slots__ = ()

    def run(self) -> None:
        early: list[str] = []
        self.world.registry.when_noted = lambda noted: early.extend(self._older_rows(noted))
        super().run()
        self.problem = self.problem or next(iter(early), None) or next(self._wrong_outcomes(), None)

    def _act(self) -> bool:
        if not self.facts["repaired"]:
            self.shape = shape_with_odd_column(self.shape.name, as_text=False)
        job, rng = self.job, self.world.rng
        if job is None:
            return Simulation._act(self)
        is_idle = not (self.has_input or job.pending or self.world.registry.next_letters(1))
        if (letters := self._letters_to_replay()) and (rng.random() < 0.2 or is_idle):
            self._request(rng.sample(letters, rng.randint(1, len(letters))), repair=is_idle or rng.random() < 0.7)
            return True
        if not (self.has_input or job.pending) and self.world.registry.next_letters(1):
            if self.world.conditions.letters_away_chance:
                self.world.now += AGAIN_SECONDS
            self._run_background_work(job)
            return True
        return super(ReplaySimulation, self)._act()

    def _request(self, letters: Sequence[DeadLetter], *, repair: bool) -> None:
        """Asks for a replay. The first repair of the definitions starts the job again; the request may wait meanwhile."""
        self.world.registry.request_replay([letter_position(letter.rejected.record) for letter in letters])
        self.facts["replays"] += 1
        if repair and not self.facts["repaired"]:
            self.facts["repaired"] += 1
            self.shape = shape_with_odd_column(self.shape.name, as_text=True)
            self.end_job()

    def _start(self) -> None:
        super()._start()
        job = self.job
        assert job is not None
        if self.facts["erases"]:
            return
        requests: Any = job.registry
        job.replays = LiveReplays(driver=job.driver, requests=requests, lease=job.lease, read=self._read, seconds=0.0)

    def _read(self, places: Sequence[LetterPosition]) -> RequestedLetters:
        def read() -> RequestedLetters:
            found = [one for one in self._repairable_letters() if letter_position(one.rejected.record) in places]
            portions = tuple(tuple(found[first : first + PORTION]) for first in range(0, len(found), PORTION))
            return RequestedLetters(portions=portions, incarnations=self.epochs.incarnations)

        away = self.world.conditions.letters_away_chance
        if away and self.world.actor.remember(lambda: self.world.rng.random() < away):
            raise KafkaError("the topic of dead letters does not answer")
        return self.world.actor.remember(read)

    def _older_rows(self, noted: LetterOutcome) -> Iterator[str]:
        """The last documents that show an older version of the row than the letter that the job says it applied."""
        if noted.outcome != "applied" or not self.shape.stamped:
            return
        self.facts["applied"] += 1
        self.facts["applied while records wait"] += self.has_input
        topic, partition, offset, _ = noted.place
        row = json.loads(self.logs[topic, partition][offset].value or b"")
        if not isinstance(row[STAMP], int):  # the change left it out
            return
        name = f"{topic} {keys.encode([row[column] for column in KEYS[topic]])}"
        for at, message in self._last_messages().items():
            shown = dict(shown_versions(json.loads(message.value or b""), self.product_of(message)))
            if shown.get(name, row[STAMP]) < row[STAMP]:
                yield f"{noted.place} counts as applied, and {at} shows an older row"

    def _last_messages(self) -> dict[tuple[str, bytes | None], Message]:
        last = {(message.topic, message.key): message for _, message in self.world.broker.log}
        return {at: message for at, message in last.items() if message.value is not None}

    def _wrong_outcomes(self) -> Iterator[str]:
        """The letters whose outcome is another one in the table than in the registry, and those without any."""
        ended = ended_replays(self.world.table.partition(PARTITION))
        zombies = any(kind.startswith("zombie") for kind in self.world.faults)
        for letters in self.world.registry.requests:
            for place, outcome in letters.items():
                if outcome is None:
                    yield f"{place} has no outcome"
                elif outcome != "refused" and outcome != ended.get(note_key(place)) and not zombies:
                    yield f"{place} is {outcome}, and the table says {ended.get(note_key(place))}"


class LiveErasedLetters(LiveReplaySimulation, ErasingSimulation):
    """A run in which an operator erases rows, too. An erasure is a run of its own, which takes no requests."""

    __slots__ = ()

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        return ErasedLettersSimulation.change_events(seed, events)

    def _erase(self, entity: str, key: tuple[Any, ...]) -> None:
        self.facts["erases"] = 1
        try:
            super()._erase(entity, key)
        finally:
            self.facts["erases"] = 0

"""The dead letters of a job, for the verbs that work with them: their positions, what became of each, and the request to replay
them. The request is in the registry: the job replays them also when the person ends the wait."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from processor.cli.options import require_settings
from processor.cli.printing.output import ProgressBar, warn
from processor.engine.protocol.replays import PARTITION, ReplayOutcome, ReplayReport, letter_position
from processor.environment.settings.resolve import open_registry
from processor.errors import SettingError, StatestoreError
from processor.job.metrics.status import request_lines
from processor.job.run.dead_letters import dead_letter_outcomes
from processor.values.record import Record
from registry.errors import RegistryBusy, RegistryUnreachable
from registry.model import JobStatus, LetterOutcome, ReplayRequest
from statestore.store import Item

if TYPE_CHECKING:
    from processor.environment.settings.settings import Settings
    from processor.values.dead_letters import DeadLetter
    from registry.repository import Registry

LOOK_SECONDS = 0.5
NOBODY_SECONDS = 60.0
"""After this time without a run of the job the verb ends. A run that begins again takes less, also after a kill."""


OUTCOMES: Mapping[str, ReplayOutcome] = {"applied": "applied", "ignored": "ignored", "refused": "refused"}
"""A letter that another person dropped meanwhile counts as superseded."""
_POSITION = re.compile(r"([^\s/]+)/(\d{1,9})(?:/| offset )(\d{1,18})(?:(?:/| epoch )(\d{1,18}))?:?", re.ASCII)


class Position(NamedTuple):
    """The place of a dead letter's record. `epoch`: None for each."""

    topic: str
    partition: int
    offset: int
    epoch: int | None


def positions(words: Iterable[str]) -> list[Position]:
    """The positions in the words of a command line: `user/0/17`, or `user/0 offset 17 epoch 1` as `list` prints it. Raises
    SettingError for other words."""
    text, found = " ".join(words), list[Position]()
    while text:
        one = _POSITION.match(text)
        if one is None or text[one.end() :][:1].strip():
            raise SettingError(f"{text!r} is not a position: give TOPIC/PARTITION/OFFSET, such as user/0/17")
        found.append(Position(one[1], int(one[2]), int(one[3]), None if one[4] is None else int(one[4])))
        text = text[one.end() :].strip()
    return found


def is_at(wanted: Position, letter: "DeadLetter") -> bool:
    """Whether the record of the letter is at this position; of any epoch, where the position names none."""
    record = letter.rejected.record
    epoch = record.epoch if wanted.epoch is None else wanted.epoch
    return (record.topic, record.partition, record.offset, record.epoch) == (*wanted[:3], epoch)


def living_job(registry: "Registry", job: str) -> JobStatus | None:
    """The run of the job that holds its lease, by the time of its last renewal; None where none does."""
    return next((one for one in registry.jobs() if one.job == job and one.alive), None)


def follow(
    registry: "Registry",
    job: JobStatus,
    letters: "Sequence[DeadLetter]",
    number: int,
    *,
    pause: Callable[[float], object] = sleep,
    clock: Callable[[], float] = monotonic,
) -> list[ReplayReport]:
    """Waits until the job has noted the outcome of each letter of request `number`, or somebody withdraws it. Raises
    StatestoreError where no job runs any more."""
    known = {letter_position(letter.rejected.record): letter for letter in letters}
    warn(
        f"request {number}: the running job {job.job} ({job.owner}) replays {len(letters)} dead letters, in turn with batches"
    )
    if registry.snapshot().paused:
        warn("all work is paused: the job takes the request after `statestore resume`")
    try:
        request = _wait(registry, job.job, number, pause, clock)
    except KeyboardInterrupt:
        warn("", f"the request continues without this command: {_cures(number)}")
        raise
    if request.state == "withdrawn":
        warn(f"request {number} was withdrawn: {request.ended} of {request.letters} letters replayed")
    return [_report_of(known[one.place], one) for one in registry.replays.outcomes(number) if one.place in known]


def _wait(
    registry: "Registry", job: str, number: int, pause: Callable[[float], object], clock: Callable[[], float]
) -> ReplayRequest:
    """Waits until the request is done or withdrawn. A registry that does not answer for a while ends nothing."""
    bar, away, alive_at = ProgressBar(sys.stderr), False, clock()
    try:
        while True:
            try:
                request, runs = registry.replays.find(number), living_job(registry, job) is not None
            except (RegistryUnreachable, RegistryBusy) as error:
                if not away:
                    warn(f"the wait continues: {error}")
                away, alive_at = True, clock()
                pause(LOOK_SECONDS)
                continue
            if request is None:
                raise StatestoreError(f"the registry has no request {number} any more: give the command again")
            if request.state != "waiting":
                return request
            away, alive_at = False, clock() if runs else alive_at
            bar.show("replay", request.ended, request.letters)
            if clock() - alive_at >= NOBODY_SECONDS:
                raise StatestoreError(
                    f"job {job} runs no more, and request {number} waits for its next run ({request.ended} of "
                    f"{request.letters} letters replayed): start the job, or withdraw the request and replay without a job. "
                    f"{_cures(number)}"
                )
            pause(LOOK_SECONDS)
    finally:
        bar.close()


def withdraw(registry: "Registry", number: int) -> int:
    """Withdraws a request. Returns the exit status."""
    request = registry.replays.find(number)
    if request is None or not registry.replays.withdraw(number):
        state = f"is {request.state} already" if request else "does not exist"
        lines = "; ".join(request_lines(registry.replays.waiting())) or "none waits"
        raise StatestoreError(f"request {number} {state}: {lines}")
    print(f"request {number} withdrawn: {request.ended} of {request.letters} dead letters were replayed before")
    return 0


def _cures(number: int) -> str:
    return (
        "`statestore dead-letters list` and `statestore status` show it, and "
        f"`statestore dead-letters replay --withdraw {number}` withdraws it"
    )


def _report_of(letter: "DeadLetter", ended: LetterOutcome) -> ReplayReport:
    """The report of a letter, as a replay without a job gives it. The job notes no reason where it is that of the letter."""
    outcome = OUTCOMES.get(ended.outcome, "superseded")
    return ReplayReport(
        record=letter.rejected.record,
        outcome=outcome,
        reason=ended.reason or letter.rejected.reason,
        plain=ended.reason,
    )


def read_stored_letters(settings: "Settings") -> "list[tuple[DeadLetter, str]]":
    """The dead letters of the job, each with the outcome of its replay or drop; the outcome is empty while the letter waits."""
    from processor.job.kafka.reader import read_topic
    from processor.values.dead_letters import read_dead_letters

    require_settings(settings, "bootstrap_servers")
    foreign: list[Record] = []
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.dead_letter_topic)
    found = read_dead_letters(records, foreign)
    if foreign:
        first = f"the first is {settings.dead_letter_topic}/{foreign[0].partition} offset {foreign[0].offset}"
        warn(f"{len(foreign)} messages of {settings.dead_letter_topic} are no dead letters; {first}")
    items: list[Item] = []
    if found:
        from processor.job.run.binding import readable_store

        with open_registry(settings) as registry, readable_store(settings, registry) as store:
            items = store.partition(PARTITION)
    return dead_letter_outcomes(found, items)

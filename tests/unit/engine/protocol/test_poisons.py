"""Each kind of poison becomes its dead letter, whole, and the partition moves on. A replay takes what wider definitions cure."""

import json
from typing import Any

import pytest

from processor.counts import OUTCOMES
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter, read_dead_letters
from processor.values.reasons import OF_DOCUMENTS, REASONS
from processor.values.record import Record
from tests.support.poisons import POISONS, Poison, base_records, definitions, positioned

NARROW, WIDE = (plan_alone(load(definitions(wider=wider)), 5) for wider in (False, True))
NEIGHBOUR = Record(topic="thing", partition=0, offset=0, key=b'{"id":2}', value=b'{"id":2,"name":"the neighbour"}')


def fed(poison: Poison) -> tuple[Trial, Record]:
    """A trial that read good rows, then the poison with a good record after it; and the poison at its place."""
    trial = Trial(plan=NARROW, settings=Settings())
    ends: dict[tuple[str, int], int] = {}
    base = list(positioned(base_records(), "", ends))
    trial.batch(base)
    bad, good = positioned([poison.record, NEIGHBOUR], "", ends)
    trial.batch([bad, good])
    trial.finish()
    return trial, bad


def letters_of(trial: Trial) -> list[DeadLetter]:
    kept = [Record(topic=m.topic, partition=0, offset=n, timestamp=7_000, key=m.key, value=m.value, headers=m.headers)
            for n, m in enumerate(trial.rejects.messages)]  # fmt: skip
    return read_dead_letters(kept)


def documents(trial: Trial) -> dict[bytes | None, Any]:
    return {m.key: m.value and json.loads(m.value) for m in trial.published.messages}


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.name)
def test_a_poison_becomes_its_dead_letter_and_the_partition_moves_on(poison: Poison) -> None:
    trial, bad = fed(poison)
    letters = letters_of(trial)
    assert [letter.rejected.code for letter in letters] == ([poison.code] if poison.code else [])
    assert trial.tally["read"] == sum(trial.tally[outcome] for outcome in OUTCOMES)
    assert documents(trial)[b'{"id":2}']["name"] == "the neighbour"
    for letter in letters:
        assert letter.rejected.record == bad  # bytes, key, headers and position
        assert poison.reason in letter.rejected.reason
        assert letter.rejected.entity == poison.record.topic
        assert letter.refused_by is not None
        assert letter.refused_by.release


@pytest.mark.parametrize("poison", [one for one in POISONS if one.code], ids=lambda poison: poison.name)
def test_a_replay_by_wider_definitions_takes_what_they_cure(poison: Poison) -> None:
    trial, bad = fed(poison)
    driver = trial.driver
    driver.adopt(WIDE)
    for outcome in (
        ("applied", "superseded") if poison.cured else ("refused", "refused")
    ):  # a second replay changes nothing
        reports = driver.replay(letters_of(trial))
        trial.finish()
        assert [report.outcome for report in reports] == [outcome], reports
        before = len(trial.published.messages)
        driver.end_replays(reports)
    if poison.cured:
        assert bad.key in documents(trial)
    trial.finish()
    assert len(trial.published.messages) == before


def test_every_code_has_a_poison() -> None:
    assert len({poison.name for poison in POISONS}) == len(POISONS)
    elsewhere = OF_DOCUMENTS | {
        "schema-missing",
        "schema-differs",
        "key-moved",
        "other-registry",
        "source-differs",
        "other",
    }  # with the tests of their parts
    assert {poison.code for poison in POISONS} - {None} == REASONS.keys() - elsewhere

"""The account of dead letters: the registry says what waits, each record once, without a look at the topic."""

import pytest

from registry.errors import LeaseLost
from registry.model import GONE, KeptLetter, LetterFilter, LetterOutcome, LetterPosition, WaitingGroup
from registry.repository import Registry


def letter(
    offset: int, *, epoch: int = 1, at: float = 100.0, topic: str = "star", column: str = "stars", mark: str = ""
) -> KeptLetter:
    """A letter of a column type; each offset has a mark of its own."""
    place = LetterPosition(topic, 0, offset, epoch)
    return KeptLetter(place, mark or f"mark {offset}", "column-type", column, topic, at)


def counts(registry: Registry) -> dict[tuple[str, str], int]:
    """How many letters wait, by topic and column."""
    return {(one.topic, one.column): one.letters for one in registry.letters.waiting()}


def test_a_record_is_one_letter_however_often_a_job_refuses_it(registry: Registry) -> None:
    assert registry.letters.is_empty()
    registry.letters.keep([letter(1), letter(2), letter(7, topic="user", column="")])
    registry.letters.keep([letter(1, at=160.0), letter(2, at=160.0)])  # the batch began again
    registry.letters.keep([letter(1, epoch=2, at=170.0)])  # the registry was rebuilt
    assert registry.letters.waiting() == (
        WaitingGroup("star", "column-type", "stars", 2, 100.0, 170.0),
        WaitingGroup("user", "column-type", "", 1, 100.0, 100.0),
    )
    assert registry.letters.places(LetterFilter(topic="star")) == (
        LetterPosition("star", 0, 1, 2),
        LetterPosition("star", 0, 2, 1),
    )
    assert not registry.letters.is_empty()


def test_records_of_a_topic_that_was_created_again_are_other_letters(registry: Registry) -> None:
    registry.letters.keep([letter(1), letter(1, epoch=2, mark="another record")])
    assert counts(registry) == {("star", "stars"): 2}


def test_a_replay_takes_letters_out_of_the_count_and_its_result_stays(registry: Registry) -> None:
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.letters.keep([letter(n) for n in range(4)], lease)
    places = registry.letters.places(LetterFilter(topic="star", column="stars"))
    number = registry.replays.ask(places, who="ann", why="int is text", selection="topic star, column stars")
    outcomes = ("applied", ""), ("superseded", ""), ("refused", "still no int"), ("refused", GONE)
    noted = [LetterOutcome(place, *one) for place, one in zip(places, outcomes, strict=True)]
    registry.replays.note(lease, number, noted)
    assert counts(registry) == {("star", "stars"): 1}, "the letter that was refused again waits"
    (result,) = registry.replays.recent()
    assert (result.who, result.why, result.selection) == ("ann", "int is text", "topic star, column stars")
    assert (result.act, result.state, result.outcomes) == (
        "replay",
        "done",
        {"applied": 1, "superseded": 1, "refused": 2},
    )
    assert result.ended_at is not None


def test_a_dropped_letter_stays_dropped_also_in_a_later_epoch(registry: Registry) -> None:
    registry.letters.keep([letter(1), letter(2)])
    number = registry.replays.note_drop(registry.letters.places(LetterFilter()), who="ann", why="of a test")
    registry.letters.keep([letter(1, epoch=2), letter(2), letter(3)])
    assert counts(registry) == {("star", "stars"): 1}
    (result,) = registry.replays.recent()
    assert (result.number, result.act, result.outcomes) == (number, "drop", {"dropped": 2})
    assert registry.replays.waiting() == ()


def test_a_letter_that_was_replayed_waits_again_when_a_later_epoch_refuses_it(registry: Registry) -> None:
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.letters.keep([letter(1)])
    number = registry.replays.ask([letter(1).place], who="ann")
    registry.replays.note(lease, number, [LetterOutcome(letter(1).place, "applied")])
    registry.letters.keep([letter(1)])
    assert counts(registry) == {}
    registry.letters.keep([letter(1, epoch=2)])
    assert counts(registry) == {("star", "stars"): 1}


def test_a_run_that_lost_its_lease_accounts_for_no_letter(registry: Registry) -> None:
    lost = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.take_lease("job", "there", 4, take_over=True, expires_after=60)
    with pytest.raises(LeaseLost):
        registry.letters.keep([letter(1)], lost)
    assert counts(registry) == {}


def test_the_account_takes_what_the_whole_topic_says(registry: Registry) -> None:
    registry.letters.keep([letter(1), letter(2), letter(3), letter(4, at=5_000.0)])
    registry.letters.settle({letter(1): "", letter(2): "applied", letter(5): ""}, since=5_000.0)
    found = [place.offset for place in registry.letters.places(LetterFilter())]
    assert found == [1, 4, 5], "2 was replayed, the topic lost 3, and 4 is younger than the look"
    registry.letters.settle({letter(3): ""}, since=50.0)
    assert len(registry.letters.places(LetterFilter())) == 4


def test_an_erased_row_leaves_no_letter_in_the_account(registry: Registry) -> None:
    registry.letters.keep([letter(1), letter(2), letter(1, epoch=3, mark="another record")])
    registry.letters.forget([LetterPosition("star", 0, 1, 3)])
    assert [place.offset for place in registry.letters.places(LetterFilter())] == [2]


def test_letters_are_chosen_by_the_time_when_they_were_refused_first(registry: Registry) -> None:
    registry.letters.keep([letter(1, at=100.0), letter(2, at=200.0), letter(3, at=300.0)])
    registry.letters.keep([letter(1, at=400.0)])
    assert [one.offset for one in registry.letters.places(LetterFilter(since=200.0, until=300.0))] == [2]
    assert str(LetterFilter(topic="star", column="", since=86_400.0)) == (
        "topic star, column none, since 1970-01-02 00:00 UTC"
    )

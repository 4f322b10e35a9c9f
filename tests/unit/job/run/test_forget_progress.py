"""A table forgets what its job remembers, but not that the source emptied a table, nor how it read decimals."""

from processor.engine.plan.plan import Plan
from processor.engine.protocol.walks import FillGoal, TruncateGoal, Walk, read_walk, write_walk
from processor.engine.rounds.decoding import FORMS, read_form, write_form
from processor.job.run.binding import forget_progress
from processor.values.decimal_forms import FormNote, LearnedForm
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Write


def test_the_walk_of_a_truncate_stays_for_a_run_of_any_number() -> None:
    store = MemoryStore()
    walk = Walk(goal=TruncateGoal("5", "3"), left={"TABLE#star": "k"})
    store.write(write_walk(("truncate", "star"), walk, 7))
    store.write(write_walk(("fill", "star"), Walk(goal=FillGoal(1, None), left={}), 7))
    store.write(Write(Key("RUNS", "0000000007"), {"_f": 1, "through": 3}))
    forget_progress(Plan(version=1, entities={}, products={}), store, lambda _: ())
    assert store.partition("RUNS") == []
    (item,) = store.partition("WALKS")
    assert (read_walk(item), item["run"]) == ((("truncate", "star"), walk), 0)


def test_the_form_of_decimals_stays_because_the_rows_were_read_by_it() -> None:
    store = MemoryStore()
    note = FormNote("star", "price", LearnedForm("text", "star", 0, 1, 5))
    store.write(write_form(note))
    forget_progress(Plan(version=1, entities={}, products={}), store, lambda _: ())
    assert [read_form(item) for item in store.partition(FORMS)] == [note]

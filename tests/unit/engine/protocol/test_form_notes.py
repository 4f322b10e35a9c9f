"""The settled forms of decimals in the table: the first one wins, and the definitions make them obsolete."""

from dataclasses import replace

from processor.engine.rounds.decoding import FORMS, forget_form, read_form, write_form
from processor.values.decimal_forms import FormNote, LearnedForm, obsolete_notes, with_notes, without_notes
from statestore.memory import MemoryStore
from statestore.store import Refused
from tests.unit.engine.protocol.decoding import entity

DIGITS = FormNote("item", "price#1", LearnedForm("text", "shop.item", 2, 3, 17))
BYTES = FormNote("item", "price#1", LearnedForm("bytes", "shop.item", 0, 3, 4))
OTHER = FormNote("item", "tax", LearnedForm("bytes", "shop.item", 0, 3, 4))


def test_the_first_note_of_a_column_wins_and_a_later_one_learns_it() -> None:
    store = MemoryStore()
    assert not isinstance(store.write(write_form(DIGITS)), Refused)
    later = store.write(write_form(BYTES))
    assert isinstance(later, Refused)
    assert later.current is not None
    assert read_form(later.current) == DIGITS
    store.write(write_form(OTHER))
    assert with_notes({}, map(read_form, store.partition(FORMS))) == {
        "item": {"price#1": DIGITS.settled, "tax": OTHER.settled}
    }
    store.delete(forget_form(DIGITS))
    assert [read_form(item) for item in store.partition(FORMS)] == [OTHER]


def test_a_note_holds_names_and_positions_and_nothing_else() -> None:
    assert write_form(DIGITS).set == {
        "_f": 1,
        "entity": "item",
        "column": "price#1",
        "form": "text",
        "topic": "shop.item",
        "partition": 2,
        "epoch": 3,
        "offset": 17,
    }


def test_what_the_definitions_say_or_no_longer_have_makes_a_note_obsolete() -> None:
    forms = with_notes({}, [DIGITS, OTHER])
    item = entity("item", "id", "id int, price#1 decimal(9,2), tax decimal(9,2)")
    assert list(obsolete_notes(forms, {"item": item})) == []
    assert list(obsolete_notes(forms, {"item": replace(item, decimals={"tax": "text"})})) == [OTHER]
    assert list(obsolete_notes(forms, {"item": replace(item, decimals="text")})) == [DIGITS, OTHER]
    assert list(obsolete_notes(forms, {"item": entity("item", "id", "id int, tax decimal(9,2)")})) == [DIGITS]
    assert list(obsolete_notes(forms, {"item": entity("item", "id", "id int, price#1 decimal, tax string")})) == [
        DIGITS,
        OTHER,
    ]
    assert list(obsolete_notes(forms, {})) == [DIGITS, OTHER]
    assert without_notes(forms, [OTHER]) == {"item": {"price#1": DIGITS.settled}}

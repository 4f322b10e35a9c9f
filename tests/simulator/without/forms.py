"""Switches that turn the protections of the settled forms of decimals off (processor/engine/rounds/decoding.py)."""

from collections.abc import Callable, Iterable

from processor.engine.rounds.decoding import SettledDecode, write_form
from processor.engine.rounds.run_progress import RunProgress
from processor.values.decimal_forms import FormNote, with_notes
from tests.simulator.without.switch import replacing


def _trusts_itself(decoding: SettledDecode, note: FormNote) -> None:
    decoding.store.write(write_form(note))
    _keeps_in_memory(decoding, note)


def _keeps_in_memory(decoding: SettledDecode, note: FormNote) -> None:
    decoding.settled.append(note)
    decoding.forms = with_notes(decoding.forms, [note])


def _writes_late(learn: Callable[..., None]) -> Callable[..., None]:
    def changed(progress: RunProgress, notes: Iterable[FormNote]) -> None:
        settled = list(notes)
        for note in settled:
            progress.store.write(write_form(note))
        learn(progress, settled)

    return changed


answer_ignored = replacing((SettledDecode, "_settle", lambda _: _trusts_itself))
"""A task reads by the form that its own record shows, although another task was first."""

after_the_round = replacing(
    (SettledDecode, "_settle", lambda _: _keeps_in_memory), (RunProgress, "learn_forms", _writes_late)
)
"""The driver writes the form when the round's rows are written."""

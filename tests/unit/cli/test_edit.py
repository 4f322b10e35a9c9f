"""The verbs of operators: the reason that they need, and the names of slots."""

import pytest

from processor.cli.main import main

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "words",
    [
        ["remove", "p"], ["republish", "p"], ["pause"], ["pause", "p"], ["resume"], ["retire", "e", "GSI_1"],
        ["move", "e", "GSI_1", "gsi_2"], ["pause", "--why", " "], ["undo", "3"], ["add-slots", "6"],
        ["epoch", "t"],
    ],
)  # fmt: skip
def test_an_edit_without_a_reason_is_refused(words: list[str], capsys: Printed) -> None:
    assert main(words) == 1
    message = f"statestore {words[0]}: --why is missing: give the reason, which `statestore history` shows later\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("slot", ["GSI", "x", "GSI_x", "GSI_1_", "-1", "100"])
def test_a_slot_that_is_no_slot_is_wrong_usage(slot: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as error:
        main(["retire", "star", slot, "--why", "a test"])
    assert error.value.code == 2

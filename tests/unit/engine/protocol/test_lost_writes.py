"""What proves that a table, or a registry, went back to an earlier moment."""

import pytest

from processor.engine.protocol.ledger import (
    LedgerEntry,
    Run,
    ShownMessage,
    later_run,
    lost_message,
    lost_round,
    run_key,
)
from registry.model import RunMark
from statestore.keys import Key

SHOWN = ShownMessage("profile", "1", 7, "topic p, partition 0, offset 9")


@pytest.mark.parametrize("through", [4, 5])
def test_a_table_that_knows_the_round_of_the_registry_or_a_later_one_lacks_nothing(through: int) -> None:
    assert lost_round(RunMark(3, 2, 4), Run(number=2, through=through)) == ""


@pytest.mark.parametrize(("through", "known"), [(3, "round 3"), (-1, "no round")])
def test_a_table_without_the_round_of_the_registry_went_back(through: int, known: str) -> None:
    why = "the registry knows that round 4 of run 2 ended, and the table knows "
    assert lost_round(RunMark(3, 2, 4), Run(number=2, through=through)) == f"{why}{known} of it"


@pytest.mark.parametrize(("entry", "erased"), [(LedgerEntry(seq=7), 0), (LedgerEntry(seq=9), 0), (LedgerEntry(), 7)])
def test_a_message_that_the_ledger_or_an_erasure_knows_is_no_evidence(entry: LedgerEntry, erased: int) -> None:
    assert lost_message(SHOWN, entry, erased) == ""


def test_a_message_that_the_ledger_does_not_know_proves_lost_writes() -> None:
    assert lost_message(SHOWN, LedgerEntry(seq=6), 0) == (
        "topic p, partition 0, offset 9 has message 7 of a root, and the table knows 6 of that root"
    )
    assert lost_message(SHOWN, LedgerEntry(), 0).endswith("the table knows none of that root")


def test_a_run_above_every_generation_of_the_registry_proves_that_the_registry_went_back() -> None:
    assert later_run(run_key(7), 7) == ""
    assert later_run(run_key(8), 7) == "the table knows run 8, and the registry's last run is 7"
    assert later_run(Key("SEQUENCES", "profile"), 7) == ""

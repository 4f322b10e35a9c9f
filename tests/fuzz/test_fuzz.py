"""No mutated input of a user, an operator or a topic ends in a traceback. `make soak` runs any number of seeds."""

import pytest

from processor.values.envelopes.kinds import FORMATS
from tests.fuzz import framings
from tests.fuzz.envelopes import check, poisoned
from tests.fuzz.soak import search
from tests.unit.job.kafka.registry_scenes import STYLES, Style

SEEDS = {
    "definitions": 50, "expressions": 150, "queries": 150, "records": 60, "debezium_records": 300, "captured_records": 600,
    "envelopes": 2_000, "framed_records": 3_000, "recorded_files": 500, "dead_letters": 1_000, "settings": 800,
    "product_tests": 15, "command_lines": 40,
}  # fmt: skip


@pytest.mark.parametrize("target", SEEDS)
def test_no_mutated_input_ends_in_a_traceback(target: str) -> None:
    assert search(target, range(SEEDS[target])) == {}


@pytest.mark.parametrize("name", FORMATS)
def test_forty_poisoned_forms_of_each_kind_end_in_no_traceback_and_in_no_row_of_nulls(name: str) -> None:
    forms = list(poisoned(name))
    assert len(forms) >= 40
    for value in forms:
        check(name, value)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_forty_poisoned_forms_of_each_framing_end_in_no_traceback_and_in_no_row_of_nulls(style: Style) -> None:
    forms = list(framings.poisoned(style))
    assert len(forms) >= 40
    for record in forms:
        framings.check(style, record)

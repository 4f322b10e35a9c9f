"""No mutated input of a user, an operator or a topic ends in a traceback. `make soak` runs any number of seeds."""

import pytest

from tests.fuzz.soak import search

SEEDS = {
    "definitions": 50, "expressions": 150, "queries": 150, "records": 60, "debezium_records": 300, "captured_records": 600,
    "recorded_files": 500, "dead_letters": 1_000,
    "settings": 800, "product_tests": 15, "command_lines": 40,
}  # fmt: skip


@pytest.mark.parametrize("target", SEEDS)
def test_no_mutated_input_ends_in_a_traceback(target: str) -> None:
    assert search(target, range(SEEDS[target])) == {}

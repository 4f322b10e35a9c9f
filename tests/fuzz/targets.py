"""The inputs of users, operators and topics, each mutated by a seed and given to the code that reads it.

The rule: no input ends in a traceback. Wrong input gives an error of statestore, whose message has a first line of its own.
A record that breaks the contract becomes a dead letter, and no record stops a product.
"""

from collections.abc import Callable, Mapping
from random import Random

from tests.fuzz.authors import definitions, expressions, product_tests, queries
from tests.fuzz.envelopes import envelopes
from tests.fuzz.framings import framed_records
from tests.fuzz.operators import command_lines, settings
from tests.fuzz.topics import captured_records, dead_letters, debezium_records, recorded_files, records

TARGETS: Mapping[str, Callable[[Random], None]] = {
    target.__name__: target
    for target in (
        definitions, expressions, queries, records, debezium_records, captured_records, envelopes, recorded_files, dead_letters,
        settings, framed_records,
        product_tests, command_lines,
    )
}  # fmt: skip

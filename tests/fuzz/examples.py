"""The examples of the repository, each read once: their definitions, product tests and records."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load, read_directory, read_tests
from processor.language.product.product import Definitions
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from tests.fuzz.finding import SETTINGS

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/topics.jsonl"))


@cache
def texts_of(name: str) -> Mapping[str, str]:
    return read_directory(EXAMPLES / name)


@cache
def tests_of(name: str) -> Mapping[str, str]:
    return read_tests(EXAMPLES / name)


@cache
def definitions_of(name: str) -> Definitions:
    return load(texts_of(name))


@cache
def plan_of(name: str) -> Plan:
    return plan_alone(definitions_of(name), SETTINGS.slots)


@cache
def records_of(name: str) -> list[Record]:
    return list(read_records(os.fspath(EXAMPLES / name / "topics.jsonl")))

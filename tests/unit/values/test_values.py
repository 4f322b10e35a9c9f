"""Types are read from text, and values become canonical or are refused with a reason."""

from decimal import Decimal
from typing import Any

import pytest

from processor.values.decimal_forms import LearnedForm
from processor.values.entity import ColumnType, parse_type
from processor.values.values import DEBEZIUM, PLAIN, Reading, canonical_value

NAMES = ["int", "string", "float", "decimal", "bool", "date", "timestamp", "json"]
TYPES = [*NAMES, "decimal(12,2)", "timestamp(ms)", "timestamp(us)", "timestamp(ns)", "json(text)"]
ENDLESS = "(no finite number; declare json to pass it through as it comes)"
BYTES = "(for Debezium's bytes: declare `decimals: bytes` and decimal(precision,scale), or send schemas)"
YEARS = "(outside the years 0001 to 9999; declare json to pass it through as it comes)"
DIGITS = Reading(text="debezium", settled=LearnedForm("text", "shop.item", 2, 1, 17))
OF_BYTES = Reading(text="debezium", settled=LearnedForm("bytes", "shop.item", 2, 1, 17))
SINCE_DIGITS = "the column has `decimals: text` since the record shop.item/2/17: declare"
SINCE_BYTES = "the column has `decimals: bytes` since the record shop.item/2/17: declare"
EITHER = "(it may be a number or Debezium's bytes: declare `decimals: text` or `decimals: bytes`, or send schemas)"
LETTERS = EITHER.replace("a number", "a word")
BASE64_2 = Reading(text="bytes", scale=2)
NO_SCALE = Reading(text="bytes", scale=None)


@pytest.mark.parametrize("text", [*TYPES, *(f"{text}[]" for text in TYPES)])
def test_a_type_prints_the_text_that_it_was_read_from(text: str) -> None:
    assert str(parse_type(text)) == text


def test_a_type_may_have_spaces_and_a_decimal_may_lack_its_scale() -> None:
    assert str(parse_type(" decimal( 12 , 2 ) [] ")) == "decimal(12,2)[]"
    assert parse_type("decimal(5)") == ColumnType(name="decimal", precision=5, scale=0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("integer", "unknown type 'integer' (did you mean 'int'?)"),
        ("timestmp", "unknown type 'timestmp' (did you mean 'timestamp'?)"),
        ("string[][]", "'string[][]' is not a type"),
        ("", "'' is not a type"),
        ("int(4)", "'int(4)': int takes nothing in parentheses"),
        ("decimal(39,2)", "'decimal(39,2)': expected a precision from 1 to 38"),
        ("decimal(2,3)", "'decimal(2,3)': expected a precision from 1 to 38 and a scale from 0 to the precision"),
        ("decimal(a)", "'decimal(a)': expected decimal(precision,scale)"),
        ("json(string)", "'json(string)': expected json(text)"),
        ("timestamp(s)", "'timestamp(s)': expected the unit of numbers"),
    ],
)
def test_other_text_is_refused_with_the_correct_form(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"type|json|precision|decimal|unit|parentheses") as caught:
        parse_type(text)
    assert str(caught.value).startswith(reason)


def read(text: str, value: Any, reading: Reading = PLAIN) -> str:
    """The canonical value as Python text, or the reason."""
    try:
        return repr(canonical_value(value, parse_type(text), reading))
    except ValueError as error:
        return str(error)


D = Decimal


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("int", 42, "42"),
        ("int", D("42.0"), "42"),
        ("int", D("4.2e1"), "42"),
        ("int", 42.0, "42"),
        ("int", 2**63, "9223372036854775808"),
        ("int", D("42.5"), "expected int, found number 42.5"),
        ("int", "42", "expected int, found text '42'"),
        ("int", True, "expected int, found true"),
        ("int", {}, "expected int, found an object"),
        ("string", "é", "'é'"),
        ("string", "", "''"),
        ("string", 1, "expected string, found number 1"),
        ("string", "\ud800", "expected string, found text '\\ud800' (half of a surrogate pair)"),
        ("string", ["a"], "expected string, found an array"),
        ("bool", False, "False"),
        ("bool", 0, "False"),
        ("bool", 1, "True"),
        ("bool", 2, "expected bool, found number 2"),
        ("bool", "true", "expected bool, found text 'true'"),
        ("decimal", D("12.50"), "Decimal('12.5')"),
        ("decimal", "-012.50", "Decimal('-12.5')"),
        ("decimal", "1E+3", "Decimal('1000')"),
        ("decimal", D("-0.00"), "Decimal('0')"),
        ("decimal", 7, "Decimal('7')"),
        ("decimal", "abc\nd", "expected decimal, found text 'abc\\nd'"),
        ("decimal", "NaN", f"expected decimal, found text 'NaN' {ENDLESS}"),
        ("decimal", "1_0", "expected decimal, found text '1_0'"),
        ("decimal", "٣", "expected decimal, found text '٣'"),
        ("decimal", {"scale": 1, "value": "Nw=="}, "Decimal('5.5')"),
        ("decimal", {"scale": -2, "value": "AQ=="}, "Decimal('100')"),
        ("decimal(12,2)", "BNI=", f"expected decimal(12,2), found text 'BNI=' {BYTES}"),
        ("decimal(12,2)", "1000", "Decimal('1000')"),
        ("float", D("0.1000000000000000055511151231257827"), "Decimal('0.1')"),
        ("float", "1e3", "Decimal('1000')"),
        ("float", 2**53 + 1, "Decimal('9007199254740992')"),
        ("float", "Infinity", f"expected float, found text 'Infinity' {ENDLESS}"),
        ("date", "2024-02-29", "'2024-02-29'"),
        ("date", "2024-02-29Z", "'2024-02-29'"),
        ("date", 7306, "'1990-01-02'"),
        ("date", -719162, "'0001-01-01'"),
        ("date", "2023-02-29", "expected date, found text '2023-02-29' (no such day)"),
        ("date", "2023-W01-1", "expected date, found text '2023-W01-1'"),
        ("date", 10**9, f"expected date, found number 1000000000 {YEARS}"),
        ("date", "-0043-03-15Z", f"expected date, found text '-0043-03-15Z' {YEARS}"),
        ("timestamp", "infinity", f"expected timestamp, found text 'infinity' {YEARS}"),
        ("timestamp", "+10000-01-01T00:00:00Z", f"expected timestamp, found text '+10000-01-01T00:00:00Z' {YEARS}"),
        ("timestamp(ns)", 2**63 - 2, "'2262-04-11T23:47:16.854775806Z'"),
        ("timestamp", "2015-01-01T00:00:00Z", "'2015-01-01T00:00:00Z'"),
        ("timestamp", "2015-01-01t00:00:00.120z", "'2015-01-01T00:00:00.12Z'"),
        ("timestamp", "2015-01-01 00:00:00.000", "'2015-01-01T00:00:00Z'"),
        ("timestamp", "2015-01-01T00:00:00+05:30", "'2014-12-31T18:30:00Z'"),
        ("timestamp", "2015-01-01 00:00:00.5-02", "'2015-01-01T02:00:00.5Z'"),
        ("timestamp", "2015-01-01T00:00:00.1234567890Z", "'2015-01-01T00:00:00.123456789Z'"),
        ("timestamp(ms)", 1420070400120, "'2015-01-01T00:00:00.12Z'"),
        ("timestamp(us)", -1, "'1969-12-31T23:59:59.999999Z'"),
        ("timestamp(ns)", D("1.0"), "'1970-01-01T00:00:00.000000001Z'"),
        ("timestamp(ms)", "2015-01-01T00:00:00Z", "'2015-01-01T00:00:00Z'"),
        ("timestamp", "2015-02-29T00:00:00Z", "expected timestamp, found text '2015-02-29T00:00:00Z' (no such day)"),
        ("timestamp", "2015-01-01T24:00:00Z", "expected timestamp, found text '2015-01-01T24:00:00Z'"),
        ("timestamp", "2015-01-01", "expected timestamp, found text '2015-01-01'"),
        ("json", D("1.0"), "1"),
        ("json", D("Infinity"), "expected json, found number Infinity"),
        ("json", '{"a":1}', "'{\"a\":1}'"),
        ("json", {"a": D("1.50")}, "{'a': Decimal('1.50')}"),
        ("string[]", ["x", None], "['x', None]"),
        ("string[]", "x", "expected string[], found text 'x'"),
        ("int[]", [1, "x"], "element 2: expected int[], found text 'x'"),
        ("json[]", [{"a": 1}, 2], "[{'a': 1}, 2]"),
        ("int", None, "None"),
    ],
)
def test_a_value_becomes_canonical_or_is_refused(column: str, value: Any, expected: str) -> None:
    assert read(column, value) == expected


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("int", 10**38, "the table keeps 38 digits"),
        ("int", D("1e999999999"), "the table keeps 38 digits"),
        ("decimal", "1" * 39, "the table keeps 38 digits"),
        ("decimal", D("1e126"), "the table keeps 38 digits"),
        ("decimal", D("1e-131"), "the table keeps 38 digits"),
        ("decimal", "1e99999999999999999999", "the table keeps 38 digits"),
        ("float", D("1e400"), "found number 1E+400"),
        ("float", 10**400, "beyond a double"),
        ("timestamp", 1420070400000, "a number without a unit: declare timestamp(ms), timestamp(us) or timestamp(ns)"),
        ("timestamp(ms)", 10**17, "outside the years 0001 to 9999"),
        ("timestamp(us)", 253_402_300_800_000_000, "outside the years 0001 to 9999"),  # the first second of 10000
        ("timestamp(ns)", 2**63 - 1, "Debezium's number for infinity; declare json"),
        ("timestamp(ns)", -(2**63), "Debezium's number for infinity; declare json"),
        ("timestamp", "0001-01-01T00:00:00+01:00", "outside the years 0001 to 9999"),
        ("timestamp", "2015-01-01T00:00:00.1234567891Z", "more than 9 digits of a second"),
        ("int", "x" * 100, "found text '" + "x" * 59 + "…'"),
    ],
)
def test_a_reason_names_the_limit_or_the_cure(column: str, value: Any, reason: str) -> None:
    assert reason in read(column, value)
    assert "\n" not in read(column, value)
    assert len(read(column, value)) < 200


@pytest.mark.parametrize("column", ["int", "float", "decimal", "string", "date", "timestamp(ms)"])
def test_an_integer_that_python_does_not_print_is_refused(column: str) -> None:
    assert read(column, 10**5000).startswith(f"expected {column}, found a number of more than 1,000 digits")


@pytest.mark.parametrize(
    ("column", "value", "reading", "expected"),
    [
        ("decimal", "BNI=", BASE64_2, "Decimal('12.34')"),
        ("decimal", "1000", BASE64_2, "Decimal('-26672.12')"),
        ("float", "BNI=", BASE64_2, "Decimal('12.34')"),
        ("int", "BNI=", Reading(text="bytes"), "1234"),
        ("decimal", "12.34", BASE64_2, "expected decimal, found text '12.34' (not Debezium's bytes)"),
        ("decimal", 7, BASE64_2, "Decimal('7')"),
        ("decimal", D("1.5"), BASE64_2, "Decimal('1.5')"),
        ("decimal", {"scale": 1, "value": "Nw=="}, BASE64_2, "Decimal('5.5')"),
        ("decimal", "BNI=", NO_SCALE, "expected decimal, found text 'BNI=' (the entity has `decimals: bytes`: declare"),
        ("decimal", "12.34", NO_SCALE, "expected decimal, found text '12.34' (not Debezium's bytes)"),
        ("decimal(12,2)", "12.34", DEBEZIUM, "Decimal('12.34')"),
        ("decimal(12,2)", "12345", DEBEZIUM, "Decimal('12345')"),
        ("decimal(12,2)", "10", DEBEZIUM, "Decimal('10')"),
        ("decimal(12,2)", D("1.5"), DEBEZIUM, "Decimal('1.5')"),
        ("decimal(12,2)", "BNI=", DEBEZIUM, "Decimal('12.34')"),
        ("decimal(12,2)", "free", DEBEZIUM, f"expected decimal(12,2), found text 'free' {LETTERS}"),
        ("decimal(12,2)", "AYag", DEBEZIUM, f"expected decimal(12,2), found text 'AYag' {LETTERS}"),
        ("decimal(12,2)", "A//g", DEBEZIUM, "Decimal('2621.12')"),
        ("decimal(12,2)", "1234", DEBEZIUM, f"expected decimal(12,2), found text '1234' {EITHER}"),
        ("decimal(12,2)", "twelve", DEBEZIUM, "expected decimal(12,2), found text 'twelve'"),
        ("decimal(4,2)", "free", DEBEZIUM, "expected decimal(4,2), found text 'free'"),
        ("decimal(12,2)", "Infinity", DEBEZIUM, f"expected decimal(12,2), found text 'Infinity' {ENDLESS}"),
        ("decimal", "BNI=", DEBEZIUM, f"expected decimal, found text 'BNI=' {BYTES}"),
        ("decimal", "1000", DEBEZIUM, "Decimal('1000')"),
        ("decimal", "free", DEBEZIUM, "expected decimal, found text 'free'"),
        ("decimal(2,1)", "1000", DEBEZIUM, "Decimal('1000')"),
        ("float", "1000", DEBEZIUM, "Decimal('1000')"),
        ("float", "free", DEBEZIUM, "expected float, found text 'free'"),
        ("decimal(12,2)", "1234", DIGITS, "Decimal('1234')"),
        ("decimal(12,2)", "12345", DIGITS, "Decimal('12345')"),
        ("decimal(12,2)", 12, DIGITS, "Decimal('12')"),
        ("decimal(12,2)", "free", DIGITS, f"expected decimal(12,2), found text 'free' ({SINCE_DIGITS}"),
        ("decimal(12,2)", "BNI=", DIGITS, f"expected decimal(12,2), found text 'BNI=' ({SINCE_DIGITS}"),
        ("decimal(12,2)", "Infinity", DIGITS, f"expected decimal(12,2), found text 'Infinity' {ENDLESS}"),
        ("decimal(12,2)", "twelve", DIGITS, "expected decimal(12,2), found text 'twelve'"),
        ("decimal(12,2)", "1234", OF_BYTES, "Decimal('-26588.24')"),
        ("decimal(12,2)", "free", OF_BYTES, "Decimal('83045.42')"),
        ("decimal(12,2)", "12345", OF_BYTES, f"expected decimal(12,2), found text '12345' ({SINCE_BYTES}"),
        ("decimal(12,2)", "12.34", OF_BYTES, f"expected decimal(12,2), found text '12.34' ({SINCE_BYTES}"),
        ("decimal(4,2)", "1234", OF_BYTES, f"expected decimal(4,2), found text '1234' ({SINCE_BYTES}"),
        ("decimal(12,2)", "twelve", OF_BYTES, "expected decimal(12,2), found text 'twelve' (not Debezium's bytes)"),
        ("decimal(12,2)[]", ["1234", "1.5"], DIGITS, "[Decimal('1234'), Decimal('1.5')]"),
        ("decimal(12,2)[]", ["1.5", None], DEBEZIUM, "[Decimal('1.5'), None]"),
        ("decimal(12,2)[]", ["BNI=", None], BASE64_2, "[Decimal('12.34'), None]"),
        ("timestamp", 1, Reading(unit="us"), "'1970-01-01T00:00:00.000001Z'"),
        ("json", '{"a": 1.50}', Reading(text="json"), "{'a': Decimal('1.50')}"),
        (
            "json",
            "{",
            Reading(text="json"),
            "expected json, found text '{' (not JSON: expecting property name enclosed",
        ),
        ("json", [1], Reading(text="json"), "[1]"),
    ],
)
def test_the_source_decides_how_text_is_read(column: str, value: Any, reading: Reading, expected: str) -> None:
    assert read(column, value, reading).startswith(expected)

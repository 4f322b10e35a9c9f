"""Regular expressions find and replace what PostgreSQL's do: random patterns over random texts, and every letter."""

from random import Random

import psycopg

from processor.language.product.expressions import regular_expressions
from processor.language.product.expressions.regular_expressions import Characters, WrongPattern

CLASSES = ["[ab]", "[^a]", "\\d", "\\w", "\\s", "[a-c]", "[[:alpha:]_]", "\\W", "[\\d.]", "\\.", "^", "$"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"]


def _atom(random: Random, depth: int) -> str:
    chance = random.random()
    if chance < 0.45 or not depth:
        return random.choice("abcAé.")
    if chance < 0.6:
        return random.choice(CLASSES)
    return f"{random.choice(['(', '(', '(?:'])}{_pattern(random, depth - 1)})"


def _piece(random: Random, depth: int) -> str:
    atom = _atom(random, depth)
    return atom + random.choice(QUANTIFIERS) if atom not in ("^", "$") and random.random() < 0.4 else atom


def _pattern(random: Random, depth: int) -> str:
    branches = 1 if random.random() < 0.7 else 2
    return "|".join("".join(_piece(random, depth) for _ in range(random.randint(1, 4))) for _ in range(branches))


def test_random_patterns_find_and_replace_what_postgres_does(postgres_url: str) -> None:
    random, compared = Random(7), 0
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for _ in range(1_500):
            pattern, flags = _pattern(random, 2), random.choice(["", "g", "i", "gi"])
            text = "".join(random.choice("aabbcA1é .\n") for _ in range(random.randint(0, 9)))
            replacement = random.choice(["X", "<\\&>", "[\\1]", "\\2-\\1", "a\\\\b"])
            try:
                regular_expressions.check_replacement(pattern, replacement, flags)
            except WrongPattern:
                continue
            asked = "select %s::text ~ %s, %s::text ~* %s, regexp_replace(%s::text, %s::text, %s::text, %s::text)"
            given = [text, pattern, text, pattern, text, pattern, replacement, flags]
            found = (
                regular_expressions.matches(text, pattern),
                regular_expressions.matches_folded(text, pattern),
                regular_expressions.regexp_replace(text, pattern, replacement, flags),
            )
            compared += 1
            assert connection.execute(asked, given).fetchone() == found, given
    assert compared > 700


def test_classes_know_every_letter_of_postgres(postgres_url: str) -> None:
    every = "select n from generate_series(1, 1114111) n where n not between 55296 and 57343 and chr(n) ~ %s"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for pattern in ("\\w", "\\d", "\\s"):
            expected = {number for (number,) in connection.execute(every, [pattern])}
            part = regular_expressions.read_pattern(pattern).part
            assert isinstance(part, Characters)
            numbers = (n for n in range(1, 0x110000) if not 0xD800 <= n <= 0xDFFF)
            assert {n for n in numbers if part.holds(chr(n))} == expected, pattern


def test_a_long_text_of_one_letter_takes_no_power_of_its_length() -> None:
    """Python's `re` would need 2 to the power of 5,000 steps."""
    assert not regular_expressions.matches("a" * 5_000, "^(a+)+b|^(a|a)*b")

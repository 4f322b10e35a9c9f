"""The words of `compare` for collations and types of sources."""

import pytest

from processor.tools.source.session import of_mysql, of_postgres
from processor.values.entity import Compare

ACCENTS, EXPANSIONS = (
    "letters with and without accents, as é and e, and expansions, as ß and ss",
    "expansions, as ß and ss",
)


@pytest.mark.parametrize(
    ("collation", "compare", "beyond"),
    [
        ("utf8mb4_general_ci", ("ci", "trimmed"), ACCENTS),
        ("utf8mb4_0900_ai_ci", ("ci",), ACCENTS),
        ("utf8mb4_0900_as_ci", ("ci",), EXPANSIONS),
        ("utf8mb4_0900_as_cs", (), ""),
        ("utf8mb4_0900_bin", (), ""),
        ("utf8mb4_bin", ("trimmed",), ""),
        ("utf8mb4_uca1400_ai_ci", ("ci", "trimmed"), ACCENTS),
        ("utf8mb4_uca1400_nopad_as_cs", (), ""),
        ("uca1400_ai_cs", ("trimmed",), ACCENTS),
        ("latin1_swedish_ci", ("ci", "trimmed"), ACCENTS),
        ("binary", (), ""),
    ],
)
def test_a_collation_of_mysql_says_by_its_name_how_it_compares(collation: str, compare: Compare, beyond: str) -> None:
    assert of_mysql(collation) == (compare, collation, beyond)


@pytest.mark.parametrize(
    ("kind", "locale", "compare", "beyond"),
    [
        ("citext", None, ("ci",), ""),
        ("bpchar", None, ("trimmed",), ""),
        ("text", "und-u-ks-level2", ("ci",), EXPANSIONS),
        ("text", "und-u-ks-level1", ("ci",), ACCENTS),
        ("text", "und-u-kc-ks-level1", (), ACCENTS),
        ("text", "und-u-kc-true-ks-level1", (), ACCENTS),
        ("text", "@colStrength=secondary", ("ci",), EXPANSIONS),
        ("varchar", "und", (), "other code points of one letter"),
        ("bpchar", "de-u-ks-level2", ("ci", "trimmed"), EXPANSIONS),
        ("text", "und-u-ka-shifted-ks-level2", ("ci",), f"{EXPANSIONS} and texts with and without punctuation"),
    ],
)
def test_a_type_or_a_nondeterministic_collation_of_postgres_says_how_it_compares(
    kind: str, locale: str | None, compare: Compare, beyond: str
) -> None:
    found = of_postgres(kind, None if locale is None else "mine", locale or "")
    assert (found.compare, found.beyond) == (compare, beyond)

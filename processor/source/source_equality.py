"""How the columns of a source compare their text, as its catalogue says: by collations, citext and char(n). Reads no row.

A word of `compare` says what a collation does with case and with spaces at the end. `beyond` names what else the collation makes
equal, and no word says.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from processor.records.entity import Compare, CompareWord
from processor.source.session import SourceSession

_POSTGRES: Final = """
    SELECT n.nspname, c.relname, a.attname, coalesce(element.typname, base.typname, t.typname), co.collname,
           coalesce(to_jsonb(co) ->> 'colllocale', to_jsonb(co) ->> 'colliculocale', to_jsonb(co) ->> 'collcollate')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_type base ON base.oid = t.typbasetype
    LEFT JOIN pg_type element ON element.oid = coalesce(base.typelem, t.typelem)
      AND coalesce(base.typcategory, t.typcategory) = 'A'
    LEFT JOIN pg_collation co ON co.oid = a.attcollation AND NOT co.collisdeterministic
    WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND (co.oid IS NOT NULL OR coalesce(element.typname, base.typname, t.typname) IN ('citext', 'bpchar'))
"""
_MYSQL: Final = """
    SELECT table_schema, table_name, column_name, collation_name FROM information_schema.columns
    WHERE collation_name IS NOT NULL AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
"""
_ACCENTS: Final = "letters with and without accents, as é and e, and expansions, as ß and ss"
_EXPANSIONS: Final = "expansions, as ß and ss"


class ColumnEquality(NamedTuple):
    """How a column compares. `collation`: its name, or the type that decides; `beyond`: what it makes equal that no word says."""

    compare: Compare
    collation: str
    beyond: str = ""


AS_IT_IS: Final = ColumnEquality((), "by code points")
Equalities = Mapping[tuple[str, str, str], ColumnEquality]
"""(schema, table, column) -> how the column compares. A column that is not in it compares by code points."""


def read_equalities(session: SourceSession) -> Equalities:
    """Of all columns that the user sees."""
    if session.mysql:
        rows = session.read_rows(_MYSQL)
        return {(schema, table, column): of_mysql(collation) for schema, table, column, collation in rows}
    return {
        (schema, table, column): of_postgres(kind, collation, locale or "")
        for schema, table, column, kind, collation, locale in session.read_rows(_POSTGRES)
    }


def of_mysql(collation: str) -> ColumnEquality:
    """Of a collation of MySQL or MariaDB, whose name says it: `utf8mb4_0900_as_ci`, `utf8mb4_uca1400_nopad_ai_ci`."""
    parts = {*collation.lower().split("_")}
    ci, accents = "ci" in parts, "ai" in parts or ("ci" in parts and "as" not in parts)
    words: list[CompareWord] = ["ci"] if ci else []
    if collation != "binary" and not parts & {"nopad", "0900"}:
        words.append("trimmed")
    return ColumnEquality(tuple(words), collation, _ACCENTS if accents else _EXPANSIONS * ci)


def of_postgres(kind: str, collation: str | None, locale: str) -> ColumnEquality:
    """Of a type of PostgreSQL and of a nondeterministic collation with its ICU locale, `und-u-ks-level2`; None: any other
    collation, which compares code points."""
    words: tuple[CompareWord, ...] = ("trimmed",) if kind == "bpchar" else ("ci",) if kind == "citext" else ()
    if collation is None:
        return ColumnEquality(words, {"bpchar": "char(n)"}.get(kind, kind))
    asked = locale.lower()
    strength = re.search(r"ks-level(\d)|colstrength=(primary|secondary)", asked)
    level = {"primary": "1", "secondary": "2"}.get(strength[2], strength[1]) if strength else "3"
    keeps_case = re.search(r"kc(?!-false)|colcaselevel=yes", asked) is not None
    ci = level in ("1", "2") and not keeps_case
    beyond = [{"1": _ACCENTS, "2": _EXPANSIONS}.get(level, "other code points of one letter")]
    if re.search("ka-shifted|colalternate=shifted", asked):
        beyond.append("texts with and without punctuation")
    found: Compare = (*(("ci",) if ci and "ci" not in words else ()), *words)
    return ColumnEquality(found, collation, " and ".join(beyond))

"""Draws products with every word of the language: all functions and operators, over the joins, lists, trees, unions and groups of
products.py. Their authors stay as they are, so that the seeds of other histories mean the same.
"""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any, Final

from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.expressions.functions import take_names
from processor.language.product.product import Definitions
from tests.integration.product.products import DRAWN, ENTITIES, Author, GroupAuthor, Names, TreeAuthor

take_names(["mask"])  # also in the processes of a soak, which no fixture reaches

_PARTS: Final = ("quarter", "week", "isoyear", "dow", "isodow", "doy")
FORMS: Final[dict[str, list[str]]] = {
    "int": [
        *(f"extract({part} from {{{of}}})" for part in _PARTS for of in ("date", "timestamp")),
        "({int} % 3)", "mod({int}, 2)", "(-({int}))", "abs({int})", "sign({decimal})", "sign({float})", "sign({int})",
        "({int} / {int})", "length({string})", "char_length({string})", "position({string} in {string})",
        "({date} - {date})", "extract(year from {timestamp})", "extract(month from {timestamp})",
        "extract(day from {timestamp})", "extract(hour from {timestamp})", "extract(minute from {timestamp})",
        "extract(year from {date})", "extract(month from {date})", "extract(day from {date})", "cast({string} as int)",
        "({float})::int", "({decimal})::int", "({bool})::int", "cardinality({string[]})", "array_length({int[]}, 1)",
        "jsonb_array_length({json} -> 'a')", "({json} ->> 'a')::int", "round({int})", "floor({int})", "ceil({int})",
        "trunc({int})", "least({int}, {int})", "({int} - {int})", "coalesce({int}, {int})",
    ],
    "string": [
        "to_char({timestamp} at time zone 'Asia/Tokyo', 'YYYY-MM')", "({timestamp} at time zone 'Europe/Zurich')::text",
        "to_char({timestamp}, 'YYYY-MM')", "to_char({date}, 'YYYY')",
        "lower({string})", "initcap({string})", "left({string}, 2)", "right({string}, 1)", "trim({string})",
        "ltrim({string})", "rtrim({string})", "btrim({string}, 'a')", "ltrim({string}, 'a')", "rtrim({string}, 'b')",
        "replace({string}, 'a', 'xy')", "split_part({string}, 'a', 1)", "concat({string}, {int}, null)",
        "concat_ws('-', {string}, {bool})", "lpad({string}, 3, '*')", "lpad({string}, 3)",
        "rpad({string}, {int}, 'ab')", "rpad({string}, 2)", "regexp_replace({string}, '[ab]+', 'x', 'g')",
        "regexp_replace({string}, '(a)', '\\1\\1')", "md5({string})", "sha224({string})", "sha256({string})",
        "sha384({string})", "sha512({string})", "hmac_sha256({string}, :mask)", "format('%s-%2$s', {string}, {int})",
        "({int})::text", "({bool})::text", "({date})::text", "({timestamp})::text", "({timestamp})::timestamp::text",
        "(round({decimal}, 2))::text", "({json} ->> 'a')", "({json} ->> 0)", "({json} #>> '{{a,0}}')",
        "({json} -> 'a')::text", "jsonb_typeof({json})", "least({string}, {string})", "substring({string}, 2, 1)",
        "upper({string})", "coalesce({json} ->> 'a', {string})", "({string})::varchar",
    ],
    "decimal": [
        "extract(second from {timestamp})", "extract(epoch from {timestamp})", "extract(epoch from {date})",
        "extract(epoch from {timestamp} - {timestamp})",
        "({decimal} % 2)", "mod({decimal}, 2)", "(-({decimal}))", "abs({decimal})", "round({decimal}, 1)",
        "trunc({decimal}, 1)", "round({decimal})", "floor({decimal})", "ceil({decimal})", "trunc({decimal})",
        "({decimal} / 3)", "sqrt(abs({decimal}))", "ln(abs({decimal}))", "log(abs({decimal}))",
        "log(2.0, abs({decimal}))", "exp(({decimal} % 9))", "power({decimal}, 2)", "({int})::decimal",
        "({float})::decimal", "cast({string} as decimal)", "cast({decimal} as decimal(6,1))",
        "({json} -> 'a')::decimal", "least({decimal}, {decimal})",
    ],
    "float": [
        "({float} * 2)", "(-({float}))", "abs({float})", "sqrt(abs({float}))", "ln(abs({float}))", "log(abs({float}))",
        "sin({float})", "cos({float})", "tan({float})", "asin({float})", "acos(sin({float}))", "atan({float})",
        "atan2({float}, {float})", "radians({float})", "degrees({float})",
        "exp(least({float}, 9))", "power({float}, 2)", "floor({float})", "ceil({float})", "round({float})",
        "trunc({float})", "({int})::float", "({decimal})::float", "({float} / {float})", "least({float}, {float})",
    ],
    "bool": [
        "({string} ~ '^a')", "({string} ~* 'B')", "({string} !~ 'a$')", "({string} like 'a!%%' escape '!')",
        "({string} ilike 'A%')", "starts_with({string}, 'a')", "({bool} and {bool})", "({bool} or {bool})",
        "(not {bool})", "({bool} is false)", "({bool} is true)", "({int} is distinct from {int})",
        "({string} is distinct from {string})", "({int} = any({int[]}))", "({string} = any({string[]}))",
        "({string} <> all({string[]}))", "({json} ? 'a')", "({json} ?| array['a', 'b'])", "({json} @> '[1]')",
        "('[1]' <@ {json})", "({json} -> 'a' = {json} -> 'b')", "({json} <> {json})", "({json} is null)",
        "({json} -> 'a')::bool", "({float} <= {float})", "({date} > {date})", "({timestamp} < {timestamp})",
        "({bool} = {bool})", "({string} in ('a', {string}))", "({date} in ({date}, null))",
    ],
    "date": [
        "({timestamp} at time zone 'America/New_York')::date",
        "({timestamp})::date", "least({date}, {date})", "({date} + {int})", "({date} - {int})",
    ],
    "timestamp": [
        "date_trunc('day', {timestamp}, 'Europe/Zurich')", "({timestamp} at time zone 'Asia/Tokyo' at time zone 'UTC')",
        "({timestamp} + interval '1 month')", "({timestamp} - interval '2 h')", "date_trunc('week', {timestamp})",
        "date_trunc('quarter', {timestamp})", "date_trunc('second', {timestamp})",
        "({date})::timestamp", "date_trunc('year', {timestamp})", "date_trunc('month', {timestamp})",
        "date_trunc('day', {timestamp})", "date_trunc('hour', {timestamp})", "date_trunc('minute', {timestamp})",
    ],
    "json": [
        "{json} -> 'a'", "{json} -> 0", "{json} #> '{{a}}'", "json_build_object('a', {int}, 'b', {timestamp})",
        "json_build_array({string})",
        "json_build_array({timestamp} at time zone 'Asia/Tokyo')", "array[{int}, 1]", "case when {bool} then {json} end",
        "coalesce({json} -> 'a', {json})",
    ],
}  # fmt: skip
"""Type -> forms of expressions. `{T}` is an expression of the type T; doubled braces are braces."""
TOTALS: Final = [
    "bool_and({bool})", "bool_or({bool})", "string_agg({string}, ',')", "array_agg({int})", "json_object_agg({string}, {int})",
    "first({date} order by {int})", "last({timestamp} order by {int})", "min({string})", "max({float})", "sum({decimal})",
    "count({bool})", "count(distinct {string})", "sum({int}) filter (where {bool})",
]  # fmt: skip
"""Forms of aggregates."""
_HOLE = re.compile(r"(?<!\{)\{(\w+(?:\[\])?)\}")


def filled(form: str, part: Callable[[str], str]) -> str:
    """The expression of a form. `part`: an expression of a type."""
    return _HOLE.sub(lambda found: part(found[1]), form).replace("{{", "{").replace("}}", "}")


def every_form() -> Definitions:
    """A product with each form once, over columns of three tables."""
    names = {
        "int": "item", "string": "s", "decimal": "n.v", "float": "i.v", "bool": "n.ok", "date": "i.day", "timestamp": "n.at",
        "json": "x", "int[]": "n.ids", "string[]": "words",
    }  # fmt: skip
    forms = [filled(form, names.__getitem__) for of in FORMS.values() for form in of]
    columns = {
        "int": "n",
        "string": "s",
        "decimal": "m.v",
        "float": "v",
        "bool": "ok",
        "date": "day",
        "timestamp": "m.at",
    }
    totals = [filled(form, columns.__getitem__) for form in TOTALS]
    items = {"many": "item", "on": {"id": "item"}, "join": {"m": {"one": "node", "on": {"id": "node"}}}}
    product = {
        "product": "p",
        "root": "tag",
        "join": {"n": {"one": "node", "on": {"id": "item"}}, "i": {"one": "item", "on": {"id": "item"}}},
        "embed": {"t": {**items, "fields": {f"t{n}": one for n, one in enumerate(totals)}}},
        "fields": {f"f{n}": one for n, one in enumerate(forms)},
    }
    return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})


class _AllWords(Author):
    """Draws expressions with all functions."""

    def expression(self, names: Names, type_: str, depth: int = 2) -> str:
        if not depth or type_ not in FORMS or self.may(0.3):
            return super().expression(names, type_, depth)
        form = self.rng.choice(FORMS[type_])
        holes = _HOLE.findall(form)
        if any("[]" in hole or hole == "json" for hole in holes) and not all(
            names[h] for h in holes if h in ("json", "int[]", "string[]")
        ):
            return super().expression(names, type_, depth)

        def part(of: str) -> str:
            return (
                self.rng.choice(names[of]) if of not in FORMS or of == "json" else self.expression(names, of, depth - 1)
            )

        return filled(form, part)

    def json(self, names: Names) -> str:
        """An expression of json."""
        form = self.rng.choice(FORMS["json"] if names["json"] else FORMS["json"][3:6])
        return filled(form, lambda of: self.rng.choice(names[of]) if of == "json" else self.expression(names, of, 1))

    def total(self, names: Names) -> str:
        if self.may(0.5):
            return super().total(names)
        rows = {
            of: [n for n in named if n[:4] not in ("min(", "max(", "sum(", "avg(", "coun")]
            for of, named in names.items()
        }
        return filled(self.rng.choice(TOTALS), lambda of: self.expression(rows, of, 1))


class WordAuthor(_AllWords, TreeAuthor):
    """Writes one product with all words but those of groups."""

    def selection(self, entity: str, joins: dict[str, dict[str, Any]], names: Names, grouped: bool) -> dict[str, Any]:
        written = super().selection(entity, joins, names, grouped)
        if isinstance(written.get("fields"), dict) and not grouped and self.may(0.4):
            written["fields"]["json"] = self.json(names)
        return written


class WordGroupAuthor(_AllWords, GroupAuthor):
    """Writes one product of groups with all functions."""


def described_words(rng: Random, like: dict[str, Any] | None = None) -> dict[str, Any]:
    """A product with any words. An author who names what a level does not have draws again. `like`: another one of its root."""
    grouped = rng.random() < 0.2 if like is None else isinstance(like["root"], dict)
    while True:
        product = (WordGroupAuthor if grouped else WordAuthor)(rng).product()
        product.pop("grouped", None)
        if like is not None and _root(product) != _root(like):
            continue
        try:
            load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product, ensure_ascii=False)})
        except DefinitionError:
            continue
        return product


def _root(product: dict[str, Any]) -> tuple[str, list[str]]:
    """What the documents are of: an entity, or its groups by these columns."""
    root = product["root"]
    return (root, []) if isinstance(root, str) else (root["group"], [*root["by"]])


def draw_word_definitions(rng: Random) -> Definitions:
    """The four tables, and one product with any words."""
    return load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(described_words(rng), ensure_ascii=False)})


assert {*FORMS} <= {*DRAWN}

"""Random products as SQL in equal forms read back to the documents of the tree, which are the rows that Postgres answers.

More of them: `python -m tests.integration.product.test_sql_texts 2000 [--from SEED]`, or one with `--seed SEED`.
"""

import argparse
import json
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.types.json import set_json_loads

from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.product import Definitions
from processor.tools.inspect.oracle import Oracle, oracle
from tests.integration.conftest import embedded
from tests.integration.product.random_trees import ENTITIES, KEYS, Author, Drawn, draw_rows, tree_text
from tests.integration.product.sql_texts import Analyst, sql_text
from tests.integration.product.window_texts import Windows
from tests.simulator.oracle import documents

TEXTS = json.dumps(ENTITIES)


class Server:
    """A schema of Postgres with the tables, which answers queries."""

    def __init__(self, tables: Oracle, connection: psycopg.Connection[Any]) -> None:
        self._tables, self._connection = tables, connection
        self.loaded = -1

    def rows(self, query: str) -> list[dict[str, Any]]:
        return [row for (row,) in self._connection.execute(f"select to_json(q) from ({query}) as q".encode())]

    def fill(self, number: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        if self.loaded != number:
            self._tables.load(rows)
            for name, key in KEYS.items():
                self._connection.execute(f"alter table {name} add primary key ({', '.join(key)})".encode())
            self.loaded = number


@contextmanager
def server(url: str) -> Iterator[Server]:
    entities = load({"entities.yaml": TEXTS}).entities
    schema = f"texts_{uuid.uuid4().hex[:8]}"
    with (
        oracle(url, schema, entities) as tables,
        psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection,
    ):
        set_json_loads(lambda text: json.loads(text, parse_float=Decimal), connection)
        connection.execute("select set_config('search_path', %s, false)", [schema])
        yield Server(tables, connection)


def read(text: str) -> Definitions:
    return load({"entities.yaml": TEXTS, "p.yaml": text})


def drawn(seed: int) -> tuple[Drawn, str, list[str]]:
    """The product of a seed, its query, and the forms of the query."""
    rng = Random(f"sql {seed}")
    product = Author(rng).drawn()
    analyst = Analyst(rng, product)
    return product, analyst.query(), analyst.forms


def problem_of(seed: int, postgres: Server | None) -> str:
    """What is wrong with the query of a seed; empty where its documents are those of the tree, and the rows of Postgres."""
    product, query, _ = drawn(seed)
    rows = draw_rows(Random(f"rows {seed // 20}"))
    tree = read(tree_text(product))
    tables = {name: {tuple(row[c] for c in KEYS[name]): row for row in own} for name, own in rows.items()}
    wanted = documents(tree.products["p"], tree, tables)
    if postgres is not None:
        postgres.fill(seed // 20, rows)
        try:
            answered = sorted(postgres.rows(query), key=json_key)
        except psycopg.Error as error:
            return f"Postgres refuses the query: {str(error).splitlines()[0]}"
        if answered != (of_tree := sorted(wanted.values(), key=json_key)):
            return f"Postgres answers other rows than the tree: {difference(answered, of_tree)}"
    try:
        definitions = read(sql_text(query))
    except DefinitionError as error:
        return f"refused: {error}"
    found = documents(definitions.products["p"], definitions, tables)
    if product.by:  # the key of a group has the order of GROUP BY
        found, wanted = ({json_key(document): document for document in some.values()} for some in (found, wanted))
    if found != wanted:
        return f"other documents: {difference(list(found.values()), list(wanted.values()))}"
    if any(list(document) != list(wanted[key]) for key, document in found.items()):
        return "the members have another order"
    return ""


def json_key(row: dict[str, Any]) -> str:
    parts = [row[f"k{n}"] for n in range(2) if f"k{n}" in row]
    return str([float(part) if isinstance(part, int | Decimal) else part for part in parts])


def difference(found: list[Any], wanted: list[Any]) -> str:
    more = [row for row in found if row not in wanted][:2]
    less = [row for row in wanted if row not in found][:2]
    return f"{len(found)} and {len(wanted)}: {more} in place of {less}"


@pytest.mark.rest
def test_random_queries_in_equal_forms_read_back_to_the_documents_of_their_trees_and_to_the_rows_of_postgres(
    postgres_url: str,
) -> None:
    with server(postgres_url) as postgres:
        wrong = {seed: problem for seed in range(300) if (problem := problem_of(seed, postgres))}
    assert wrong == {}


@pytest.mark.rest
def test_random_windows_are_the_rows_of_postgres(postgres_url: str) -> None:
    with server(postgres_url) as postgres:
        for seed in range(100):
            query, rows = Windows(Random(f"windows {seed}")).query(), draw_rows(Random(f"rows {seed // 20}"))
            postgres.fill(seed // 20, rows)
            definitions = read(sql_text(query))
            tables = {name: {tuple(row[c] for c in KEYS[name]): row for row in own} for name, own in rows.items()}
            found = documents(definitions.products["p"], definitions, tables)
            assert sorted(map(by_value, found.values())) == sorted(map(by_value, postgres.rows(query))), query


def by_value(row: dict[str, Any]) -> str:
    return json.dumps({name: _plain(value) for name, value in row.items()}, sort_keys=True)


def _plain(value: Any) -> Any:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return str(Decimal(str(value)).normalize() + 0) if number else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--alone", action="store_true", help="compare the documents alone, and ask no Postgres")
    parser.add_argument("--shown", type=int, default=3)
    options = parser.parse_args()
    postgres = None
    if options.seed is not None:
        product, query, forms = drawn(options.seed)
        print(json.dumps(json.loads(tree_text(product)), indent=1), query, forms, sep="\n")
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    problems: dict[int, str] = {}
    kinds: Counter[str] = Counter()
    with ExitStack() as stack:
        if not options.alone:
            postgres = stack.enter_context(server(stack.enter_context(contextmanager(embedded)())))
        problems = {seed: problem for seed in seeds if (problem := problem_of(seed, postgres))}
    for seed, problem in list(problems.items())[: options.shown]:
        print(f"--- seed {seed}: {problem}\n{drawn(seed)[1]}")
    for problem in problems.values():
        kinds[" ".join(problem.split()[:2])] += 1
    print(f"{len(seeds)} queries, {len(problems)} wrong: {dict(kinds)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""The inputs of users, operators and topics, each mutated by a seed and given to the code that reads it.

The rule: no input ends in a traceback. Wrong input gives an error of statestore, whose message has a first line of its own.
A record that breaks the contract becomes a dead letter, and no record stops a product.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, cast

from processor.cli.main import main
from processor.cli.plan_command import empty_registry, preview_lines
from processor.definitions.load import load, read_directory, read_tests
from processor.definitions.product_tests import read_cases
from processor.errors import StatestoreError
from processor.inspect.access_paths import explain, explanation_lines
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.pricing.preview import preview
from processor.pricing.price_list import DEFAULT
from processor.product.json_schema import document_schema
from processor.product.product import Definitions
from processor.product.sql.product_query import product_sql
from processor.records import canonical_json
from processor.records.dead_letters import read_dead_letters, reject_message
from processor.records.record import Change, Ignored, Record, Rejected, Truncated
from processor.records.recorded_topics import read_records, to_line
from processor.settings import Settings, read_settings
from processor.steps.decode import decode
from processor.trial.run_product_tests import run_case
from processor.trial.trial import Trial
from registry.errors import RegistryError
from statestore.errors import StoreError
from tests.fuzz.mutations import VALUES, WORDS, mutate_bytes, mutate_json, mutate_text

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/topics.jsonl"))
DEBEZIUM = Path(__file__).parents[1] / "data" / "debezium"
SETTINGS = Settings()

ENTITIES = {
    "t": {
        "key": ["id"],
        "columns": {
            "id": "int", "a": "int", "b": "int", "d": "decimal", "e": "decimal(12,2)", "f": "float", "g": "float",
            "s": "string", "u": "string",
            "p": "bool", "q": "bool", "x": "date", "m": "timestamp", "j": "json", "l": "int[]", "k": "json[]",
        },
    }
}  # fmt: skip
EXPRESSIONS = """
a + b * 2 | a / b % 3 | -a | d * e / 3 | f * g | f * f * f | f / g | round(d, | 1) | trunc(f) | abs(a) | s || u
lower(s) | upper(u) | substring(s, a, b) | left(s, 2) | right(s, a) | split_part(s, ',', 2) | concat_ws('-', s, a)
replace(s, u, | 'x') | position(s in u) | s like 'a%' | s not ilike '%b_' | s like '50!%' escape '!'
a in (1, 2, b) | a between b and 7 | p and not q or p | a is null | a is distinct from b | coalesce(a, b, 0)
case when a > 1 then s when p then u else 'z' end | nullif(a, b) | greatest(d, f, 1) | extract(year from m)
date_trunc('day', m) | x - x | cast(s as int) | s::decimal | a::string | d::decimal(5, | 2) | m::date
x::timestamp | m >= '2026-01-01' | x < '2020-02-29' | j is null | l is null | count(c) | sum(c.f) | avg(c.d)
min(c.s) | max(c.m) | o.s | o.f + 1 | count(c) > 1 and sum(c.a) < 5 | (a = b) = p | 9223372036854775807 + a
d * d * d * d | c.a | *
""".replace("\n", " | ")


class Finding(Exception):
    """An input that ends otherwise than the rule says."""


@contextmanager
def readable_errors(what: object) -> Iterator[None]:
    """Lets through only errors of statestore whose message has a first line. Every other error becomes a Finding."""
    try:
        yield
    except (StatestoreError, RegistryError, StoreError) as error:
        if not str(error).partition("\n")[0].strip():
            raise Finding(f"an error without a message: {error!r}, of {what!r}") from error
    except Finding:
        raise
    except BaseException as error:
        raise Finding(f"{type(error).__name__}: {error}, of {what!r}") from error


def definitions(random: Random) -> None:
    """A file of an example's definitions."""
    name = random.choice(NAMES)
    texts = dict(_texts(name))
    file = random.choice(sorted(texts))
    texts[file] = mutate_text(texts[file], random)
    with readable_errors((name, file, texts[file])):
        loaded = load(texts)
        _use(loaded, prices=random.random() < 0.05)
        _try(loaded, _records(name)[:20], (name, file, texts[file]))


def expressions(random: Random) -> None:
    """Expressions of every function, at rows of awkward values."""
    known = [text.strip() for text in EXPRESSIONS.split("|")] + ["s || u"]
    own = [_expression(random, known) for _ in range(3)]
    product = {
        "product": "p", "root": "t", "fields": {f"x{n}": text for n, text in enumerate(own)},
        "join": {"o": {"one": "t", "on": {"id": "a"}}, "c": {"many": "t", "on": {"a": "id"}}},
    }  # fmt: skip
    if random.random() < 0.3:
        product["where"] = _expression(random, known)
    with readable_errors(product):
        loaded = load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)})
        _use(loaded, prices=False)
        rows = [_row(random, n) for n in range(6)]
        _try(loaded, [_record("t", n, canonical_json.encode(row)) for n, row in enumerate(rows)], (product, rows))


def queries(random: Random) -> None:
    """A product given as SQL."""
    sql = "select t.id, t.s as name, c.a, c.b * 2 as twice\nfrom t\nleft join t as c on c.a = t.id and c.p\n"
    sql += "where t.b > 1\norder by c.d desc"
    product = {"product": "p", "sql": mutate_text(sql, random)}
    with readable_errors(product):
        _use(load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)}), prices=False)


def records(random: Random) -> None:
    """The bytes of records' keys and values."""
    name = random.choice(NAMES)
    known = random.choices(_records(name), k=10)
    given = [_mutate_record(record, random) if random.random() < 0.7 else record for record in known]
    what = [to_line(record) for record in given]
    with readable_errors(what):
        loaded = _loaded(name)
        entities = {entity.topic: entity for entity in loaded.entities.values()}
        for record in given:
            match decode(record, entities.get(record.topic)):
                case Change() | Ignored() | Truncated():
                    pass
                case Rejected(reason=reason) if reason and "\n" not in reason and reason.isprintable():
                    pass
                case other:
                    raise Finding(f"{other} of {to_line(record)}")
        _try(loaded, given, what)


def debezium_records(random: Random) -> None:
    """Debezium's own records, with and without schemas, decoded by an entity with columns of the same names."""
    file = random.choice(sorted(DEBEZIUM.glob("*.jsonl")))
    record = _mutate_record(random.choice(list(read_records(str(file)))), random)
    types = random.choice(
        ("int", "string", "decimal(12,2)", "float", "bool", "date", "timestamp", "timestamp(us)", "json", "int[]")
    )
    entity = {"e": {"key": ["id"], "columns": {"id": "int", "name": types, "amount": types, "created_at": types}}}
    with readable_errors(to_line(record)):
        loaded = load({"entities.yaml": json.dumps(entity)})
        if not isinstance(decode(record, loaded.entities["e"]), Change | Ignored | Rejected | Truncated):
            raise Finding(to_line(record))


def recorded_files(random: Random) -> None:
    """The bytes of a file of recorded topics."""
    lines = [to_line(record) for record in random.choices(_records(random.choice(NAMES)), k=3)]
    data = mutate_bytes("\n".join(lines).encode(), random)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"topics.jsonl{random.choice(('', '', '.gz', '.zst'))}"
        file.write_bytes(data)
        with readable_errors(data):
            for record in read_records(str(file)):
                to_line(record)


def dead_letters(random: Random) -> None:
    """The messages of the dead letter topic."""
    rejected = Rejected(record=_records(NAMES[0])[0], reason="key part 'id' is missing")
    message = reject_message(rejected, "rejects")
    headers = [
        (
            random.choice((name, name.upper(), "")),
            random.choice((text, b"", None, b"-1", b"\xff", b"9" * 5000, "²".encode())),
        )
        if random.random() < 0.2
        else (name, text)
        for name, text in message.headers
        if random.random() < 0.9
    ]
    foreign: list[Record] = []
    with readable_errors(headers):
        record = Record(
            topic="rejects", partition=0, offset=0, key=message.key, value=message.value, headers=tuple(headers)
        )
        if len(read_dead_letters([record], foreign)) + len(foreign) != 1:
            raise Finding(f"a message without an account: {headers}")


def settings(random: Random) -> None:
    """The settings file, and the environment."""
    text = 'job = "a"\nslots = 20\nwait_seconds = 5.0\nmax_reject_share = 0.5\nregistry_schema = "s"\n'
    text += '[kafka]\n"security.protocol" = "SSL"\n'
    environment = {"STATESTORE_WAIT_SECONDS": random.choice(WORDS)} if random.random() < 0.3 else {}
    words = [
        *WORDS,
        "nan",
        "inf",
        "-inf",
        "1979-05-27",
        "[[kafka]]",
        "[kafka.x]",
        '"""',
        "1e999",
        "lanes",
        "threads = 2.5",
    ]
    changed = mutate_text(text, random, words)
    data = (
        changed.encode(errors="replace")
        if random.random() < 0.9
        else mutate_bytes(changed.encode(errors="replace"), random)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "settings.toml"
        file.write_bytes(data)
        with readable_errors(data):
            read = read_settings({}, environment, str(file))
            if not (0 <= read.wait_seconds < 1e300 and 0 <= read.max_reject_share <= 1):
                raise Finding(f"{read} of {data!r}")


def product_tests(random: Random) -> None:
    """A file of product tests."""
    name = random.choice(NAMES)
    texts = dict(_tests(name))
    file = random.choice(sorted(texts))
    texts[file] = mutate_text(texts[file], random)
    with readable_errors((name, texts[file])):
        for case in islice(read_cases(texts, _loaded(name)), 3):
            run_case(case, _plan(name), SETTINGS)


def command_lines(random: Random) -> None:
    """Commands over a directory of mutated files, and with mutated options."""
    name = random.choice(NAMES)
    with tempfile.TemporaryDirectory() as folder:
        for file, text in _texts(name).items():
            data = mutate_bytes(text.encode(), random) if random.random() < 0.2 else text.encode()
            (Path(folder) / file).write_bytes(data)
        topics = Path(folder) / "topics.jsonl"
        topics.write_text("\n".join(map(to_line, _records(name)[:5])))
        product = random.choice(list(_loaded(name).products))
        command = random.choice((
            ["try", "--definitions", folder, "--from", str(topics), "--to", f"{folder}/out.jsonl"],
            ["explain", product, "--definitions", folder], ["explain", product, "--sql", "--definitions", folder],
            ["schema", product, "--definitions", folder], ["plan", "--offline", "--no-price", "--definitions", folder],
            ["test", folder],
        ))  # fmt: skip
        if random.random() < 0.5:
            command[random.randrange(1, len(command))] = random.choice(
                [
                    "",
                    folder,
                    f"{folder}/no/out",
                    "/dev/full",
                    "\udcff",
                    product,
                    str(topics),
                    "--json",
                    "--lag=nan",
                    "--batch=9e9",
                    "é" * 300,
                ]
            )
        if "-" not in command:
            _run(command)


TARGETS: Mapping[str, Callable[[Random], None]] = {
    target.__name__: target
    for target in (
        definitions, expressions, queries, records, debezium_records, recorded_files, dead_letters, settings, product_tests,
        command_lines,
    )
}  # fmt: skip


def _run(command: list[str]) -> None:
    errors = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(errors):
        try:
            status = main(command)
        except SystemExit as ended:
            status = 2 if ended.code is None else int(ended.code)  # wrong usage
        except BaseException as error:
            raise Finding(f"{type(error).__name__}: {error}, of {command}") from error
    if status not in (0, 1, 2) or (status == 1 and command[0] != "test" and not errors.getvalue().strip()):
        raise Finding(f"status {status} of {command}: {errors.getvalue()}")


def _use(loaded: Definitions, *, prices: bool) -> None:
    """Does with definitions what the verbs of authors do."""
    plan = plan_alone(loaded, SETTINGS.slots)
    for product in plan.products.values():
        list(explanation_lines(explain(plan, product)))
        product_sql(product.product, loaded.entities)
        json.dumps(document_schema(product.product, loaded.entities))
    found = preview(loaded, empty_registry(SETTINGS), frozenset(), SETTINGS if prices else None)
    list(preview_lines(found, DEFAULT))


def _try(loaded: Definitions, given: list[Record], what: object) -> None:
    """Runs records through the steps. No product may stop, and every message must be JSON."""
    trial = Trial(plan=plan_alone(loaded, SETTINGS.slots), settings=replace(SETTINGS, max_reject_share=1.0))
    trial.batch(given)
    trial.finish()
    if trial.stopped:
        raise Finding(f"stopped: {trial.stopped}, of {what!r}")
    for message in trial.published.messages:
        if message.value is not None:
            canonical_json.loads(message.value)


def _expression(random: Random, known: list[str]) -> str:
    text = random.choice(known)
    while random.random() < 0.5:
        text = random.choice(
            (f"({text}) = ({random.choice(known)})", f"coalesce({text}, {random.choice(known)})", f"({text})::string")
        )
    return mutate_text(text, random) if random.random() < 0.7 else text


def _row(random: Random, number: int) -> dict[str, Any]:
    columns: dict[str, str] = dict(cast("Mapping[str, str]", ENTITIES["t"]["columns"]))
    ordinary: dict[str, list[Any]] = {
        "int": [0, 1, -7, 2**63 - 1, -(2**63), 2**64], "decimal": [0, "1.5", "-1e25", "1e125", "1E-130"], "float": [0, 1.5,
        1e126, -1e-130, 1e20],
        "string": ["", "abc", "a,b", "\x00", "é", "-1.5e2", "9" * 400, "İ"], "bool": [True, False], "date": ["2020-02-29",
        "0001-01-01", "9999-12-31"],
        "timestamp": ["2020-02-29T10:20:30.1234567Z", "9999-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"],
    }  # fmt: skip
    row = {}
    for name, written in columns.items():
        choices = ordinary.get(str(written).partition("(")[0], VALUES)
        row[name] = None if random.random() < 0.2 else random.choice(choices)
    return {"id": number, "a": random.randrange(6)} | {n: v for n, v in row.items() if n not in ("id", "l", "k")}


def _record(topic: str, offset: int, value: bytes) -> Record:
    return Record(topic=topic, partition=0, offset=offset, key=None, value=value)


def _mutate_record(record: Record, random: Random) -> Record:
    try:
        value = canonical_json.loads(record.value or b"null")
        if random.random() < 0.7:
            return replace(record, value=canonical_json.encode(mutate_json(value, random)))
    except ValueError:
        pass
    if random.random() < 0.5:
        return replace(record, value=mutate_bytes(record.value or b"", random))
    return replace(record, key=mutate_bytes(record.key or b"", random))


@cache
def _texts(name: str) -> Mapping[str, str]:
    return read_directory(EXAMPLES / name)


@cache
def _tests(name: str) -> Mapping[str, str]:
    return read_tests(EXAMPLES / name)


@cache
def _loaded(name: str) -> Definitions:
    return load(_texts(name))


@cache
def _plan(name: str) -> Plan:
    return plan_alone(_loaded(name), SETTINGS.slots)


@cache
def _records(name: str) -> list[Record]:
    return list(read_records(os.fspath(EXAMPLES / name / "topics.jsonl")))

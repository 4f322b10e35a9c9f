"""Mutated topics: the bytes of records, of recorded files, and of dead letters."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

from processor.engine.protocol.decode import decode
from processor.language.definitions.load import load
from processor.values import canonical_json
from processor.values.dead_letters import read_dead_letters, reject_message
from processor.values.record import Change, Ignored, Record, Rejected, Truncated
from processor.values.recorded_topics import read_records, to_line
from tests.fuzz.examples import NAMES, definitions_of, records_of
from tests.fuzz.finding import Finding, readable_errors, try_records
from tests.fuzz.mutations import mutate_bytes, mutate_json

DATA = Path(__file__).parents[1] / "data"
DEBEZIUM = DATA / "debezium"


def records(random: Random) -> None:
    """The bytes of records' keys and values."""
    name = random.choice(NAMES)
    known = random.choices(records_of(name), k=10)
    given = [_mutate_record(record, random) if random.random() < 0.7 else record for record in known]
    what = [to_line(record) for record in given]
    with readable_errors(what):
        loaded = definitions_of(name)
        entities = {entity.topic: entity for entity in loaded.entities.values()}
        for record in given:
            match decode(record, entities.get(record.topic)):
                case Change() | Ignored() | Truncated():
                    pass
                case Rejected(reason=reason) if reason and "\n" not in reason and reason.isprintable():
                    pass
                case other:
                    raise Finding(f"{other} of {to_line(record)}")
        try_records(loaded, given, what)


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


def captured_records(random: Random) -> None:
    """The records of other connectors, decoded by an entity with columns of the same names."""
    kind = random.choice(("canal", "maxwell"))
    line = random.choice((DATA / kind / "records.jsonl").read_text().splitlines())
    record = _mutate_record(Record(topic="e", partition=0, offset=0, key=None, value=line.encode()), random)
    types = random.choice(("int", "string", "decimal(12,2)", "float", "bool", "date", "timestamp", "json", "string[]"))
    columns = {"id": "int", "name": "string", **dict.fromkeys(("mood", "moods", "blob", "json", "at6", "big_u"), types)}
    entity = {"e": {"key": ["id"], "columns": columns, "format": random.choice((kind, kind, "plain", "debezium"))}}
    with readable_errors(to_line(record)):
        found = decode(record, load({"entities.yaml": json.dumps(entity)}).entities["e"])
        if not isinstance(found, Change | Ignored | Rejected | Truncated):
            raise Finding(to_line(record))


def recorded_files(random: Random) -> None:
    """The bytes of a file of recorded topics."""
    lines = [to_line(record) for record in random.choices(records_of(random.choice(NAMES)), k=3)]
    data = mutate_bytes("\n".join(lines).encode(), random)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"topics.jsonl{random.choice(('', '', '.gz', '.zst'))}"
        file.write_bytes(data)
        with readable_errors(data):
            for record in read_records(str(file)):
                to_line(record)


def dead_letters(random: Random) -> None:
    """The messages of the dead letter topic."""
    rejected = Rejected(record=records_of(NAMES[0])[0], reason="key part 'id' is missing")
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

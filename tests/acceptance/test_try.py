"""`statestore try` over the demo's history ends with the documents of Postgres, for any batch size and any lag."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from processor.cli.main import main
from processor.environment.programs.servers import start_postgres
from processor.language.definitions.load import load, read_directory
from processor.tools.demo.github import build_history, load_events
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import oracle
from processor.tools.source.session import connected
from processor.values import canonical_json
from processor.values.recorded_topics import read_records
from tests.integration.conftest import HMAC, SECRETS

EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
HISTORY = build_history(load_events(EXAMPLE / "events.ndjson.gz"))
SHARDS = {"star": 4, "user": 3, "repo": 2}
CLOCK = datetime(2026, 4, 1, tzinfo=UTC)
BATCHES, LAGS = (7, 400, None), (0, 3, 20)


def _marks(b: int, n: int, sharded: bool) -> tuple[pytest.MarkDecorator, ...]:
    """The markers of the case with the b-th batch size and the n-th lag."""
    if (b + n + sharded) % 2:
        return (pytest.mark.slow,)
    return () if b == n else (pytest.mark.rest,)


CASES = [
    pytest.param(batch, lag, sharded, marks=_marks(b, n, sharded))
    for b, batch in enumerate(BATCHES)
    for n, lag in enumerate(LAGS)
    for sharded in (False, True)
]
"""Each batch size with each lag, and each of them with and without shards. Half of the combinations are slow. Of the others
`make test` runs one for each batch size."""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    part = start_postgres(tmp_path_factory.mktemp("postgres"))
    with connected(part.endpoint, "the Postgres of this test") as connection:
        connection.exec_driver_sql(HMAC)
        connection.commit()
    yield part.endpoint
    part.stop()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    file = tmp_path / "topics.jsonl"
    file.write_text("".join(canonical_json.dumps(line) + "\n" for line in HISTORY.records), encoding="utf-8")
    return file


def definitions(directory: Path, *, sharded: bool) -> Path:
    """Writes the example's definitions into a new directory, sharded or not."""
    directory.mkdir()
    for name, text in read_directory(EXAMPLE).items():
        for entity, shards in SHARDS.items() if sharded else ():
            text = text.replace(f"\n{entity}:\n", f"\n{entity}:\n  shards: {shards}\n")
        (directory / name).write_text(text, encoding="utf-8")
    return directory


@pytest.mark.parametrize(("batch", "lag", "sharded"), CASES)
def test_the_last_documents_are_the_answer_of_sql(
    postgres: str, recorded: Path, tmp_path: Path, batch: int | None, lag: int, sharded: bool
) -> None:
    directory = definitions(tmp_path / "definitions", sharded=sharded)
    words = ["try", "--definitions", str(directory), "--from", str(recorded), "--to", str(tmp_path / "out.jsonl")]
    assert main([*words, "--lag", str(lag), *(["--batch", str(batch)] if batch else [])]) == 0
    known = load(read_directory(directory))
    with oracle(postgres, "truth", known.entities) as tables:
        tables.load({name: rows.values() for name, rows in HISTORY.tables.items()})
        truth = tables.documents(known.products["user_profile"])
    assert len(truth) > 300
    assert differing_keys(read_records(str(tmp_path / "out.jsonl")), truth) == []


@pytest.mark.parametrize("topics", sorted(EXAMPLE.parent.glob("*/topics.jsonl")), ids=lambda path: path.parent.name)
@pytest.mark.parametrize("batch", ["1", "100"])
def test_the_last_documents_of_the_handmade_examples_are_the_answer_of_sql(
    postgres: str, topics: Path, tmp_path: Path, batch: str
) -> None:
    to = str(tmp_path / "out.jsonl")
    words = ["try", "--definitions", str(topics.parent), "--from", str(topics), "--to", to, "--batch", batch]
    assert main([*words, "--clock", CLOCK.isoformat()]) == 0
    known = load(read_directory(topics.parent))
    tables: dict[str, dict[bytes | None, dict[str, object]]] = {}
    for record in read_records(str(topics)):
        rows = tables.setdefault(record.topic, {})
        rows.pop(record.key, None)
        if record.value is not None:
            rows[record.key] = json.loads(record.value)
    with oracle(postgres, "truth", known.entities, SECRETS) as truth:
        truth.load({name: rows.values() for name, rows in tables.items()})
        for product in known.products.values():
            published = [record for record in read_records(to) if record.topic == product.topic]
            assert published
            answered = {key: canonical_json.loads(text) for key, text in truth.answer(product, int(CLOCK.timestamp()))}
            assert differing_keys(published, answered) == []


def test_the_same_lines_a_second_time_publish_nothing(recorded: Path, tmp_path: Path) -> None:
    """The lines have offsets: a line with an offset that was read before is a replay."""
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    seen: dict[tuple[str, int], int] = {}
    for line in lines:
        at = (line["topic"], line.get("partition", 0))
        line["offset"] = seen[at] = seen.get(at, -1) + 1
    text = "".join(canonical_json.dumps(line) + "\n" for line in lines)
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    once.write_text(text)
    twice.write_text(text + text)
    for file in (once, twice):
        words = [
            "try",
            "--definitions",
            str(EXAMPLE),
            "--from",
            str(file),
            "--to",
            f"{file}.out",
            "--batch",
            str(len(lines)),
        ]
        assert main(words) == 0
    assert Path(f"{twice}.out").read_text() == Path(f"{once}.out").read_text()


def test_a_truncate_of_the_source_stops_try_unless_the_entity_ignores_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entity = "{topic: app.user, key: [id], columns: {id: int, name: string}%s}"
    (tmp_path / "p.yaml").write_text("{product: users, root: user}")
    empty = {"before": None, "after": None, "source": {"table": "user"}, "op": "t", "ts_ms": 1}
    values = [{"id": 1, "name": "ann"}, empty, {"id": 2, "name": "bob"}]
    lines = [{"topic": "app.user", "partition": 3, "offset": 7 + n, "value": value} for n, value in enumerate(values)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "t.jsonl"), "--to", str(tmp_path / "out")]
    for refuse in ("", ", truncate: refuse"):
        (tmp_path / "entities.yaml").write_text(f"user: {entity % refuse}")
        assert main(words) == 1
        assert capsys.readouterr().err == (
            "statestore try: topic app.user, partition 3, offset 8: the source emptied the table of user, and the rows would "
            "stay: set for entity user `truncate: delete` to delete them, or `truncate: ignore` to keep its rows until a delete "
            "event of each comes; this batch is not committed\n"
        )
        assert not (tmp_path / "out").exists()
    (tmp_path / "entities.yaml").write_text(f"user: {entity % ', truncate: ignore'}")
    assert main(words) == 0
    assert [json.loads(line)["value"]["name"] for line in (tmp_path / "out").read_text().splitlines()] == ["ann", "bob"]


def test_a_truncate_of_a_topic_with_several_partitions_stops_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "entities.yaml").write_text("user: {key: [id], columns: {id: int}, truncate: delete}")
    (tmp_path / "p.yaml").write_text("{product: users, root: user}")
    lines = [
        {"topic": "user", "partition": 1, "value": {"id": 1}},
        {"topic": "user", "value": {"op": "t", "source": {}}},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "t.jsonl")]) == 1
    assert capsys.readouterr().err == (
        "statestore try: topic user, partition 0, offset 0: the source emptied the table of user, and the topic has 2 "
        "partitions, so it is unknown which changes of the others came before: let the connector write the table to a topic of "
        "one partition, or set for entity user `truncate: ignore` to keep its rows until a delete event of each comes; this "
        "batch is not committed\n"
    )


@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.slow), 7, None])
def test_the_last_documents_after_truncates_are_the_answer_of_sql(
    postgres: str, tmp_path: Path, batch: int | None
) -> None:
    """A random history of rows, deletes and truncates, over a product with joins both ways."""
    text = "{topic: app.%s, key: [id], truncate: delete, shards: 2, columns: {id: int, name: string, who: string}}"
    (tmp_path / "entities.yaml").write_text("".join(f"{name}: {text % name}\n" for name in ("user", "star")))
    (tmp_path / "p.yaml").write_text(
        "{product: users, root: user, embed: {stars: {many: star, on: {who: name}, join: {by: {one: user, on: {id: id}}},"
        " fields: {id: id, by: by.who}}}}"
    )
    rng, lines = Random(7), list[dict[str, Any]]()
    tables: dict[str, dict[int, dict[str, Any]]] = {"user": {}, "star": {}}
    for _ in range(300):
        name, key = rng.choice(list(tables)), rng.randrange(9)
        draw = rng.random()
        if draw < 0.03:
            tables[name].clear()
            lines.append({"topic": f"app.{name}", "value": {"op": "t", "before": None, "after": None, "source": {}}})
        elif draw < 0.15 and key in tables[name]:
            del tables[name][key]
            lines.append({"topic": f"app.{name}", "key": {"id": key}, "value": None})
        else:
            row = {"id": key, "name": rng.choice("abc"), "who": rng.choice("abc")}
            tables[name][key] = row
            lines.append({"topic": f"app.{name}", "key": {"id": key}, "value": row})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    to = str(tmp_path / "out.jsonl")
    words = ["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "t.jsonl"), "--to", to, "--lag", "3"]
    assert main([*words, *(["--batch", str(batch)] if batch else [])]) == 0
    known = load(read_directory(tmp_path))
    with oracle(postgres, "truth", known.entities) as truth:
        truth.load({name: rows.values() for name, rows in tables.items()})
        documents = truth.documents(known.products["users"])
    assert 0 < len(documents) < 9
    assert differing_keys(read_records(to), documents) == []


def test_too_many_dead_letters_end_try_and_their_file_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "entities.yaml").write_text("user: {key: [id], columns: {id: int}}")
    (tmp_path / "p.yaml").write_text("{product: users, root: user}")
    (tmp_path / "t.jsonl").write_text('{"topic": "user", "value": {"id": "one"}}\n' * 101)
    words = ["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "t.jsonl"), "--to", str(tmp_path / "out")]
    assert main(words) == 1
    assert "101 of 101 records of a batch are dead letters" in capsys.readouterr().err
    rejects = [json.loads(line) for line in (tmp_path / "out.rejects.jsonl").read_text().splitlines()]
    assert len(rejects) == 101
    assert "id" in rejects[0]["reason"]


@pytest.mark.slow  # tests/architecture asserts the same for one record
def test_try_imports_neither_spark_nor_any_client(recorded: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from processor.cli.main import main; "
        f"main(['try', '--definitions', {str(EXAMPLE)!r}, '--from', {str(recorded)!r}, '--to', {str(tmp_path / 'out')!r}]); "
        "print([m for m in ('pyspark', 'boto3', 'sqlalchemy', 'confluent_kafka', 'psycopg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

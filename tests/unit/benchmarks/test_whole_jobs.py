"""`benchmarks.peers.whole_jobs` translates products into Flink SQL, counts the CPU of programs, and compares documents."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import StatestoreError
from processor.language.definitions.load import load
from processor.values.record import Record

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("from_the_root")


@pytest.fixture
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


def test_a_product_as_flink_sql() -> None:
    from benchmarks.peers.old_ways.workload import joined_definitions
    from benchmarks.peers.whole_jobs.flink import insert, source_table, target_table

    definitions = load(joined_definitions(2, 3))
    product, entities = definitions.products["profile_1"], definitions.entities
    stars = "`stars` ARRAY<ROW<`repo_owner` STRING, `repo_name` STRING>>"
    lists = f"`pull_requests` ARRAY<ROW<`title` STRING, `status` STRING>>, {stars}"
    assert source_table(entities["payment_info"], "kafka:1").startswith(
        "CREATE TABLE `payment_info` (`id` BIGINT, `user_id` BIGINT, `verified` BOOLEAN, PRIMARY KEY (`id`) NOT ENFORCED) WITH ("
    )
    assert target_table(product, entities, "kafka:1").startswith(
        "CREATE TABLE `profile_1` (`key_repo` STRING, `key_repo_owner` STRING, `key_index` BIGINT, `title` STRING, "
        "`created_at` STRING, `index` BIGINT, `status` STRING, `repo` STRING, "
        f"`author` ROW<`registered_at` STRING, {lists}>, PRIMARY KEY (`key_repo`, `key_repo_owner`, `key_index`) NOT ENFORCED"
    )
    query = insert(product, entities)
    assert query.startswith(
        "INSERT INTO `profile_1` SELECT t.`repo`, t.`repo_owner`, t.`index`, t.`title`, t.`created_at`, t.`index`, "
        "t.`status`, t.`repo`, `author`.`v` FROM `pull_request` AS t\n"
        f"LEFT JOIN (SELECT t.`username`, CAST(ROW(t.`registered_at`, `pull_requests`.`v`, `stars`.`v`) AS ROW<"
        f"`registered_at` STRING, {lists}>) AS `v` FROM (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY `username` "
        "ORDER BY `email`) AS `place` FROM `user`) WHERE `place` <= 1) AS t\n"
    )
    assert query.endswith("ON t.`username` = `stars`.`username`) AS `author` ON t.`author` = `author`.`username`")


def test_equal_joins_of_two_products_have_the_same_text() -> None:
    from benchmarks.peers.old_ways.workload import joined_definitions
    from benchmarks.peers.whole_jobs.flink import insert

    definitions = load(joined_definitions(3, 3))
    first, second = (insert(definitions.products[f"profile_{n}"], definitions.entities) for n in (1, 2))
    pulls = "(SELECT `author`, ARRAY_AGG(CAST(ROW(t.`title`, t.`status`)"
    common = first[first.index(pulls) : first.rindex(" AS `author` ON")]
    assert common in second


def test_a_product_that_the_benchmark_cannot_translate_is_refused() -> None:
    from benchmarks.peers.old_ways.workload import joined_definitions
    from benchmarks.peers.whole_jobs.flink import insert

    definitions = load(joined_definitions(1, 4))
    with pytest.raises(ValueError, match="plain columns only"):
        insert(definitions.products["profile_0"], definitions.entities)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["java", "-cp", "jars/*", "kafka.Kafka", "server.properties"], None),
        ([], None),
        (["/usr/bin/java", "org.apache.spark.deploy.SparkSubmit"], "JVM"),
        (["postgres: checkpointer "], "Postgres"),
        (["/venv/bin/python3", "-m", "processor.job.run.worker_daemon"], "Python workers"),
        (["/venv/bin/python3", "/venv/bin/statestore", "run"], "driver"),
    ],
)
def test_a_command_line_tells_the_program(words: list[str], program: str | None) -> None:
    from benchmarks.peers.whole_jobs.system import program_of

    assert program_of(words) == program


def test_the_cpu_of_a_child_and_of_its_ended_children_counts() -> None:
    from benchmarks.peers.whole_jobs.system import cpu_seconds

    work = "import time\nwhile time.process_time() < 0.3: pass"
    parent = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}]); print('done', flush=True); input()"
    )
    before = cpu_seconds()["driver"]
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert cpu_seconds()["driver"] - before >= 0.29
        process.communicate(b"\n")


def test_a_list_in_another_order_is_right_only_where_the_system_cannot_order() -> None:
    from benchmarks.peers.whole_jobs.topics import same

    expected = {"a": [{"x": 1}, {"x": 2}], "b": {"c": []}}
    other = json.dumps({"a": [{"x": 2}, {"x": 1}], "b": {"c": None}}).encode()
    assert not same(other, expected, ordered=True)
    assert same(other, expected, ordered=False)
    assert not same(b'{"a": [{"x": 2}], "b": {"c": null}}', expected, ordered=False)
    assert same(None, None, ordered=True)
    assert not same(None, expected, ordered=False)


def test_a_restart_takes_the_newest_complete_checkpoint(tmp_path: Path) -> None:
    from benchmarks.peers.whole_jobs.flink import last_checkpoint

    assert last_checkpoint(tmp_path) is None
    (tmp_path / "job" / "chk-9").mkdir(parents=True)
    (tmp_path / "job" / "chk-8").mkdir()
    (tmp_path / "job" / "chk-8" / "_metadata").touch()
    assert last_checkpoint(tmp_path) == tmp_path / "job" / "chk-8"


def test_the_steady_stream_changes_pull_requests_that_have_an_author() -> None:
    from benchmarks.peers.whole_jobs.topics import pull_requests_with_author

    def record(topic: str, key: int, row: dict[str, Any] | None) -> Record:
        value = None if row is None else json.dumps(row).encode()
        return Record(topic=topic, partition=0, offset=0, epoch=0, key=b"%d" % key, value=value)

    kept = record("pull_request", 1, {"author": "a"})
    others = [record("pull_request", 2, {"author": "gone"}), record("pull_request", 3, None)]
    users = [record("user", 1, {"username": "a"}), record("user", 2, {"username": "gone"}), record("user", 2, None)]
    assert pull_requests_with_author([*users, kept, *others]) == [kept]


def test_the_broker_has_the_first_record_of_a_topic_before_the_producer_gets_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from benchmarks.peers.whole_jobs import topics

    sent: list[bytes | str] = []
    producer = SimpleNamespace(
        produce=lambda topic, *, key, value, partition: sent.append(value),
        poll=lambda timeout: 0,
        flush=lambda: sent.append("flush"),
    )
    monkeypatch.setattr(topics, "Producer", lambda settings: producer)
    records = [
        Record(topic=topic, partition=0, offset=0, epoch=0, key=b"k", value=topic.encode()) for topic in ("a", "a", "b")
    ]
    topics.SourceTopics("kafka:1").send(records)
    assert sent == [b"a", "flush", b"a", b"b", "flush", "flush"]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A reader of topics, and a system that runs and sends nothing more. Both limits are over at once."""
    from benchmarks.peers.whole_jobs import topics

    for name in ("QUIET_SECONDS", "SILENT_SECONDS", "LIMIT_SECONDS"):
        monkeypatch.setattr(topics, name, 0.0)
    consumer: Any = SimpleNamespace()
    return topics.TargetTopics(consumer), SimpleNamespace(check=lambda: None, ordered=True)


def test_a_system_that_does_not_show_its_documents_in_time_says_how_far_it_came(waiting: Any) -> None:
    target, system = waiting
    target.last, target.count = {("profiles", '"a"'): b"1", ("profiles", '"b"'): b"2"}, 2
    expected = (
        r"2 of 3 documents are not right, such as \"b\" of topic profiles; 2 messages came, the last one \d+ s ago"
    )
    with pytest.raises(StatestoreError, match=expected):
        target.wait_until_right({"profiles": {'"a"': 1, '"b"': 3, '"c"': 4}}, system)


def test_a_system_without_a_message_says_so(waiting: Any) -> None:
    target, system = waiting
    with pytest.raises(StatestoreError, match=r"1 of 1 documents are not right.*; no message came; CPU seconds: "):
        target.wait_until_right({"profiles": {'"a"': 1}}, system)


def test_a_row_of_the_table_names_the_largest_part_of_the_cpu_first() -> None:
    from benchmarks.peers.whole_jobs.__main__ import format_cost
    from benchmarks.peers.whole_jobs.measure import WholeJobCost, Work

    cpu, idle = {"driver": 0.5, "JVM": 1.5}, {"driver": 0.25, "JVM": 0.0}
    work = Work(events=1_000, seconds=0.5, cpu=cpu, idle=idle, messages=250, wrong=0)
    cost = WholeJobCost(
        system="statestore", products=10, work=work, state=2_500_000, restarts=[9, 8, 7], addition=4.0, wrong=1
    )
    assert format_cost(cost) == (
        *("10", "statestore", "1,000", "2,000", "2.00", "JVM 1.50, driver 0.50", "0.25", "0.25", "2.5", "4.0"),
        *("7.0 / 8.0 / 9.0", "1"),
    )


def test_the_document_has_a_place_for_the_table_of_whole_jobs() -> None:
    from benchmarks.peers.whole_jobs.__main__ import BEGIN, END
    from benchmarks.run import DOCUMENT, insert_tables

    assert "\nnew\n" in insert_tables(DOCUMENT.read_text(encoding="utf-8"), "new", BEGIN, END)


def test_the_program_of_kafka_streams_knows_all_words_of_the_products() -> None:
    """It reads their definitions as they are."""
    from benchmarks.peers.old_ways.workload import joined_definitions
    from processor.language.definitions.load import ENTITIES

    def embeds(level: dict[str, Any]) -> list[dict[str, Any]]:
        below = list(level.get("embed", {}).values())
        return [*below, *(one for embed in below for one in embeds(embed))]

    files = joined_definitions(30, 3)
    found = [embed for name, text in files.items() if name != ENTITIES for embed in embeds(json.loads(text))]
    words = {"many", "one", "on", "fields", "value", "order_by", "limit", "embed"}
    assert all(embed.keys() <= words and len(embed["on"]) == 1 for embed in found)
    assert all(term.startswith("-") for embed in found for term in embed.get("order_by", ()))

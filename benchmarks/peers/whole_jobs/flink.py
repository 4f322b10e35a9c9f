"""Flink SQL as a session in one JVM: mini-batches, RocksDB, and a checkpoint each 10 s that commits Kafka transactions.

pip installs PyFlink into an environment of its own (`benchmarks.peers.environment`), and Ivy fetches the Kafka connector into the
user's cache. The connector decides the release of Flink.

Products become Flink SQL: a table for the topic of each entity and of each product, and a query for each product. A list may be
in any order, and null takes the place of an empty one. Equal parts of two products have the same text, so that Flink's planner
shares them. The queries know no more than `old_ways.workload` makes: plain columns, `one`, and `many` without joins below.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks.job_process import run_command
from benchmarks.peers.environment import peer_python
from benchmarks.peers.whole_jobs.system import Files, check_alive, fetch_jars, with_broker
from processor.environment.programs.downloads import Module
from processor.language.definitions.load import load
from processor.language.product.expressions.expression import Column, Expression
from processor.language.product.product import BareValue, Fields, Join, Product, Selection
from processor.values.entity import Entity

PROGRAM = Path(__file__).parent / "flink_program.py"
REQUIREMENT = "apache-flink>=2.0,<2.1"
CONNECTOR = Module("org.apache.flink", "flink-sql-connector-kafka", "4.0.1-2.0")
CHECKPOINT_SECONDS = 10
JVM = "-Xmx2500m"
SETTINGS = {
    "rest.bind-port": "0",
    "heartbeat.timeout": "600 s",
    "pekko.ask.timeout": "600 s",
    "pipeline.object-reuse": "true",
    "execution.buffer-timeout.interval": "1 s",
    "restart-strategy.type": "none",
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "512m",
    "taskmanager.memory.network.max": "512m",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "10000",
    "table.exec.mini-batch.allow-latency": "5 s",
    "state.backend.type": "rocksdb",
    "state.backend.rocksdb.checkpoint.transfer.thread.num": "1",
    "execution.checkpointing.interval": f"{CHECKPOINT_SECONDS} s",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.state-recovery.claim-mode": "CLAIM",
}
"""The JVM may take 4 GB: its heap, and outside of it RocksDB and the network's buffers. A mini-batch ends at a checkpoint at
the latest, so its latency does not make documents later."""


class FlinkSystem:
    """Jobs in one JVM: the first products are one statement set, and each later `add` is a set of its own."""

    title = "Flink SQL"
    ordered = False

    def __init__(self, servers: str, directory: Path, parallelism: int) -> None:
        self.servers = servers
        self._parallelism = parallelism
        self._directory = directory
        self._python = peer_python("flink-kafka", REQUIREMENT)
        self._connector = next(fetch_jars("flink-kafka", [CONNECTOR], transitive=False).glob("*.jar"))
        self._log = directory / "flink.log"
        self._files: Files = {}
        self._products: set[str] = set()
        self._processes = ExitStack()
        self._run: subprocess.Popen[bytes] | None = None

    def start(self, files: Files) -> None:
        self._files = files
        self.restart()

    def restart(self) -> None:
        self._products = set()
        given = {"JVM_ARGS": JVM, "FLINK_LOG_DIR": str(self._directory)}
        command = run_command([str(self._python), str(PROGRAM)], self._log, **given)
        self._run = self._processes.enter_context(command)
        self.add(self._files)

    def add(self, files: Files) -> None:
        definitions = load(files)
        entities = definitions.entities
        new = [product for name, product in definitions.products.items() if name not in self._products]
        checkpoints = self._directory / f"checkpoints-{new[0].name}"
        settings = SETTINGS | {
            "parallelism.default": str(self._parallelism),
            "pipeline.jars": self._connector.as_uri(),
            "io.tmp.dirs": str(self._directory),
            "execution.checkpointing.dir": checkpoints.as_uri(),
        }
        if last := last_checkpoint(checkpoints):
            settings["execution.state-recovery.path"] = last.as_uri()
        tables = [source_table(entity, self.servers) for entity in entities.values()]
        tables += [target_table(product, entities, self.servers) for product in new]
        job = {"settings": settings, "tables": tables, "inserts": [insert(product, entities) for product in new]}
        assert self._run is not None
        assert self._run.stdin is not None
        self._run.stdin.write(json.dumps(job).encode() + b"\n")
        self._run.stdin.flush()
        self._products |= {product.name for product in new}

    def kill(self) -> None:
        self._processes.close()

    def state_bytes(self) -> int:
        """The bytes of the last checkpoint, which is complete after the last document. RocksDB's working copy comes on top."""
        return sum(file.stat().st_size for file in self._directory.glob("checkpoints-*/**/*") if file.is_file())

    def check(self) -> None:
        check_alive(self._run.poll() if self._run else None, self._log)


def last_checkpoint(directory: Path) -> Path | None:
    """The newest complete checkpoint of the job that stores its checkpoints here. None: the job has none."""
    complete = list(directory.glob("*/chk-*/_metadata"))
    return max(complete, key=lambda file: file.stat().st_mtime).parent if complete else None


def flink_system(parallelism: int) -> AbstractContextManager[FlinkSystem]:
    """Flink with a broker of its own; both end with the block."""
    return with_broker(lambda servers, home: FlinkSystem(servers, home, parallelism))


TYPES = {"int": "BIGINT", "string": "STRING", "timestamp": "STRING", "bool": "BOOLEAN"}
"""The types of columns. A timestamp stays the text that the topic has."""
UPSERT = """PRIMARY KEY ({key}) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json'{more})"""
EXACTLY_ONCE = """,
  'key.fields-prefix' = 'key_', 'value.fields-include' = 'EXCEPT_KEY',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{topic}',
  'properties.transaction.timeout.ms' = '600000'"""
Entities = Mapping[str, Entity]
Members = list[tuple[str, str, str]]
"""The name, the SQL type and the expression of each member of a document."""


def source_table(entity: Entity, servers: str) -> str:
    """The table of an entity: rows by their key, a record without a value deletes one."""
    columns = ", ".join(f"{_quote(name)} {TYPES[column.name]}" for name, column in entity.columns.items())
    end = UPSERT.format(key=_list(entity.key), topic=entity.topic, servers=servers, more="")
    return f"CREATE TABLE {_quote(entity.name)} ({columns}, {end}"


def target_table(product: Product, entities: Entities, servers: str) -> str:
    """The table of a product: documents by the key of their root, in transactions that end with a checkpoint."""
    root = entities[product.root]
    key = [(f"key_{name}", TYPES[root.columns[name].name]) for name in root.key]
    members = [(name, kind) for name, kind, _ in _members(root, product.selection, product.joins, entities)]
    columns = ", ".join(f"{_quote(name)} {kind}" for name, kind in key + members)
    more = EXACTLY_ONCE.format(topic=product.topic)
    end = UPSERT.format(key=_list(name for name, _ in key), topic=product.topic, servers=servers, more=more)
    return f"CREATE TABLE {_quote(product.name)} ({columns}, {end}"


def insert(product: Product, entities: Entities) -> str:
    """The query of a product, into its table."""
    root = entities[product.root]
    shown = [expression for *_, expression in _members(root, product.selection, product.joins, entities)]
    selected = ", ".join([*(f"t.{_quote(name)}" for name in root.key), *shown])
    tables = _joined(_quote(root.name), product.joins, entities)
    return f"INSERT INTO {_quote(product.name)} SELECT {selected} FROM {tables}"


def _members(entity: Entity, selection: Selection, joins: Iterable[Join], entities: Entities) -> Members:
    """The members of a level: those of its columns, then one for each join."""
    if not isinstance(selection, Fields):
        raise ValueError(f"{entity.name}: Flink SQL of this benchmark shows a level with joins by its `fields` only")
    named = [(name, *_column(entity, expression)) for name, expression in selection.members]
    return named + [(join.name, _join_type(join, entities), f"{_quote(join.name)}.`v`") for join in joins]


def _joined(table: str, joins: Iterable[Join], entities: Entities) -> str:
    """A table `t`, and next to each row the value of each join: a table with its name, the join key and the value `v`."""
    text = f"{table} AS t"
    for join in joins:
        name = _quote(join.name)
        on = " AND ".join(f"t.{_quote(parent)} = {name}.{_quote(child)}" for child, parent in join.on)
        text += f"\nLEFT JOIN ({_values(join, entities)}) AS {name} ON {on}"
    return text


def _values(join: Join, entities: Entities) -> str:
    """The query for the value of a join, by join key."""
    entity, key = entities[join.entity], _list(join.child_columns)
    limit = join.limit if join.many else 1
    order = ", ".join(f"{_quote(_plain(entity, term.by))}{' DESC' * term.descending}" for term in join.order_by)
    order = ", ".join(filter(None, (order, _list(entity.key))))
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS `place` FROM {_quote(entity.name)}"
    first = f"(SELECT * FROM ({ranked}) WHERE `place` <= {limit})"
    value = _value(join, entities)
    if join.many:
        return f"SELECT {key}, ARRAY_AGG({value}) AS `v` FROM {first} AS t GROUP BY {key}"
    keys = ", ".join(f"t.{_quote(name)}" for name in join.child_columns)
    return f"SELECT {keys}, {value} AS `v` FROM {_joined(first, join.joins, entities)}"


def _value(join: Join, entities: Entities) -> str:
    """What a document shows of one row of a join."""
    entity = entities[join.entity]
    if isinstance(join.selection, BareValue):
        return _column(entity, join.selection.expression)[1]
    members = _members(entity, join.selection, join.joins, entities)
    return f"CAST(ROW({', '.join(expression for *_, expression in members)}) AS {_row_type(members)})"


def _join_type(join: Join, entities: Entities) -> str:
    entity = entities[join.entity]
    if isinstance(join.selection, BareValue):
        one, _ = _column(entity, join.selection.expression)
    else:
        one = _row_type(_members(entity, join.selection, join.joins, entities))
    return f"ARRAY<{one}>" if join.many else one


def _row_type(members: Members) -> str:
    return f"ROW<{', '.join(f'{_quote(name)} {kind}' for name, kind, _ in members)}>"


def _column(entity: Entity, expression: Expression) -> tuple[str, str]:
    """The SQL type and the text of a plain column of a level."""
    name = _plain(entity, expression)
    return TYPES[entity.columns[name].name], f"t.{_quote(name)}"


def _plain(entity: Entity, expression: Expression) -> str:
    if not isinstance(expression, Column) or expression.path or expression.up:
        raise ValueError(f"{entity.name}: Flink SQL of this benchmark has plain columns only, not {expression}")
    return expression.name


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(_quote, names))


def _quote(name: str) -> str:
    return f"`{name}`"

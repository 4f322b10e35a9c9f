"""A database that Debezium reads on this machine: the properties of the connector, the documents that follow its changes, and its
end. `local up --source` and the live demo use it; docs/debezium.md has the same properties.

`connector_properties` and `topic_prefix` are pure. `draft_definitions` writes first definitions, `PublishedDocuments` reads the
topics of the products, and `release_source` removes the replication slot, and the publication that Debezium made.

Promises: the properties have PASSWORD_WORD in place of the password. Does not: change a row of the source.
"""

import getpass
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.planning import plan_alone
from processor.environment.programs.connect import BROKER_WORD, PASSWORD_WORD
from processor.environment.settings.kafka import Secret
from processor.environment.settings.settings import Settings
from processor.errors import SettingError, StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.language.definitions.json_schemas import schema_line, write_schemas
from processor.language.definitions.load import ENTITIES, load_directory
from processor.language.product.product import Definitions
from processor.tools.source.column_types import ConnectorModes
from processor.tools.source.compared_table import SourceTable
from processor.tools.source.database import TableSource, read_tables
from processor.tools.source.draft import entities_text, legal_name, most_joined, product_name, product_text
from processor.tools.source.session import SourceSession, connected, read_source_tables, table_of, topic_name
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Record, Value

POSTGRESQL: Final = "postgresql"
MARIADB: Final = "mariadb"
CLASSES: Final = {
    POSTGRESQL: "io.debezium.connector.postgresql.PostgresConnector",
    MARIADB: "io.debezium.connector.mariadb.MariaDbConnector",
}
TLS: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")
"""The parameters of an address that Debezium for PostgreSQL has, too."""
MODES: Final = ConnectorModes("isostring", "string")
"""Those of CHOICES."""
DEPTH: Final = 1
"""The levels of joins of a drafted product."""
AUTOCREATE: Final = "publication.autocreate.mode"
"""`disabled`: an administrator made the publication, which stays at the end."""
HISTORY: Final = "schema.history.internal"
CHOICES: Final = {
    "snapshot.mode": "initial",
    "decimal.handling.mode": "string",
    "time.precision.mode": "isostring",
    "tombstones.on.delete": "true",
    "heartbeat.interval.ms": "5000",
    "topic.creation.default.partitions": "-1",
    "topic.creation.default.replication.factor": "-1",
    **{f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")},
    **{f"{side}.converter.schemas.enable": "false" for side in ("key", "value")},
    **{f"{side}.converter.replace.null.with.default": "false" for side in ("key", "value")},
}
"""docs/debezium.md explains them."""


_SIZES: Final = """
    SELECT n.nspname || '.' || c.relname, CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid) ELSE
           (SELECT sum(pg_table_size(p.relid)) FROM pg_partition_tree(c.oid) p) END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')
"""
_MYSQL_SIZES: Final = "SELECT concat(table_schema, '.', table_name), data_length FROM information_schema.tables"


def source_name(prefix: str) -> str:
    """The name of the slot and of the publication of a connector with this prefix."""
    return "statestore_" + re.sub("[^a-z0-9_]", "_", prefix.lower())[:50]


def topic_prefix(entities: Sequence[Entity], known: Sequence[SourceTable]) -> str:
    """The connector's `topic.prefix` with which its topics are those of the entities. Raises SettingError where there is none."""
    found: dict[str, str] = {}
    for entity in entities:
        if (table := table_of(entity, known)) is not None:
            prefix, dot, rest = entity.topic.partition(f".{topic_name(str(table))}")
            if not prefix or not dot or rest:
                cure = f"Debezium writes {table} to PREFIX.{topic_name(str(table))}: correct `topic` in entities.yaml"
                raise SettingError(f"--source: entity {entity.name} has the topic {entity.topic}; {cure}")
            found.setdefault(prefix, entity.topic)
    if len(found) != 1:
        topics = " and ".join(list(found.values())[:2]) or "no table of the source"
        raise SettingError(f"--source: the entities have {topics}: give definitions of the tables of one connector")
    return next(iter(found))


def connector_properties(address: str, prefix: str, tables: Sequence[str], *, kind: str) -> dict[str, str]:
    """The properties of the connector for these tables (`schema.name`). `kind`: POSTGRESQL or MARIADB. Raises SettingError for a
    parameter of the address that Debezium does not have."""
    url, query = urlsplit(address), dict(parse_qsl(urlsplit(address).query))
    query.pop("password", None)
    if other := sorted(query.keys() - {*(TLS if kind == POSTGRESQL else ())}):
        raise SettingError(f"--source: this command has no setting of Debezium for {other[0]}: leave it out")
    user = url.username or os.environ.get("PGUSER" if kind == POSTGRESQL else "USER") or getpass.getuser()
    found = {
        "name": prefix,
        "connector.class": CLASSES[kind],
        "database.hostname": url.hostname or "localhost",
        "database.port": str(url.port or (5432 if kind == POSTGRESQL else 3306)),
        "database.user": unquote(user),
        "database.password": PASSWORD_WORD,
    }
    if kind == POSTGRESQL:
        found |= {
            "database.dbname": unquote(url.path.removeprefix("/")) or unquote(user),
            **{f"database.{name}": value for name, value in query.items()},
            "plugin.name": "pgoutput",
            "slot.name": source_name(prefix),
            "publication.name": source_name(prefix),
            AUTOCREATE: "filtered",
            "publish.via.partition.root": "true",
        }
    else:
        found |= {
            "database.include.list": ",".join(sorted({table.partition(".")[0] for table in tables})),
            "database.server.id": str(10_000 + zlib.crc32(prefix.encode()) % 1_000_000),
            "include.schema.changes": "false",
            f"{HISTORY}.kafka.bootstrap.servers": BROKER_WORD,
            f"{HISTORY}.kafka.topic": f"{prefix}.schema-history",
            f"{HISTORY}.store.only.captured.tables.ddl": "true",
        }
    included = ",".join(re.sub(r"([^\w.])", r"\\\1", table) for table in tables)
    return found | {"topic.prefix": prefix, "table.include.list": included} | CHOICES


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSource:
    """A database as Debezium reads it here. `plans`: the entities of the definitions, `prefix`: the first word of their topics,
    `properties`: of the connector; `size`: of the tables, in bytes."""

    kind: str
    plans: Sequence[EntityPlan]
    prefix: str
    properties: Mapping[str, str]
    size: int


def own_source(session: SourceSession, address: str, directory: Path) -> OwnSource:
    """The database with the definitions of a directory. Raises SettingError for a MySQL, and for topics that no connector of it
    writes."""
    kind, known = kind_of_source(session), read_source_tables(session)
    plans = list(plan_alone(load_directory(directory), Settings().slots).entities.values())
    entities = [plan.entity for plan in plans]
    prefix = topic_prefix(entities, known)
    tables = [str(table) for entity in entities if (table := table_of(entity, known)) is not None]
    properties = connector_properties(address, prefix, tables, kind=kind)
    if any(entity.transactions for entity in entities):
        properties |= {"provide.transaction.metadata": "true"}
    sizes = {str(name): int(size or 0) for name, size in session.read_rows(_MYSQL_SIZES if session.mysql else _SIZES)}
    size = sum(sizes.get(table, 0) for table in tables)
    return OwnSource(kind=kind, plans=plans, prefix=prefix, properties=properties, size=size)


def password_of(address: str) -> str:
    """The password of an address, for PostgreSQL without one that of PGPASSWORD; empty: there is none."""
    url = urlsplit(address)
    given = dict(parse_qsl(url.query)).get("password") or unquote(url.password or "")
    return given or (os.environ.get("PGPASSWORD", "") if url.scheme.startswith("postgres") else "")


def kind_of_source(session: SourceSession) -> str:
    """POSTGRESQL or MARIADB. Raises SettingError for MySQL."""
    if not session.mysql:
        return POSTGRESQL
    ((version,),) = session.read_rows("SELECT version()")
    if "mariadb" in version.lower():
        return MARIADB
    raise SettingError(
        f"--source: the server is MySQL {version}, and nobody ran this command with one: run Debezium for MySQL yourself "
        "(docs/debezium.md), and then `statestore init` and `statestore run`"
    )


def database_name(session: SourceSession) -> str:
    """The name of the database of the session, as a word of a topic."""
    ((name,),) = session.read_rows("SELECT database()" if session.mysql else "SELECT current_database()")
    return legal_name(str(name))


_NO_TOPIC: Final = """
    SELECT n.nspname || '.' || c.relname, CASE WHEN c.relispartition THEN 'a partition' ELSE 'unlogged' END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND (c.relispartition OR c.relpersistence = 'u') ORDER BY 1
"""


def without_topic(session: SourceSession) -> Mapping[str, str]:
    """`schema.name` of the tables that get no topic of their own, and why."""
    return {} if session.mysql else {str(name): str(why) for name, why in session.read_rows(_NO_TOPIC)}


def draft_definitions(
    address: str, directory: Path, prefix: str, schemas: Sequence[str], left_out: Mapping[str, str]
) -> list[str]:
    """Writes entities.yaml and a first product where the directory has none. Returns lines about it. `left_out`: of
    `without_topic`. Raises SettingError for a source without a table that can be an entity."""
    known = load_directory(directory) if (directory / ENTITIES).exists() else None
    if known is not None and known.products:
        return []
    read = read_tables(TableSource(url=address, prefix=prefix, schemas=schemas, modes=MODES))
    topics = {f"{prefix}.{topic_name(name)}": why for name, why in left_out.items()}
    found = [one for one in read if one.topic not in topics]
    declared = [one for one in found if one.is_whole and (known is None or one.name in known.entities)]
    if not declared:
        raise SettingError("--source: no table has a primary key: give them keys, or write entities.yaml")
    root = most_joined(declared)
    texts = {f"{product_name(root)}.yaml": product_text(declared, root, DEPTH, [schema_line("product")])}
    if known is None:
        texts[ENTITIES] = entities_text(found, [schema_line("entities"), "# Drafted by `statestore local up`."])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with open(directory / name, "x", encoding="utf-8") as file:
            file.write(text)
    write_schemas(directory)
    reasons = topics | {one.topic: one.refusal or one.note or "its key" for one in found if not one.is_whole}
    others = [f"not declared: {one.topic} ({reasons[one.topic]})" for one in read if one.topic in reasons]
    return [*(f"wrote {directory / name}" for name in sorted(texts)), *(others if known is None else ())]


def release_source(properties: Mapping[str, str], password: str, seconds: float = 20.0) -> str:
    """Removes the slot of a connector that has ended, and the publication if Debezium made it. Returns what was there, empty for
    nothing. Raises StatestoreError with the SQL to give where the database does not allow it."""
    if properties["connector.class"] != CLASSES[POSTGRESQL]:
        return ""
    name, made, removed = properties["slot.name"], properties[AUTOCREATE] == "filtered", list[str]()
    statements = [f"SELECT pg_drop_replication_slot('{name}')", *([f"DROP PUBLICATION {name}"] if made else [])]
    try:
        with connected(_address(properties, password), "--source") as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            end = monotonic() + seconds
            slot = f"FROM pg_replication_slots WHERE slot_name = '{name}'"
            while connection.exec_driver_sql(f"SELECT 1 {slot} AND active").all() and monotonic() < end:
                sleep(0.1)  # the server has not seen the end of its reader yet
            if connection.exec_driver_sql(f"SELECT pg_drop_replication_slot(slot_name) {slot}").all():
                removed.append(f"slot {name}")
            if made and connection.exec_driver_sql(f"SELECT 1 FROM pg_publication WHERE pubname = '{name}'").all():
                connection.exec_driver_sql(f"DROP PUBLICATION {name}")
                removed.append(f"publication {name}")
    except StatestoreError as error:
        raise StatestoreError(f"the source keeps its log for slot {name}: {'; '.join(statements)}. {error}") from None
    return " and ".join(removed)


def _address(properties: Mapping[str, str], password: str) -> str:
    part = {name: properties[f"database.{name}"] for name in ("user", "hostname", "port", "dbname")}
    query = {"password": password} if password else {}
    query |= {name: properties[f"database.{name}"] for name in TLS if f"database.{name}" in properties}
    host = f"[{part['hostname']}]" if ":" in part["hostname"] else part["hostname"]
    user, database = quote(part["user"], safe=""), quote(part["dbname"], safe="")
    return Secret(f"postgresql://{user}@{host}:{part['port']}/{database}?{urlencode(query, quote_via=quote)}")


class PublishedDocuments:
    """Reads the topics of the products."""

    def __init__(self, bootstrap: str, definitions: Definitions) -> None:
        self.bootstrap, self.definitions = bootstrap, definitions
        self._next: dict[str, dict[int, int]] = {p.topic: {} for p in definitions.products.values()}

    def skip(self) -> None:
        """Begins where the topics end now."""
        admin = Admin(self.bootstrap, {})
        for topic in admin.topics(list(self._next)):
            self._next[topic] = dict(admin.ends(topic))

    def fresh(self) -> Iterator[Record]:
        """The messages since the last call, each once, of topics that exist."""
        for topic in Admin(self.bootstrap, {}).topics(list(self._next)):
            begins = self._next[topic]
            for record in read_topic(self.bootstrap, {}, topic, begins):
                begins[record.partition] = record.offset + 1
                yield record


WIDTH: Final = 150
"""Characters that a line shows of a document's changed members."""
MOST_KEPT: Final = 20_000
"""Documents whose earlier text a screen keeps, to show only what changed."""
LONG_TEXT: Final = re.compile(r'("[^"]{12})[^"]{60,}(?=")')


class DocumentScreen:
    """Shows the documents that the topics get, with what changed in each. `most`: lines of one look; more are a count."""

    def __init__(self, documents: PublishedDocuments, show: Callable[[str], None], most: int | None = None) -> None:
        self.documents, self._show, self._most = documents, show, most
        self._last: dict[tuple[str, str], Value] = {}

    def show_documents(self) -> int:
        """Shows the documents since the last call. Returns how many."""
        count = 0
        for count, record in enumerate(self.documents.fresh(), 1):
            name = (record.topic, (record.key or b"").decode(errors="replace"))
            document = None if record.value is None else _members(record.value)
            if self._most is None or count <= self._most:
                self._show(f"doc    {' '.join(name)} {changed_members(self._last.get(name), document)}")
            if name in self._last or len(self._last) < MOST_KEPT:
                self._last[name] = document
        if self._most is not None and count > self._most:
            self._show(f"doc    and {count - self._most:,} more")
        return count


def _members(value: bytes) -> Value:
    """The document of a message; one in Avro is its size."""
    try:
        return canonical_json.loads(value)
    except ValueError:
        return {"bytes": len(value)}


def changed_members(before: Value, after: Value) -> str:
    """The members of a document that are new or differ, as JSON; long texts and long lines are cut."""
    if after is None:
        return "is gone"
    old = before or {}
    members = {
        name: value for name, value in after.items() if name not in old or not canonical_json.equal(old[name], value)
    }
    text = LONG_TEXT.sub(r"\1...", canonical_json.dumps(members))
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ..."

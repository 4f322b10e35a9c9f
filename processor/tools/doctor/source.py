"""The source database: what loses changes on the way to the topics, before it happens; and what Debezium needs before its first
start (`local up --source`)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from processor.engine.plan.plan import EntityPlan
from processor.errors import StatestoreError
from processor.finding import DoctorCheck, Finding, failure, ok, warning
from processor.text import first_of
from processor.tools.doctor.context import CheckContext
from processor.tools.doctor.records import SAMPLE, shows_null
from processor.tools.source.column_types import ConnectorModes, declared_type
from processor.tools.source.compared_table import SourceTable
from processor.tools.source.session import (
    ALWAYS,
    AS_IT_IS,
    Equalities,
    MysqlFacts,
    PostgresFacts,
    PostgresRights,
    SourceSession,
    TableFacts,
    read_equalities,
    read_mysql_facts,
    read_mysql_grants,
    read_postgres_facts,
    read_postgres_rights,
    read_source_tables,
    source_session,
    table_of,
    unsent_as_null,
)
from processor.values.entity import Entity

UNKNOWN_CURE = "set include.unknown.datatypes to true, and declare the column `string`; else it never has a value"
BINARY_LOG = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_value_options": ""}
"""What Debezium needs of MySQL and MariaDB."""
SHOWN = 5
"""The columns of a table that a finding names."""


def source_check(address: str) -> DoctorCheck:
    """The check of the source at this address."""
    return DoctorCheck(
        name="source",
        looks_at="the source database: its log and its tables",
        look=partial(check_source, address),
        cure="correct --source or the rights of its user",
        needs=("definitions",),
    )


def check_source(address: str, around: CheckContext) -> Iterator[Finding]:
    """Each trap in the way of the changes of the entities."""
    entities = [one.entity for _, one in sorted(around.plan.entities.items())]
    with source_session(address) as session:
        known = read_source_tables(session)
        tables = {entity.name: table_of(entity, known) for entity in entities}
        facts = read_mysql_facts(session) if session.mysql else read_postgres_facts(session)
        equalities = read_equalities(session)
    plans = [around.plan.entities[entity.name] for entity in entities]
    found = [finding for plan in plans for finding in _of_table(plan, tables[plan.name], facts)]
    for plan in plans:
        if (table := tables[plan.name]) is not None:
            found += _compared(plan, table, equalities)
    if isinstance(facts, PostgresFacts):
        found += _defaults(
            around, {name: facts.tables[str(one)] for name, one in tables.items() if str(one) in facts.tables}
        )
    found += _of_mysql(facts) if isinstance(facts, MysqlFacts) else _of_postgres(facts)
    yield from found
    if not any(one.state in ("warning", "failure") for one in found):
        yield ok(f"the source has the tables of {len(entities)} entities, and logs all their changes")


def check_before_debezium(session: SourceSession, plans: Sequence[EntityPlan], name: str) -> Iterator[Finding]:
    """What the database lacks before Debezium starts on the tables of the entities. `name`: of its slot and publication."""
    known = read_source_tables(session)
    tables = {plan.name: table_of(plan.entity, known) for plan in plans}
    found: list[Finding] = []
    if session.mysql:
        facts: MysqlFacts | PostgresFacts = read_mysql_facts(session)
        found += missing_grants(read_mysql_grants(session))
        found += _of_mysql(facts) if isinstance(facts, MysqlFacts) else ()
    else:
        seen, rights = read_postgres_facts(session), read_postgres_rights(session, name)
        found += _log_level(seen)
        found += missing_rights(rights, [table for table in tables.values() if table is not None], name)
        shown = {key: _as_published(one, name, rights.publication) for key, one in seen.tables.items()}
        facts = seen._replace(tables=shown)
    for plan in plans:
        found += _of_table(plan, tables[plan.name], facts, binary=False)
    yield from found


def _as_published(table: TableFacts, name: str, made: bool) -> TableFacts:
    """The table in the publication, or in the one that Debezium will make. `made`: the publication is there."""
    if made:
        columns = {
            column: facts._replace(left_out_by=[one for one in facts.left_out_by if one == name])
            for column, facts in table.columns.items()
        }
        return table._replace(publications=[one for one in table.publications if one == name], columns=columns)
    columns = {
        column: facts._replace(left_out_by=[name] if facts.generated else []) for column, facts in table.columns.items()
    }
    return table._replace(publications=[name], not_via_root=[], without_all=[], columns=columns)


def missing_rights(rights: PostgresRights, tables: Sequence[SourceTable], name: str) -> Iterator[Finding]:
    """What the user of a PostgreSQL may not do, with the SQL that allows it. `tables`: those of the entities; `name`: of slot and
    publication."""
    user = sql_identifier(rights.user)
    if rights.standby:
        yield failure("the address leads to a standby, which takes no publication", "give the address of the primary")
    if not rights.replicates:
        cure = f"ALTER ROLE {user} REPLICATION; on Amazon RDS: GRANT rds_replication TO {user}"
        yield failure(f"user {rights.user} may not read the log", cure)
    if rights.reader is None and rights.free_slots < 1:
        cure = "ALTER SYSTEM SET max_replication_slots to one more, and restart the server; or drop an unused slot"
        yield failure("no replication slot is free", cure)
    if rights.free_senders < 1:
        cure = "ALTER SYSTEM SET max_wal_senders to one more, and restart the server"
        yield failure("no process that sends the log is free (max_wal_senders)", cure)
    if rights.reader:
        cure = f"stop that connector, or SELECT pg_terminate_backend({rights.reader})"
        yield failure(f"process {rights.reader} reads slot {name} already", cure)
    allowed = [(table, *rights.tables.get(str(table), (True, True, True))) for table in tables]
    closed = sorted({table.schema for table, usable, _, _ in allowed if not usable})
    for schema in closed:
        cure = f"GRANT USAGE ON SCHEMA {sql_identifier(schema)} TO {user}"
        yield failure(f"user {rights.user} may not use schema {schema}", cure)
    if unread := [table for table, _, readable, _ in allowed if not readable]:
        cure = f"GRANT SELECT ON {_sql_tables(unread)} TO {user}"
        yield failure(f"user {rights.user} may not read {first_of(list(map(str, unread)), SHOWN)}", cure)
    if rights.publication:
        if lacking := [table for table in tables if str(table) not in (rights.published or ())]:
            cure = f"ALTER PUBLICATION {name} ADD TABLE {_sql_tables(lacking)}"
            yield failure(f"publication {name} lacks {first_of(list(map(str, lacking)), SHOWN)}", cure)
        return
    foreign = [table for table, _, _, owned in allowed if not owned]
    if not rights.creates or foreign:
        why = (
            f"does not own {first_of(list(map(str, foreign)), SHOWN)}"
            if foreign
            else f"may create nothing in {rights.database}"
        )
        cure = f"let an owner give: CREATE PUBLICATION {name} FOR TABLE {_sql_tables(tables)}"
        yield failure(f"user {rights.user} {why}, so Debezium cannot make its publication", cure)


def missing_grants(grants: str) -> Iterator[Finding]:
    """What the user of a MySQL or a MariaDB may not do. `grants`: as the server writes them, in capitals."""
    if "ALL PRIVILEGES ON *.*" in grants:
        return
    wanted = {
        "REPLICATION SLAVE": ("REPLICATION SLAVE", "REPLICATION REPLICA"),
        "REPLICATION CLIENT": ("REPLICATION CLIENT", "BINLOG MONITOR"),
        "SELECT": ("SELECT", "ALL PRIVILEGES"),
        "RELOAD": ("RELOAD",),
    }
    missing = [name for name, words in wanted.items() if not any(word in grants for word in words)]
    if missing:
        cure = f"GRANT {', '.join(missing)} ON *.* TO the user"
        yield failure(f"the user has no {', '.join(missing)}", cure)


def sql_identifier(name: str) -> str:
    """The name as SQL takes it."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"{}"'.format(name.replace('"', '""'))


def sql_table(table: SourceTable) -> str:
    """The table as SQL takes it."""
    return f"{sql_identifier(table.schema)}.{sql_identifier(table.name)}"


def _sql_tables(tables: Sequence[SourceTable]) -> str:
    return ", ".join(map(sql_table, tables))


def _of_table(
    plan: EntityPlan, table: SourceTable | None, facts: MysqlFacts | PostgresFacts, binary: bool = True
) -> Iterator[Finding]:
    """`binary`: the connector may have another `binary.handling.mode` than the default."""
    entity = plan.entity
    if table is None:
        text = f"entity {entity.name}: the source shows no table for topic {entity.topic}"
        yield failure(
            text, "correct `topic`, give `source: schema.table` in entities.yaml, or GRANT the user SELECT on it"
        )
        return
    if not table.key:
        cure = "give it a primary key; else name its key in the connector's message.key.columns"
        yield failure(f"{table} has no primary key: its records have no Kafka key", cure)
    elif set(table.key) != set(entity.key):
        text = f"{table} has the primary key {', '.join(table.key)}, and entity {entity.name} {', '.join(entity.key)}"
        yield warning(text, "name the same columns, or set message.key.columns")
    mysql = isinstance(facts, MysqlFacts)
    unknown = ConnectorModes(None, None)
    for column, kind in table.columns.items():
        if column in entity.columns and kind != "enum" and not declared_type(kind, unknown, mysql=mysql).type:
            yield warning(f"{table}.{column} is {kind}, which Debezium does not know", UNKNOWN_CURE)
    for column in entity.columns.keys() - table.columns.keys():
        if entity.absent_choice(column) is None:
            text = f"{table} has no column {column}, which entity {entity.name} declares: its new rows have null there"
            cure = "correct `columns` if the source renamed or dropped it; else declare `absent` of the column"
            yield warning(text, cure) if column in plan.unread else failure(text, cure)
    if isinstance(facts, MysqlFacts):
        yield from _cascades(table, facts)
    elif (of_table := facts.tables.get(str(table))) is not None:
        yield from _published(table, of_table)
        yield from _unsent(plan, table, of_table, binary)
        yield from _moved_keys(entity, table, of_table)


def _compared(planned: EntityPlan, table: SourceTable, equalities: Equalities) -> Iterator[Finding]:
    """The text that the source compares in another way than the entity declares, and more than a word can say."""
    wrong: list[str] = []
    more: dict[tuple[str, str], list[str]] = {}
    for name, column in planned.entity.columns.items():
        if column.name != "string" or name not in table.columns:
            continue
        there = equalities.get((table.schema, table.name, name), AS_IT_IS)
        if column.compare != there.compare:
            here, word = (", ".join(one) or "as it is" for one in (column.compare, there.compare))
            wrong.append(f"{name} {word} ({there.collation}), here {here}")
        if there.beyond and name in planned.joined():
            more.setdefault((there.collation, there.beyond), []).append(name)
    if wrong:
        text = f"{table} compares text in another way than entity {planned.name}: {first_of(wrong, SHOWN)}"
        cure = "say `compare` of these columns in entities.yaml as in the source; `init --check` lists all"
        yield warning(text, cure)
    for (collation, beyond), names in more.items():
        text = f"{table}: {collation} of {', '.join(names)} also makes equal {beyond}; joins of products do not"
        yield warning(text, "give the columns a collation without that, or let no two values differ in that alone")


def _cascades(table: SourceTable, facts: MysqlFacts) -> Iterator[Finding]:
    for key in facts.cascades if not facts.logs_cascades else ():
        if (key.schema, key.table) == (table.schema, table.name):
            rules = f"ON DELETE {key.on_delete}, ON UPDATE {key.on_update}"
            text = f"{table}: foreign key {key.name} to {key.parent} has {rules}, and the binary log has no row of a cascade"
            cure = "let the application change these rows itself, or run `verify --source --repair` again and again"
            yield warning(text, cure)


def _published(table: SourceTable, facts: TableFacts) -> Iterator[Finding]:
    if facts.unlogged:
        yield failure(f"{table} is unlogged: no log has its changes", f"ALTER TABLE {sql_table(table)} SET LOGGED")
    if not facts.publications:
        yield failure(
            f"no publication has {table}: its changes never arrive",
            f"ALTER PUBLICATION ... ADD TABLE {sql_table(table)}",
        )
    by_partition = sorted({*facts.publications} & {*facts.not_via_root})
    if facts.partitioned and by_partition:
        text = (
            f"{table} is partitioned, and publication {by_partition[0]} sends its changes to a topic of each partition"
        )
        yield failure(text, f"ALTER PUBLICATION {by_partition[0]} SET (publish_via_partition_root = true)")
    for name in sorted({*facts.publications} & {*facts.without_all}):
        cure = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete')"
        yield failure(f"publication {name} of {table} leaves out inserts, updates or deletes", cure)
    if facts.identity == "n" or (facts.identity == "d" and not facts.has_key):
        text = f"{table} has no replica identity: PostgreSQL refuses its updates and deletes, or logs no key"
        yield failure(text, f"give it a primary key, or ALTER TABLE {sql_table(table)} REPLICA IDENTITY FULL")
    elif facts.identity == "i":
        text = f"{table} has another index as its replica identity: a delete has the key of that index only"
        yield warning(text, f"ALTER TABLE {sql_table(table)} REPLICA IDENTITY DEFAULT, or FULL")


def _unsent(plan: EntityPlan, table: SourceTable, facts: TableFacts, binary: bool) -> Iterator[Finding]:
    """The declared columns whose values do not come with each record."""
    entity = plan.entity
    for name in entity.columns:
        column = facts.columns.get(name)
        if column is None or name in entity.key:
            continue
        what, word = f"{table}.{name}", f"{{type: '{entity.columns[name]}', not_null: true}}"
        if column.left_out_by:
            why = "is a generated column, and" if column.generated else "is not in the column list:"
            text = f"{what} {why} publication {column.left_out_by[0]} leaves it out of each record after the snapshot"
            cure = "let the publication have it (PostgreSQL 18: publish_generated_columns = stored), or compute it in the product"
            accepted = entity.absent_choice(name) is not None or name in plan.unread
            yield warning(text, cure) if accepted else failure(text, cure)
        if name in entity.not_null:
            if not column.not_null:
                text = (
                    f"{what} may be null, and entity {entity.name} declares `not_null`: a null keeps the value before"
                )
                yield failure(
                    text, f"ALTER TABLE {sql_table(table)} ALTER COLUMN {name} SET NOT NULL, or remove `not_null`"
                )
            continue
        when = unsent_as_null(table.columns[name]) if facts.identity != "f" else ""
        if when and (binary or not when.startswith("binary")):
            under = "" if when == ALWAYS else f" (with {when})"
            text = (
                f"{what} is {table.columns[name]}, and {table} has no REPLICA IDENTITY FULL: Debezium sends null for a large "
                f"value that an update leaves as it is{under}"
            )
            cure = f"ALTER TABLE {sql_table(table)} REPLICA IDENTITY FULL"
            yield warning(text, f"{cure}; or declare `{word}`: the column is NOT NULL" if column.not_null else cure)


def _moved_keys(entity: Entity, table: SourceTable, facts: TableFacts) -> Iterator[Finding]:
    """Whether an update that changes the entity's key shows the old one. Debezium sends a new primary key as a delete and an
    insert."""
    if set(table.key) == set(entity.key) or facts.identity == "f":
        return
    text = (
        f"{table}: an update of {', '.join(entity.key)} does not show the key before, because {table} has no REPLICA IDENTITY "
        "FULL: the document of the old key stays"
    )
    yield failure(
        text, f"ALTER TABLE {sql_table(table)} REPLICA IDENTITY FULL, or make the primary key the key of the entity"
    )


def _defaults(around: CheckContext, tables: Mapping[str, TableFacts]) -> Iterator[Finding]:
    """The nullable columns with a default, of which no record shows whether their nulls arrive. `tables`: by entity."""
    found: dict[str, list[str]] = {}
    for name, table in tables.items():
        declared = around.plan.entities[name].entity.columns.keys() & table.columns.keys()
        facts = ((column, table.columns[column]) for column in sorted(declared))
        found[name] = [column for column, one in facts if one.has_default and one.has_nulls and not one.not_null]
    found = {name: columns for name, columns in found.items() if columns}
    for name, columns in found.items():
        entity = around.plan.entities[name].entity
        with suppress(StatestoreError):  # another check names a broker that does not answer
            if shows_null(around.kafka.last_records(entity.topic, SAMPLE), entity, columns):
                return  # all tables have one connector, and it sends nulls
    for name, columns in found.items():
        text = (
            f"{tables[name].schema}.{tables[name].name} has nulls in {', '.join(columns)}, and a DEFAULT: the last records "
            "show no null there, so the connector may send the default in its place"
        )
        cure = "set key.converter.replace.null.with.default and value.converter.replace.null.with.default to false"
        yield warning(text, cure)


def _log_level(facts: PostgresFacts) -> Iterator[Finding]:
    new = facts.version >= 190000
    if facts.wal_level != "logical" and not (new and facts.wal_level == "replica"):
        yield failure(f"wal_level is {facts.wal_level}", "ALTER SYSTEM SET wal_level = logical, and restart the server")
    if new:
        text = "PostgreSQL 19: nobody has tested statestore on it; REPACK (CONCURRENTLY) takes a logical slot while it runs"
        yield warning(text, "leave a slot free in max_replication_slots; sequences that it replicates are no rows")


def _of_postgres(facts: PostgresFacts) -> Iterator[Finding]:
    yield from _log_level(facts)
    if not facts.slots:
        yield warning(
            "the database has no logical replication slot", "start the connector: what changes before is not logged"
        )
    for slot in facts.slots:
        if slot.wal_status in ("lost", "unreserved"):
            cure = "compare with `verify --source` after the connector has a new slot; raise max_slot_wal_keep_size"
            yield failure(f"slot {slot.name} lost its log (wal_status {slot.wal_status})", cure)
        elif not slot.active:
            yield warning(
                f"slot {slot.name} has no reader and holds {slot.kept} of log", "start the connector, or drop the slot"
            )
        else:
            yield ok(f"slot {slot.name} is read; {slot.kept} of log wait")
    if facts.slots and facts.keeps == "-1":
        text = "max_slot_wal_keep_size is -1: while the connector is down, the log may fill the disk"
        yield warning(text, "set it above the log of the longest outage, and watch the slot")


def _of_mysql(facts: MysqlFacts) -> Iterator[Finding]:
    for name, wanted in BINARY_LOG.items():
        value = facts.variables.get(name, wanted)
        if value.upper() != wanted:
            yield failure(f"{name} is {value or 'empty'}", f"set {name} to {wanted or 'an empty text'}")

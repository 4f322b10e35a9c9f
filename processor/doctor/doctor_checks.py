"""All checks of a set-up, in their order: a check comes after those that it needs."""

from dataclasses import replace
from typing import Any

from processor.doctor.checkpoint_checks import check_checkpoint, check_identities
from processor.doctor.machine_checks import check_jars, check_java, check_python, check_spark
from processor.doctor.network_checks import (
    check_broker_way,
    check_brokers,
    check_registry_clock,
    check_registry_way,
)
from processor.doctor.records import check_records
from processor.doctor.registry_checks import (
    check_definitions,
    check_leases,
    check_login,
    check_rights,
    check_schema,
)
from processor.doctor.schema_registry_checks import check_avro_products, check_schema_registry
from processor.doctor.server_checks import check_registry_commits, check_registry_release
from processor.doctor.settings_checks import check_markers, check_variables, check_waits
from processor.doctor.table_checks import (
    check_indexes,
    check_items,
    check_keys,
    check_permissions,
    check_slots,
    check_table,
)
from processor.doctor.topic_checks import (
    check_cluster,
    check_dead_letters,
    check_landings,
    check_login_to_kafka,
    check_products,
    check_sources,
)
from processor.errors import PartError, StatestoreError
from processor.findings.finding import DoctorCheck, failure
from processor.stores.store_kind import StoreKind

POSTGRES = "correct --registry, the PG* variables, or the role in Postgres"
KAFKA = "correct [kafka] in the settings file (docs/kafka.md), or --bootstrap-servers"
DEFINITIONS = "correct the definitions, and `statestore apply` them"
SCHEMAS = "correct [schema_registry] in the settings file (docs/schema-registry.md), or start the registry"

MACHINE = (
    DoctorCheck(name="python", looks_at="the version of Python", look=check_python, cure="install Python 3.11"),
    DoctorCheck(name="spark", looks_at="the version of PySpark", look=check_spark, cure="install PySpark 3.5 or 4"),
    DoctorCheck(
        name="java", looks_at="the Java of a local Spark", look=check_java, cure="install Java 17, set JAVA_HOME"
    ),
    DoctorCheck(name="jars", looks_at="Spark's Kafka connector", look=check_jars, cure="install a released PySpark"),
    DoctorCheck(name="variables", looks_at="names of variables", look=check_variables, cure="correct the variables"),
    DoctorCheck(name="waits", looks_at="W and S", look=check_waits, cure="correct --wait-seconds"),
    DoctorCheck(name="markers", looks_at="marker_days", look=check_markers, cure="correct --marker-days"),
)
WAYS = (
    DoctorCheck(name="postgres", looks_at="the way to Postgres", look=check_registry_way, cure=POSTGRES),
    DoctorCheck(name="kafka", looks_at="the way to Kafka", look=check_broker_way, cure=KAFKA),
)
REGISTRY = (
    DoctorCheck(
        name="registry login",
        looks_at="the user in Postgres, and TLS",
        look=check_login,
        cure=POSTGRES,
        needs=("postgres",),
    ),
    DoctorCheck(
        name="server",
        looks_at="the release of the registry's server",
        look=check_registry_release,
        cure=POSTGRES,
        needs=("registry login",),
    ),
    DoctorCheck(
        name="postgres clock",
        looks_at="the clocks of this machine and of Postgres",
        look=check_registry_clock,
        cure=POSTGRES,
        needs=("registry login",),
    ),
    DoctorCheck(
        name="registry",
        looks_at="the schema and its release",
        look=check_schema,
        cure=POSTGRES,
        needs=("registry login",),
    ),
    DoctorCheck(
        name="rights", looks_at="the rights of the user", look=check_rights, cure=POSTGRES, needs=("registry",)
    ),
    DoctorCheck(
        name="definitions",
        looks_at="entities and products",
        look=check_definitions,
        cure=DEFINITIONS,
        needs=("registry",),
    ),
    DoctorCheck(
        name="commits",
        looks_at="what a crash or a failover leaves",
        look=check_registry_commits,
        cure=POSTGRES,
        needs=("registry login",),
    ),
    DoctorCheck(name="lease", looks_at="who runs the job", look=check_leases, cure=POSTGRES, needs=("registry",)),
)


def table_checks(kind: StoreKind[Any]) -> tuple[DoctorCheck, ...]:
    """The checks of a table, with those that only this kind of store has."""
    own, cure = kind.checks, kind.checks.cure
    before = tuple(check.name for check in own.before)
    return (
        *own.before,
        DoctorCheck(name="table", looks_at="the table", look=check_table, cure=cure, needs=before),
        DoctorCheck(name="keys", looks_at="keys, columns, indexes", look=check_keys, cure=cure, needs=("table",)),
        DoctorCheck(
            name="indexes", looks_at="the states of the indexes", look=check_indexes, cure=cure, needs=("table",)
        ),
        *own.table,
        DoctorCheck(
            name="slots",
            looks_at="the slots of registry and table",
            look=check_slots,
            cure=POSTGRES,
            needs=("table", "definitions"),
        ),
        DoctorCheck(
            name="permissions",
            looks_at="the requests of a job",
            look=check_permissions,
            cure=cure,
            needs=("table", "keys"),
        ),
        DoctorCheck(
            name="items",
            looks_at="the format of stored rows",
            look=check_items,
            cure=cure,
            needs=("permissions", "definitions"),
        ),
    )


TOPICS = (
    DoctorCheck(
        name="kafka login", looks_at="the settings of [kafka]", look=check_login_to_kafka, cure=KAFKA, needs=("kafka",)
    ),
    DoctorCheck(
        name="brokers", looks_at="the way to each broker", look=check_brokers, cure=KAFKA, needs=("kafka login",)
    ),
    DoctorCheck(
        name="transactions",
        looks_at="the broker's limit for transactions",
        look=check_cluster,
        cure=KAFKA,
        needs=("kafka login",),
    ),
    DoctorCheck(
        name="source topics",
        looks_at="the topics of entities",
        look=check_sources,
        cure=KAFKA,
        needs=("kafka login", "definitions"),
    ),
    DoctorCheck(
        name="source records",
        looks_at="the last records of these topics",
        look=check_records,
        cure=KAFKA,
        needs=("source topics",),
    ),
    DoctorCheck(
        name="product topics",
        looks_at="the topics of products",
        look=check_products,
        cure=KAFKA,
        needs=("kafka login", "definitions"),
    ),
    DoctorCheck(
        name="dead letters",
        looks_at="the topic for dead letters",
        look=check_dead_letters,
        cure=KAFKA,
        needs=("kafka login",),
    ),
    DoctorCheck(
        name="landings",
        looks_at="the processes of `land`",
        look=check_landings,
        cure=KAFKA,
        needs=("kafka login", "registry"),
    ),
    DoctorCheck(
        name="schemas",
        looks_at="the registry of Avro and Protobuf",
        look=check_schema_registry,
        cure=SCHEMAS,
    ),
    DoctorCheck(
        name="avro products",
        looks_at="whether Avro documents have a registry",
        look=check_avro_products,
        cure=SCHEMAS,
        needs=("definitions", "schemas"),
    ),
)
PLACES = (
    DoctorCheck(
        name="checkpoint",
        looks_at="the folder of the checkpoint",
        look=check_checkpoint,
        cure="give another --checkpoint",
    ),
    DoctorCheck(
        name="identity",
        looks_at="whether registry, table and checkpoint belong together",
        look=check_identities,
        cure="correct --job, --table, --registry-schema or --checkpoint",
        needs=("registry", "permissions"),
    ),
)
OF_REGISTRY = "postgres"
"""The check that comes before all others of the registry."""


def all_checks(kind: StoreKind[Any]) -> tuple[DoctorCheck, ...]:
    """The checks for a table of this kind of store."""
    return (*MACHINE, *kind.checks.way, *WAYS, *REGISTRY, *table_checks(kind), *TOPICS, *PLACES)


def checks_of(kind: StoreKind[Any], dead: StatestoreError | None) -> tuple[DoctorCheck, ...]:
    """The checks for a table of this kind of store. `dead`: what a command with these settings ends with, before it asks
    anybody: the first finding. Where a secret is not in its place, nobody can ask the parts that need it."""
    checks = all_checks(kind)
    if dead is None:
        return checks
    what, _, cure = str(dead).removesuffix(".").rpartition(". ")
    found = failure(what or cure, cure if what else "correct the setting")
    name = "parts" if isinstance(dead, PartError) else "secrets"
    first = DoctorCheck(name=name, looks_at="the settings", look=lambda _: [found], cure=found.cure)
    asks = () if isinstance(dead, PartError) else (OF_REGISTRY, *(("table",) if kind.passwords else ()))
    return (first, *(replace(one, needs=(name, *one.needs)) if one.name in asks else one for one in checks))

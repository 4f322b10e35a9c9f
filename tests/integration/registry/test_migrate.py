"""The schema: the first migration creates it, and it equals the tables that the code knows."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Engine, func, select, text

from registry.errors import RegistryError, RegistryMissing, RegistryUnreachable, UnknownRevision
from registry.repository import Registry
from registry.repository import connection as schema_module
from registry.tables import metadata


def difference(psql: Engine) -> list[Any]:
    """The changes with which alembic would bring the schema to the tables that the code knows."""
    with psql.begin() as connection:
        connection.dialect.default_schema_name = connection.scalar(select(func.current_schema()))
        return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))


def test_the_schema_is_the_sum_of_the_migrations(registry: Registry, psql: Engine) -> None:
    assert difference(psql) == []


def test_a_schema_that_is_not_the_sum_of_the_migrations_is_seen(registry: Registry, psql: Engine) -> None:
    with psql.begin() as connection:
        connection.execute(text("ALTER TABLE epochs DROP COLUMN recorded_at"))
        connection.execute(text("DROP INDEX assignments_columns_ix"))
    assert [one[0] for one in difference(psql)] == ["add_index", "add_column"]


def test_the_checks_of_the_schema_are_those_of_the_tables(registry: Registry, psql: Engine) -> None:
    """alembic does not compare these."""
    known = {
        str(check.name)
        for table in metadata.sorted_tables
        for check in table.constraints
        if isinstance(check, CheckConstraint)
    }
    with psql.begin() as connection:
        names = (
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace"
        )
        assert set(connection.scalars(text(names))) == known
    assert len(known) == 13


def test_migrating_again_changes_nothing(registry: Registry) -> None:
    before = registry.snapshot()
    registry.migrate(5)
    assert registry.snapshot() == before
    assert (before.version, before.slots) == (0, 5)
    assert registry.history() == ()


def test_the_number_of_slots_of_a_migration_counts_for_a_new_registry_only(registry: Registry) -> None:
    registry.migrate(20)
    assert registry.snapshot().slots == 5


@pytest.mark.parametrize("slots", [0, 21])
def test_a_table_has_1_to_20_slots(postgres_url: str, schema: str, slots: int) -> None:
    with Registry(postgres_url, schema) as fresh, pytest.raises(RegistryError, match="1 to 20"):
        fresh.migrate(slots)


def test_many_may_migrate_at_once(postgres_url: str, schema: str) -> None:
    def migrate(_number: int) -> int:
        with Registry(postgres_url, schema) as one:
            one.migrate(3)
            return one.snapshot().slots

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(migrate, range(4))) == [3] * 4


def test_the_error_for_a_schema_without_a_registry_names_the_command_to_run(postgres_url: str, schema: str) -> None:
    with Registry(postgres_url, schema) as nothing, pytest.raises(RegistryMissing, match=rf"schema {schema} .* apply"):
        nothing.snapshot()


@pytest.mark.parametrize("revision", ["9999_later", "v0001", "v0004"])
def test_a_schema_that_another_release_migrated_is_left_alone(
    registry: Registry, psql: Engine, schema: str, revision: str
) -> None:
    """v0001 to v0004 are the revisions of development, before the first release."""
    with psql.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    message = rf"another release .* schema {schema}: install that release, or use another schema.*'{revision}'"
    with pytest.raises(UnknownRevision, match=message):
        registry.migrate(5)
    assert difference(psql) == []


def test_an_unreachable_server_is_named_without_the_password() -> None:
    with (
        Registry("postgresql://me:secret@127.0.0.1:1/states") as nowhere,
        pytest.raises(RegistryUnreachable, match=r"127\.0\.0\.1:1/states \(--registry\).*no state is lost") as error,
    ):
        nowhere.snapshot()
    assert "secret" not in str(error.value)


def test_two_schemas_never_meet(registry: Registry, postgres_url: str, schema: str) -> None:
    with Registry(postgres_url, f"{schema}_two") as other:
        other.migrate(2)
        try:
            assert (registry.snapshot().slots, other.snapshot().slots) == (5, 2)
        finally:
            with other._database.transaction() as connection:
                connection.execute(text(f"DROP SCHEMA {schema}_two CASCADE"))


@pytest.mark.parametrize("name", ["Upper", "pg_mine", 'a"; drop', ""])
def test_a_schema_name_is_a_plain_identifier(name: str) -> None:
    with pytest.raises(RegistryError, match="lower-case letters"):
        Registry("postgresql://localhost/x", name)


@pytest.mark.parametrize("url", ["sqlite://", "mysql://u:secret@h/d", "secret"])
def test_a_url_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(RegistryError, match="postgresql://") as error:
        Registry(url)
    assert "secret" not in str(error.value)


def test_a_registry_of_a_newer_release_is_refused_by_every_request(
    registry: Registry, psql: Engine, schema: str, postgres_url: str
) -> None:
    with psql.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    for request in (
        Registry.snapshot,
        Registry.snapshot_for_apply,
        lambda one: one.statistics.last(),
        lambda one: one.epochs(["t"]),
    ):
        with (
            Registry(postgres_url, schema) as one,
            pytest.raises(UnknownRevision, match=r"another release .*9999_later"),
        ):
            request(one)


def test_the_names_of_the_migrations_are_the_revisions_that_alembic_knows() -> None:
    """So a verb that only reads the registry need not import alembic."""
    scripts = ScriptDirectory(str(schema_module._MIGRATIONS))
    assert schema_module.known_revisions() == {script.revision for script in scripts.walk_revisions()}
    assert schema_module.head_revision() == scripts.get_current_head()

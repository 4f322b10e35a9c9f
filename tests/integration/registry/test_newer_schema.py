"""A newer release migrates the registry. The release before works with it, if the migration says so."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import UnknownRevision
from registry.repository import Registry
from registry.repository import connection as schema_module

HEAD = "0011_products_of_a_topic"
NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
readable_by = {readable_by}

def upgrade():
    op.add_column("leases", sa.Column("c{revision}", sa.Text))
"""
Upgrade = Callable[..., None]


@pytest.fixture
def upgrade(registry: Registry, tmp_path: Path) -> Upgrade:
    """A newer release migrates the registry: its migrations follow those of this release."""
    newer = tmp_path / "migrations"
    shutil.copytree(schema_module._MIGRATIONS, newer, ignore=shutil.ignore_patterns("__pycache__"))

    def upgrade(revision: str, before: str, *readable_by: str) -> None:
        text = NEXT.format(revision=revision, before=before, readable_by=readable_by)
        (newer / "versions" / f"v{revision}.py").write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schema_module, "_MIGRATIONS", newer)
            registry.migrate(5)
            registry.migrate(5)

    return upgrade


def test_a_release_works_with_a_newer_schema_whose_migration_names_its_revision(
    registry: Registry, upgrade: Upgrade, postgres_url: str, schema: str, psql: Engine
) -> None:
    upgrade("0011_more", HEAD, HEAD)
    with Registry(postgres_url, schema) as release_before:
        release_before.migrate(5)
        assert release_before.snapshot() == registry.snapshot()
        release_before.operate(Signature("an operator", "room"), operations.add_slots, 6)
        lease = release_before.take_lease("job", "one", 2, take_over=False, expires_after=30)
        release_before.applied(lease, release_before.snapshot().version)
    with psql.begin() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0011_more"
    assert registry.snapshot().slots == 6


@pytest.mark.parametrize("last", [(), ("0011_more",)])
def test_a_release_refuses_a_newer_schema_whose_last_migration_does_not_name_its_revision(
    upgrade: Upgrade, postgres_url: str, schema: str, last: tuple[str, ...]
) -> None:
    upgrade("0011_more", HEAD, HEAD)
    upgrade("0012_other", "0011_more", *last)
    with Registry(postgres_url, schema) as release_before:
        for request in (Registry.snapshot, lambda one: one.migrate(5)):
            with pytest.raises(UnknownRevision, match=r"another release .*0012_other"):
                request(release_before)

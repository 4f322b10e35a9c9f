"""Opens the registry that the settings name. SQLAlchemy is imported only then: verbs that need no registry start without it."""

from typing import TYPE_CHECKING

from processor.environment.settings.settings import Settings

if TYPE_CHECKING:
    from registry.repository import Registry


def open_registry(settings: Settings) -> "Registry":
    """The registry at `settings.registry`, in the Postgres schema `settings.registry_schema`; use it in a `with` block."""
    from registry.repository import Registry

    return Registry(settings.registry, settings.registry_schema)

"""The registry in Postgres: the only code that knows SQLAlchemy, in addition to `registry.tables` and the migrations."""

from registry.repository.registry import Registry

__all__ = ["Registry"]

"""The registry of the example product."""

from tests.unit.registry.conftest import applied, empty, github

__all__ = ["applied", "empty", "github"]

"""A run binds the table to its registry, and never one that another registry has bound."""

from typing import Any

import pytest

from processor.engine.protocol.identity import IDENTITY, write_identity
from processor.environment.settings.settings import Settings
from processor.errors import OwnedByAnother
from processor.job.run.binding import Parts
from registry.model import Binding
from statestore.memory import MemoryStore


class FreshRegistry:
    """A registry that has no table yet. `bound`: what a run bound it to."""

    bound: Binding | None = None

    def binding(self) -> Binding:
        return Binding(identity="own", job="", table="")

    def bind(self, binding: Binding) -> None:
        self.bound = binding


def bind(store: MemoryStore, registry: Any) -> None:
    Parts(settings=Settings(job="profiles", table="rows"), registry=registry, store=store).bind()


def test_a_run_binds_an_empty_table_to_its_registry() -> None:
    store, registry = MemoryStore(), FreshRegistry()
    bind(store, registry)
    assert store.get([IDENTITY])[IDENTITY]["id"] == "own"
    assert registry.bound == Binding(identity="own", job="profiles", table="rows")


def test_a_table_that_another_registry_bound_just_now_is_refused() -> None:
    store, registry = MemoryStore(), FreshRegistry()
    store.write(write_identity("other", None))
    with pytest.raises(OwnedByAnother, match="another job bound the table rows just now: start again"):
        bind(store, registry)
    assert registry.bound is None

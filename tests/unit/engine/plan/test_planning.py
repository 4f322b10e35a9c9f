"""The plan of a registry to which nobody has applied definitions."""

import pytest

from processor.cli.choices import empty_registry
from processor.engine.plan.planning import plan_of
from processor.environment.settings.settings import Settings
from processor.errors import PlanError


def test_a_registry_without_definitions_asks_for_an_apply() -> None:
    with pytest.raises(
        PlanError, match=r"^the registry holds no definitions: run `statestore apply --definitions DIR` first$"
    ):
        plan_of(empty_registry(Settings()))

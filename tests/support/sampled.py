"""Parameters of which `make test` runs a sample only."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], *sample: Any) -> list[Any]:
    """The values as parameters, all but a sample of them marked slow."""
    return [pytest.param(value, marks=() if value in sample else pytest.mark.slow) for value in values]

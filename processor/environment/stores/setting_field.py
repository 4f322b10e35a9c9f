"""A setting as a field: its default, its help text and its limits."""

from dataclasses import field
from typing import Any

LARGEST = 2**31 - 1
"""The largest number of a setting, unless the setting has another limit: Spark and Kafka's clients take no larger ones."""


def setting(default: Any, help: str, low: float = 0, high: float = LARGEST, *, former: str = "") -> Any:
    """The field of a setting. `help`: of its flag; `low`, `high`: the limits of a number; `former`: its name in earlier releases,
    which this release takes, too."""
    return field(default=default, metadata={"help": help, "low": low, "high": high, "former": former})

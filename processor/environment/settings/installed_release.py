"""The release of statestore that runs: dead letters, metrics and the status name it."""

from functools import cache
from importlib.metadata import version


@cache
def statestore_version() -> str:
    """The version of the installed package."""
    return version("statestore")

"""Keeps the state of a run in its lease, for `statestore status`. A registry that is silent holds nobody up."""

from collections.abc import Mapping
from threading import Thread
from typing import Any

from processor.engine.rounds.events import Troubles
from processor.job.run.outages.outside_parts import REGISTRY, cure_of
from processor.job.run.outages.silent_parts import SilentParts
from registry.errors import RegistryUnreachable
from registry.model import Lease
from registry.repository import Registry

KEEP_SECONDS = 5.0
"""The longest wait of the caller for the registry."""


class StateKeeper:
    """Writes the states of a run into its lease. So this thread sees first that the registry does not answer, or answers again.
    `silent`: gets to know how long an answer takes."""

    def __init__(self, registry: Registry, lease: Lease, troubles: Troubles, silent: SilentParts) -> None:
        self._registry, self._lease, self._troubles, self._silent = registry, lease, troubles, silent
        self._thread: Thread | None = None

    def keep(self, state: Mapping[str, Any], ended: int | None) -> None:
        """Writes the state in a thread, and waits for that a moment. Drops the state while an earlier one has no answer. `ended`:
        the last round that published something and ended."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._keep, args=(state, ended), name="state keeper", daemon=True)
            self._thread.start()
        self._thread.join(KEEP_SECONDS)

    def _keep(self, state: Mapping[str, Any], ended: int | None) -> None:
        try:
            with self._silent.asking(REGISTRY):
                self._registry.runs.keep_report(self._lease, state, ended)
            self._troubles.end(REGISTRY)
        except RegistryUnreachable as away:
            text = f"{away}; the job publishes nothing until it knows that its lease holds"
            self._troubles.begin(REGISTRY, text, cure_of(REGISTRY))
        except Exception:  # rounds report it
            return

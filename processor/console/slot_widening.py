"""Adds slots as `statestore add-slots` does: first the table's indexes, which may take minutes, then the registry's number. The
work goes on behind the pages, and the slot board shows how far it is."""

from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from processor.job.binding import widen_table
from processor.serve.problem import LookUpProblem
from processor.settings.settings import Settings
from registry.edits import operations
from registry.edits.edit import Signature

if TYPE_CHECKING:
    from registry.repository import Registry


@dataclass(slots=True)
class SlotWidening:
    """The last adding of slots of this process. `said`: how far it is, or how it ended; empty before the first."""

    settings: Settings
    said: str = ""
    _thread: Thread | None = None
    _lock: Lock = field(default_factory=Lock)

    def start(self, registry: "Registry", by: Signature, slots: int) -> None:
        """Begins to add slots up to this number, with the rights of this registry. Raises LookUpProblem while an earlier adding
        goes on."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise LookUpProblem(409, f"slots are being added: {self.said}")
            self.said = f"slots up to GSI_{slots}: begins"
            self._thread = Thread(target=self._widen, args=(registry, by, slots), name="add slots", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits for the end."""
        if self._thread is not None:
            self._thread.join()

    def _widen(self, registry: "Registry", by: Signature, slots: int) -> None:
        try:
            widen_table(self.settings, registry, slots, self._progress)
            applied = registry.operate(by, operations.add_slots, slots)
        except Exception as error:  # of the store or the registry; the page shows it
            self.said = f"slots up to GSI_{slots}: {error}; add them again, and the work goes on where it ended"
        else:
            self.said = f"registry version {applied.version}: {'; '.join(applied.changes) or 'nothing changed'}"

    def _progress(self, text: str) -> None:
        self.said = text

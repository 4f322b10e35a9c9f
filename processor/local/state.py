"""The state file of the standing parts: which process each part is, and where it answers.

A part is written as soon as it is launched, with no endpoint yet, so that a command which is interrupted leaves no
process that the next one does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from processor.errors import PartError
from processor.local.left import Left, leave
from processor.local.program import Launch, Program

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One part: its process, and its endpoint once it has answered."""

    process: Left
    endpoint: str | None

    @property
    def port(self) -> int | None:
        """The endpoint's port: a URL's, or what stands behind the colon."""
        return int(self.endpoint.removesuffix("/postgres").rpartition(":")[2]) if self.endpoint else None


class State:
    """The entries by part, each change of which is on disk when the method returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._called_off = False
        self._entries = _read(path)

    @property
    def entries(self) -> dict[str, Entry]:
        return dict(self._entries)

    def launch(self, part: str) -> Launch:
        """A launch that leaves the process running, and writes it down."""

        def launch(program: Program) -> Left:
            process = leave(program)
            with self._lock:
                before = self._entries.get(part)
                self._put(part, Entry(process=process, endpoint=before.endpoint if before else None))
                if self._called_off:
                    process.stop()
            return process

        return launch

    def answered(self, part: str, endpoint: str) -> None:
        """Write down where a launched part answers."""
        with self._lock:
            self._put(part, replace(self._entries[part], endpoint=endpoint))

    def call_off(self, parts: Iterable[str]) -> None:
        """Stop these parts, and any that is launched from now on."""
        with self._lock:
            self._called_off = True
            for part in set(parts) & set(self._entries):
                self._entries[part].process.stop()

    def clear(self) -> None:
        """Forget all parts."""
        self._entries = {}
        self._path.unlink(missing_ok=True)

    def _put(self, part: str, entry: Entry) -> None:
        self._entries[part] = entry
        parts = {name: asdict(one.process) | {"endpoint": one.endpoint} for name, one in self._entries.items()}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"version": VERSION, "parts": parts}, indent=2) + "\n")
        fresh.replace(self._path)


def _read(path: Path) -> dict[str, Entry]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        return {name: _entry(fields) for name, fields in content["parts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        cure = "end the parts by hand and remove the file"
        raise PartError("The parts' state file", f"{path} cannot be read ({error!r})", cure) from error


def _entry(fields: dict[str, object]) -> Entry:
    process = Left(
        pid=int(str(fields["pid"])), started=str(fields["started"]), stop_signal=int(str(fields["stop_signal"]))
    )
    endpoint = fields["endpoint"]
    return Entry(process=process, endpoint=None if endpoint is None else str(endpoint))

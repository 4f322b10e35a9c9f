"""The state file of the shared parts: the process and the endpoint of each part.

Only its owner can read the file, because the endpoint of Postgres has a password. A launch writes its process at once, without
an endpoint. So after an interrupted command the next command still knows every
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from processor.errors import PartError
from processor.local.detached_process import DetachedProcess, start_detached
from processor.local.program import Launch, Program, SecretUrl

LOCAL_DIR = Path(".statestore/local")
"""The directory of the shared parts, if no other is given; relative to the working directory."""
STATE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartProcess:
    """The process of one part; its endpoint is None until the part answers."""

    process: DetachedProcess
    endpoint: str | None

    @property
    def port(self) -> int | None:
        """The port of the endpoint, which is a URL or host:port."""
        return int(self.endpoint.removesuffix("/postgres").rpartition(":")[2]) if self.endpoint else None


class PartsState:
    """The processes by part name. Every change is on disk when its method returns. Raises PartError for an unreadable file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._stopping = False
        self._parts = _read(path)

    @property
    def parts(self) -> dict[str, PartProcess]:
        return dict(self._parts)

    def launch(self, part: str) -> Launch:
        """A launch that starts a detached process and writes it to the file."""

        def launch(program: Program) -> DetachedProcess:
            process = start_detached(program)
            with self._lock:
                before = self._parts.get(part)
                self._put(part, PartProcess(process=process, endpoint=before.endpoint if before else None))
                if self._stopping:
                    process.stop()
            return process

        return launch

    def set_endpoint(self, part: str, endpoint: str) -> None:
        """Write the endpoint of a launched part."""
        with self._lock:
            self._put(part, replace(self._parts[part], endpoint=endpoint))

    def stop(self, names: Iterable[str]) -> None:
        """Stop these parts, and every part that is launched later."""
        with self._lock:
            self._stopping = True
            for part in set(names) & set(self._parts):
                self._parts[part].process.stop()

    def clear(self) -> None:
        """Forget all parts."""
        self._parts = {}
        self._path.unlink(missing_ok=True)

    def _put(self, part: str, process: PartProcess) -> None:
        self._parts[part] = process
        parts = {name: asdict(known.process) | {"endpoint": known.endpoint} for name, known in self._parts.items()}
        new_file = self._path.with_suffix(".new")
        new_file.unlink(missing_ok=True)
        new_file.touch(mode=0o600)
        new_file.write_text(json.dumps({"version": STATE_VERSION, "parts": parts}, indent=2) + "\n")
        new_file.replace(self._path)


def _read(path: Path) -> dict[str, PartProcess]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        return {name: _part_process(fields) for name, fields in content["parts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        cure = "end their processes by hand and remove the file"
        raise PartError("The state file of the embedded parts", f"{path} cannot be read ({error!r})", cure) from error


def _part_process(fields: dict[str, object]) -> PartProcess:
    process = DetachedProcess(
        pid=int(str(fields["pid"])), started=str(fields["started"]), stop_signal=int(str(fields["stop_signal"]))
    )
    endpoint = fields["endpoint"]
    return PartProcess(process=process, endpoint=None if endpoint is None else SecretUrl(endpoint))

"""The job under watch: `statestore run` as a process that starts again when it ends, as a platform does; with
the lines that it said, and when.

It looks each second at the job's `/health` and at the number of its batches, and reads each line of its log when it comes.
"""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from time import time
from typing import IO, Any

from processor.environment.programs.program import LOOPBACK

START_AGAIN_SECONDS = 5.0
LOOK_SECONDS = 1.0
END_SECONDS = 120.0
STATESTORE = str(Path(sys.executable).parent / "statestore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the job's log, and when it came."""

    at: float
    event: str
    text: str
    level: str = "text"
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """An answer of `/health`; status 0: none came."""

    at: float
    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An end of the job that nobody asked for. `text`: its last error."""

    at: float
    status: int
    text: str


@dataclass(slots=True, kw_only=True)
class WatchedJob:
    """The watch. `settings`: the arguments that name the settings; `log`: gets all lines. `counted`: the batches of earlier runs,
    and of the present one."""

    settings: list[str]
    environment: Mapping[str, str]
    port: int
    log: Path
    lines: list[Line] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)
    starts: int = 0
    counted: tuple[int, int] = (0, 0)
    stopped: Event = field(default_factory=Event)
    _process: "subprocess.Popen[str] | None" = None
    _lock: Lock = field(default_factory=Lock)

    def run(self) -> None:
        """Runs the job until `stop`, and starts it again after each end."""
        while not self.stopped.is_set():
            process = self._start()
            assert process.stderr is not None
            reader = Thread(target=follow_log, args=(process.stderr, self.log, self.lines), daemon=True)
            reader.start()
            status = process.wait()
            with suppress(ProcessLookupError):  # what is left of it keeps its log open
                os.killpg(process.pid, signal.SIGKILL)
            reader.join()
            if self.stopped.is_set():
                return
            last = next((line.text for line in reversed(self.lines) if line.event in ("failed", "text")), "")
            self.ends.append(Ended(at=time(), status=status, text=last))
            self.stopped.wait(START_AGAIN_SECONDS)

    def look(self) -> None:
        """Asks for the health each second until `stop`."""
        while not self.stopped.wait(LOOK_SECONDS):
            self.health.append(self._ask("health"))
            before, self.counted = self.batches(), count(self.counted, self._ask("metrics").text)
            if self.batches() > before:  # the log has a line only for a batch that took long or lost something
                self.lines.append(Line(at=time(), event="batch", text=""))

    def stop(self) -> int:
        """Ends the job by SIGTERM, as an operator does. Returns its exit status."""
        with self._lock:
            self.stopped.set()
            process = self._process
        if process is None:
            return 0
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(END_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def batches(self) -> int:
        """The batches of all runs so far."""
        return sum(self.counted)

    def _start(self) -> "subprocess.Popen[str]":
        with self._lock:
            self.starts += 1
            self._process = start_job(self.settings, self.port, self.environment)
            return self._process

    def _ask(self, page: str) -> Health:
        began = time()
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/{page}", timeout=5) as answer:
                return Health(at=began, status=answer.status, text=answer.read().decode().strip())
        except urllib.error.HTTPError as error:
            return Health(at=began, status=error.code, text=error.read().decode().strip())
        except OSError as error:
            return Health(at=began, status=0, text=str(error))


def count(counted: tuple[int, int], metrics: str) -> tuple[int, int]:
    """The batches of earlier runs and of the present one, by the page of metrics, which counts from the start of its run.
    Without a page they stay as they were."""
    found = re.search(r"^statestore_batches_total (\d+)", metrics, re.MULTILINE)
    before, present = counted
    now = int(found[1]) if found else present
    return (before, now) if now >= present else (before + present, now)


def start_job(arguments: Sequence[str], port: int, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Starts `statestore run` as the leader of a process group. Its log comes as JSON lines on the standard error."""
    return subprocess.Popen(
        [STATESTORE, "run", *arguments, "--log", "json", "--status-port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, **environment},
    )


def follow_log(stream: IO[str], file: Path, lines: list[Line]) -> None:
    """Reads the log of a job until its end, into the file and the list."""
    with file.open("a") as log:
        for text in stream:
            log.write(f"{time():.3f} {text}")
            log.flush()
            lines.append(_line(text.rstrip("\n")))


def _line(text: str) -> Line:
    """A line of the log; a text that is no JSON has the event and the level `text`."""
    try:
        found: dict[str, Any] = json.loads(text)
        part = found.get("fields", {}).get("part", "")
        return Line(at=time(), event=found["event"], text=found["text"], level=found["level"], part=part)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Line(at=time(), event="text", text=text)


def background(*works: Any) -> list[Thread]:
    """Runs the works in threads that end with this process."""
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads

"""The reaper: a small process between an owner and one embedded part. The reaper ends the part when the owner is gone.

`program.py` runs this file as a script, isolated and with the standard library only:
`python -I -S reaper.py owned|detached SPEC`.

1. The reaper reads SPEC (JSON), runs the command `before` to its end if there is one, and starts `argv` in a session of its
   own.
2. The reaper prints one JSON line: `{"pid": n}` or `{"error": text}`.
3. In mode `detached` the reaper ends here, and the part stays without an owner. In mode `owned` the reaper waits until its
   owner writes a byte to its standard input, the owner is gone, SIGTERM comes, or the part ends by itself.
4. In mode `owned` the reaper then ends the part: it sends `drop_signal` to the part, and five seconds later SIGKILL to its
   remaining children. On Linux the reaper is the subreaper of all descendants: the children of Postgres lead sessions of
   their own, which a signal to a process group does not reach.
5. In mode `owned` the reaper removes the directories `remove` if the owner is gone.

The owner is gone when the reaper's standard input is closed, or when another process is the reaper's parent. The first alone
does not tell of an owner whose fork keeps the input open. The second alone can come too late: Linux closes the files of a
killed process before it gives the process's children another parent.

If the reaper itself is killed with -9, Linux sends `drop_signal` to the part (PR_SET_PDEATHSIG); macOS does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GRACE_SECONDS = 5.0
OWNER_CHECK_SECONDS = 0.2

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(mode: str, spec: dict[str, Any]) -> None:
    """Start the part of `spec`. In mode `owned`, end the part when its owner is gone."""
    try:
        if mode == "owned":
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
        pid = _start(spec, dies_with_reaper=mode == "owned")
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        if mode == "owned":
            _remove_orphaned(spec)
        return
    print(json.dumps({"pid": pid}), flush=True)
    if mode == "owned":
        _wait_and_end(pid, spec)


def _start(spec: dict[str, Any], *, dies_with_reaper: bool) -> int:
    death_signal = spec["drop_signal"] if dies_with_reaper else 0
    with Path(spec["log"]).open("ab") as log:
        how: dict[str, Any] = {"cwd": spec["directory"], "stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        how |= {"start_new_session": True, "preexec_fn": _dropper(spec["user"], death_signal)}
        if spec["before"]:
            code = subprocess.run(spec["before"], check=False, **how).returncode
            if code != 0:
                raise RuntimeError(f"{spec['before'][0]} ended with {code}")
            if os.getppid() != spec["owner"]:
                raise RuntimeError("its owner is gone")
        return subprocess.Popen(spec["argv"], **how).pid


def _dropper(user: list[int] | None, death_signal: int) -> Callable[[], None]:
    """The child's steps before it becomes the part: change to the user, and ask Linux to end the part with the reaper."""

    def prepare() -> None:
        if user is not None:
            os.setgroups([])
            os.setgid(user[1])
            os.setuid(user[0])
        if death_signal:  # after setuid, which clears it
            _prctl(PR_SET_PDEATHSIG, death_signal)

    return prepare


def _prctl(option: int, *values: int) -> int:
    """Linux's prctl; elsewhere nothing."""
    if not sys.platform.startswith("linux"):
        return -1
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, *padded))


def _wait_and_end(pid: int, spec: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        while os.getppid() == spec["owner"] and os.waitpid(pid, os.WNOHANG)[0] == 0:
            if select.select([0], [], [], OWNER_CHECK_SECONDS)[0]:
                os.read(0, 1)
                break
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(pid, spec["drop_signal"])
        _remove_orphaned(spec)


def _remove_orphaned(spec: dict[str, Any]) -> None:
    """Remove the directories that an owner who is gone can no longer remove."""
    is_closed = bool(select.select([0], [], [], 0)[0]) and not os.read(0, 1)
    if is_closed or os.getppid() != spec["owner"]:
        for directory in spec["remove"]:
            shutil.rmtree(directory, ignore_errors=True)


def _end(pid: int, drop_signal: int) -> None:
    """End the part and every descendant, and wait for all of them."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, drop_signal)
    deadline = time.monotonic() + GRACE_SECONDS
    with contextlib.suppress(ChildProcessError):  # raised when no child remains
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] != 0:
                continue
            if time.monotonic() > deadline:
                _kill_children(pid)
            time.sleep(0.01)


def _kill_children(pid: int) -> None:
    listing = Path(f"/proc/self/task/{os.getpid()}/children")
    children = [int(word) for word in listing.read_text().split()] if listing.exists() else [pid]
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

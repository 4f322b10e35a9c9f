"""The keeper: a tiny process that stands between an owner and one part, and ends the part when the owner is gone.

Run as a script by `process.py`, isolated and with the standard library only: `python -I -S keeper.py keep|leave SPEC`.

1. SPEC (JSON) is read; `before`, if any, is run to its end; then `argv` is started in a session of its own.
2. One JSON line is printed: `{"pid": n}` or `{"error": text}`.
3. `leave` ends here: the part belongs to nobody and stays. `keep` waits until its standard input closes, its parent
   is another process than `owner` (killed with -9), SIGTERM comes, or the part ends by itself.
4. `keep` then ends the part: `drop_signal`, five seconds later SIGKILL, for every descendant (on Linux the keeper is
   their subreaper: Postgres's children lead sessions of their own, a process group would not reach them).
5. `keep` removes the directory `remove`, when the owner can no longer do it.

If the keeper itself is killed with -9, Linux sends `drop_signal` to the part (PR_SET_PDEATHSIG); macOS does not.
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
LOOK_SECONDS = 0.2

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT = 1, 8, 36, 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


def main(mode: str, spec: dict[str, Any]) -> None:
    """Start the part of `spec` and, in mode `keep`, end it with its owner."""
    try:
        if mode == "keep":
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
        pid = _start(spec, dies_with_us=mode == "keep")
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    print(json.dumps({"pid": pid}), flush=True)
    if mode == "keep":
        _keep(pid, spec)


def _start(spec: dict[str, Any], *, dies_with_us: bool) -> int:
    death_signal = spec["drop_signal"] if dies_with_us else 0
    with Path(spec["log"]).open("ab") as log:
        how: dict[str, Any] = {"cwd": spec["directory"], "stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        how |= {"start_new_session": True, "preexec_fn": _dropper(spec["user"], spec["reach"], death_signal)}
        if spec["before"]:
            code = subprocess.run(spec["before"], check=False, **how).returncode
            if code != 0:
                raise RuntimeError(f"{spec['before'][0]} ended with {code}")
            if os.getppid() != spec["owner"]:
                raise RuntimeError("its owner is gone")
        return subprocess.Popen(spec["argv"], **how).pid


def _dropper(user: list[int] | None, reach: bool, death_signal: int) -> Callable[[], None]:
    """What the child does before it becomes the part: another user, and the wish to die with the keeper."""

    def prepare() -> None:
        if user is not None:
            if reach:
                _prctl(PR_SET_KEEPCAPS, 1)
            os.setgroups([])
            os.setgid(user[1])
            os.setuid(user[0])
            if reach:
                _keep_reach()
        if death_signal:  # after setuid, which clears it
            _prctl(PR_SET_PDEATHSIG, death_signal)

    return prepare


def _keep_reach() -> None:
    """Let the unprivileged user still enter root's closed directories: the one capability CAP_DAC_OVERRIDE."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    bit = 1 << CAP_DAC_OVERRIDE
    data = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, data) != 0 or _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE) != 0:
        raise OSError(ctypes.get_errno(), "this system does not let root lend a capability")


def _prctl(option: int, *values: int) -> int:
    """Linux's prctl; elsewhere nothing."""
    if not sys.platform.startswith("linux"):
        return -1
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, *padded))


def _keep(pid: int, spec: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        while os.getppid() == spec["owner"] and os.waitpid(pid, os.WNOHANG)[0] == 0:
            if select.select([0], [], [], LOOK_SECONDS)[0] and not os.read(0, 1):
                break
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(pid, spec["drop_signal"])
        if spec["remove"] and os.getppid() != spec["owner"]:
            shutil.rmtree(spec["remove"], ignore_errors=True)


def _end(pid: int, drop_signal: int) -> None:
    """End the part and every descendant, and wait for all of them."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, drop_signal)
    deadline = time.monotonic() + GRACE_SECONDS
    with contextlib.suppress(ChildProcessError):  # raised when no child is left
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

"""Run a command on one core, and count the CPU seconds of all its processes, also of those that outlive their parents.

    python -m benchmarks.peers.process_tree OUTPUT COMMAND [ARGUMENT ...]

Writes the standard output of the command to the file OUTPUT, and prints the seconds. Linux only: this process adopts the orphans
of the command (PR_SET_CHILD_SUBREAPER), so that the system counts their time here when they end.
"""

import ctypes
import os
import resource
import subprocess
import sys
from pathlib import Path

from processor.errors import StatestoreError

PR_SET_CHILD_SUBREAPER = 36


def cpu_of(command: list[str], output: Path, errors: Path) -> float:
    """CPU seconds of the command, measured by a process of its own. Raises StatestoreError with the last line of `errors`."""
    with errors.open("w") as stderr:
        measured = [sys.executable, "-m", "benchmarks.peers.process_tree", str(output), *command]
        run = subprocess.run(measured, stdout=subprocess.PIPE, stderr=stderr, text=True)
    if run.returncode:
        text = errors.read_text(encoding="utf-8", errors="replace").strip()
        print(text[-5_000:], file=sys.stderr)
        raise StatestoreError(
            f"its program ended with {run.returncode}: {text.splitlines()[-1] if text else 'no message'}"
        )
    return float(run.stdout)


def main() -> None:
    output, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with open(output, "wb") as stdout:
        status = subprocess.run(command, stdout=stdout).returncode
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)
    sys.exit(status)


if __name__ == "__main__":
    main()

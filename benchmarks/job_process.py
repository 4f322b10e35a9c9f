"""The job, or any command, as a process of its own; and work in threads next to a block."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import psutil

from processor.environment.settings.settings import Settings, setting_flags

STATESTORE = str(Path(sys.executable).parent / "statestore")


@contextmanager
def run_command(words: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a process with a group of its own and a pipe as stdin. At the end of the block all its processes end. Its stderr
    goes to a file."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, **environment},
        )
    family: list[psutil.Process] = []
    try:
        yield process
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # closes the pipe, too
        _, alive = psutil.wait_procs(family, timeout=300)
        for orphan in alive:
            orphan.kill()


def environment(settings: Settings) -> dict[str, str]:
    """The environment in which every command has these settings."""
    return {**os.environ, **{f"STATESTORE_{name.upper()}": str(getattr(settings, name)) for name, _ in setting_flags()}}


@contextmanager
def background(*works: Callable[[], None]) -> Iterator[None]:
    """Runs the works in threads next to the block. The caller makes them end."""
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()

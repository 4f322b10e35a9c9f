"""Fills `.venv` of a checkout (`make tour`, `make setup`), and prints each step with its sizes and times.

`small` installs what works in memory: no Java, no Spark. `full` installs all that the demo and the tests need, and fetches the
jars of Kafka and of Spark's connector. It runs before the installation, so it needs Python and the checkout only.
"""

import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which
from time import monotonic
from typing import Final

from processor.environment.programs.downloads import every

VENV: Final = Path(".venv")
PYTHON: Final = VENV / "bin" / "python"
DOWNLOADS: Final = VENV / "downloads"
"""pip keeps its downloads here while it runs."""
STAMPS: Final = {"small": (VENV / ".small",), "full": (VENV / ".small", VENV / ".set-up")}
"""The files that hold the path of the checkout after the set-up."""
LINE_SECONDS: Final = 10
LAST_LINES: Final = 20
"""Lines of pip that are shown when it fails."""
JARS: Final = ("kafka_broker", "spark_kafka")
FETCH: Final = (
    "from processor.environment.programs import downloads as d; d.{}_jars(lambda line: print(' ', line, flush=True))"
)


def main(kind: str) -> int:
    """Makes the set-up of this kind; returns the exit status."""
    began, full = monotonic(), kind == "full"
    steps = 3 if full else 2
    version = sys.version.split()[0]
    if _usable():
        print(f"step 1 of {steps}: .venv is here", flush=True)
    else:
        print(f"step 1 of {steps}: making .venv with Python {version}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False).returncode:
            return 1  # the module `venv` has said why
    for stamp in STAMPS["full"]:
        stamp.unlink(missing_ok=True)
    sizes = "470 MB to download, 300 of them PySpark: 1 to 4 minutes" if full else "40 MB to download: 10 to 80 s"
    print(f"step 2 of {steps}: installing statestore and its packages ({sizes})", flush=True)
    if not _install(".[dev]" if full else "."):
        return 1
    if full:
        print(f"step 3 of {steps}: fetching jars of Kafka and of Spark's connector (49 MB: 40 to 80 s)", flush=True)
        _fetch_jars()
    for stamp in STAMPS[kind]:
        stamp.write_text(f"{Path.cwd()}\n")
    print(f"set-up done: .venv has {_megabytes([VENV]):,} MB ({monotonic() - began:.0f} s)", flush=True)
    return 0


def _usable() -> bool:
    """Whether `.venv` works, and is of this directory: that of a copied checkout belongs to the original."""
    stamps = [stamp.read_text().strip() for stamp in STAMPS["full"] if stamp.exists()]
    if any(path != str(Path.cwd()) for path in stamps) or not PYTHON.exists():
        return False
    return subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def _install(what: str) -> bool:
    """Lets pip install; shows its progress, and its last lines if it fails. Python compiles a module when it first imports it:
    to compile all of them takes pip as long as the rest of the installation."""
    DOWNLOADS.mkdir(exist_ok=True)
    flags = ("--disable-pip-version-check", "--no-compile", "--progress-bar", "off")
    command = ("env", f"TMPDIR={DOWNLOADS.resolve()}", str(PYTHON), "-m", "pip", "install", *flags, "--editable", what)
    output: list[str] = []
    began = monotonic()
    with (
        every(LINE_SECONDS, lambda passed: print(f"  {passed} s: {_progress(output)}", flush=True)),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip,
    ):
        assert pip.stdout is not None
        output.extend(line.rstrip() for line in pip.stdout)
    rmtree(DOWNLOADS, ignore_errors=True)
    if pip.returncode:
        print("\n".join([*output[-LAST_LINES:], "pip failed: its last lines are above"]), file=sys.stderr)
    else:
        print(f"  {_total(output)} ({monotonic() - began:.0f} s)", flush=True)
    return pip.returncode == 0


def _progress(output: list[str]) -> str:
    """What pip does, by its output."""
    for line in reversed(output):
        if found := re.match(r"Installing collected packages: (.+)", line):
            return f"pip installs {found[1].count(',') + 1} packages"
        if found := re.match(r" *Building (?:wheel|editable) for (\S+)", line):
            return f"pip builds {found[1]}"
        if re.match(r" *(?:Installing build dependencies|Preparing|Getting requirements)", line):
            return "pip prepares a build"
        if re.match(r" *(?:Downloading|Using cached) ", line):
            break
    return _downloaded()


def _downloaded() -> str:
    """How many files pip has downloaded, with what is here of the newest one."""
    archives = [*DOWNLOADS.glob("pip-unpack-*/*.whl"), *DOWNLOADS.glob("pip-unpack-*/*.tar.gz")]
    return f"{len(archives)} packages, {_megabytes(archives):,} MB downloaded"


def _total(output: list[str]) -> str:
    """What pip has done in the end, by its output."""
    names = [line.count(" ") - 1 for line in output if line.startswith("Successfully installed ")]
    sizes = re.findall(r"Downloading \S+(?<!\.metadata) \(([\d.]+) (kB|MB)\)", "\n".join(output))
    megabytes = sum(float(size) / (1000 if unit == "kB" else 1) for size, unit in sizes)
    return f"{sum(names)} packages installed, {megabytes:,.0f} MB downloaded"


def _megabytes(paths: list[Path]) -> int:
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.lstat().st_size for file in files if file.is_file() and not file.is_symlink()) >> 20


def _fetch_jars() -> None:
    """Fetches the jars, all sets at the same time. Without them the set-up is done too: the first command that needs them tries
    again."""
    if which("java") is None:
        print("  there is no java: `make demo` and `make test` need Java 17 or newer, and fetch these jars then")
        return
    running = [subprocess.Popen([str(PYTHON), "-c", FETCH.format(name)], stderr=subprocess.PIPE) for name in JARS]
    for name, one in zip(JARS, running, strict=True):
        error = one.communicate()[1].decode().strip().splitlines()
        if one.returncode:
            print(f"  {name}: {error[-1] if error else 'failed'}; the first command that needs it tries again")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit("the set-up was stopped; the same command goes on")

"""Makes the virtual environment of a Python from its lock file, and packs it with venv-pack.

The packed environment has no Python of its own: its `bin/python` is a link to the Python of the platform, as in the environments
that AWS describes for Glue. It has no PySpark either: the platform's spark-submit brings it.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from infra.package.lock_files import PLATFORM, lock_file

LEFT_OUT = r"\.\./\.\./\.\./bin/|[^/]+/uv_cache\.json,"
"""Lines of a RECORD."""
PYTHON_PREFIX = "/usr"
"""Amazon Linux 2023 keeps its Pythons in /usr/bin."""


def find_python(version: str) -> str | None:
    """The path of a Python such as "3.11": from PATH, else from pyenv. None if there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [
        shutil.which(f"python{version}"),
        *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))),
    ]
    for path in filter(None, found):
        asked = subprocess.run(
            [path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            return asked.stdout.strip()
    return None


def make_environment(directory: Path, version: str, python: str, wheel: Path, prefix: str = PYTHON_PREFIX) -> Path:
    """Makes the environment in the directory, with the wheel, for a platform with Python in `prefix`. Returns its packages."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(directory)], check=True)
    into = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(directory / "bin" / "python")]
    into += ["--no-deps", "--only-binary", ":all:", "--link-mode", "copy"]
    lock = ["--require-hashes", "--python-platform", PLATFORM, "--requirement", str(lock_file(version))]
    own = ["--no-index", "--find-links", str(wheel.parent), f"statestore=={wheel.name.split('-')[1]}"]
    for packages in (lock, own):
        subprocess.run([*into, *packages], check=True)
    packages_of = directory / "lib" / f"python{version}" / "site-packages"
    _leave_the_machine(directory, packages_of, version, prefix)
    return packages_of


def _leave_the_machine(directory: Path, packages: Path, version: str, prefix: str) -> None:
    """Removes each path and each time of the build machine. The commands of the packages have a path in their first line, and
    uv_cache.json has a time; their hashes are in a RECORD. venv-pack's own `--python-prefix` writes a wrong link where the
    Python is called python3.11."""
    for file in (*(directory / "bin").iterdir(), *packages.glob("*.dist-info/uv_cache.json")):
        file.unlink()
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not re.match(LEFT_OUT, line)), encoding="utf-8")
    (directory / "bin" / f"python{version}").symlink_to(f"{prefix}/bin/python{version}")
    for name in ("python", "python3"):
        (directory / "bin" / name).symlink_to(f"python{version}")
    text = f"home = {prefix}/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    (directory / "pyvenv.cfg").write_text(text, encoding="utf-8")


def pack_environment(directory: Path, archive: Path, epoch: int) -> None:
    """Packs the environment. The members are in the order of their names, with the time `epoch` and no owner."""
    import venv_pack  # only here: `find_python` needs no tool of `make package`

    with tempfile.TemporaryDirectory() as temporary:
        packed = f"{temporary}/environment.tar"
        venv_pack.Env(str(directory)).exclude("*.pyc").exclude(".gitignore").exclude(".lock").pack(packed)
        with (
            tarfile.open(packed) as members,
            archive.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as ordered,
        ):
            for member in sorted(members, key=lambda one: one.name):
                member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
                member.mode = 0o755 if member.isdir() or member.issym() or member.mode & 0o100 else 0o644
                ordered.addfile(member, members.extractfile(member) if member.isfile() else None)

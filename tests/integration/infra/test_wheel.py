"""The wheel has all that the first command of a newcomer needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra.package.wheel import build_wheel

TOUR = (
    "from processor.cli.main import main; import processor; print(processor.__file__); raise SystemExit(main(['tour']))"
)


@pytest.mark.slow
@pytest.mark.usefixtures("package_tools")
def test_the_tour_of_the_wheel_needs_no_checkout(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path, epoch=1420070400)) as wheel:
        wheel.extractall(tmp_path / "installed")
    command = [sys.executable, "-c", TOUR]
    environment = {"PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    place, *lines = done.stdout.splitlines()
    assert place.startswith(str(tmp_path))
    assert lines[-1] == '  starred_repos: [{"owner":"acme","name":"tool","description":"A better tool"}]'

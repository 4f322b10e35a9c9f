"""Terraform for the tests, with the real provider of AWS and a moto server in the place of AWS."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.infra.patched_moto import patched_moto
from tests.support.required import required_program

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
MOTO = Path(__file__).parent / "moto"
"""What moto cannot do, as override files that repeat the tree of `infra`."""
PROVIDER = "registry.terraform.io/hashicorp/aws"
PLUGINS = "STATESTORE_TEST_TERRAFORM_PLUGINS"
"""The variable with a folder of providers, for a machine that reaches no registry of Terraform."""
REGION = "eu-west-1"


class Terraform:
    """Terraform in one folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment

    def run(self, *arguments: str, expect: Sequence[int] = (0,)) -> str:
        """The output of a command, with its errors if it failed. Fails unless its exit status is as expected."""
        done = subprocess.run(
            ["terraform", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in expect, f"terraform {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr if done.returncode == 1 else done.stdout


@pytest.fixture(scope="session")
def terraform_program() -> str:
    return required_program("terraform", "https://developer.hashicorp.com/terraform/install")


@pytest.fixture(scope="session")
def infra(terraform_program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `infra`, with moto's gaps. A test works in one of its folders."""
    folder = tmp_path_factory.mktemp("terraform") / "infra"
    shutil.copytree(INFRA, folder, ignore=shutil.ignore_patterns(".terraform*"))
    shutil.copytree(MOTO, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """The endpoint of a moto server for the tests of one file. moto keeps what they make in memory until it is reset."""
    with patched_moto() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def client(aws: str) -> Any:
    """Makes boto3's client of a service."""
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
    return lambda service: boto3.client(service, endpoint_url=aws, **keys)


@pytest.fixture(scope="module")
def terraform(infra: Path, aws: str) -> Any:
    """Terraform in a folder of the copy, initialized, with moto in the place of AWS."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("TF_", "AWS_"))}
    given = {"AWS_ENDPOINT_URL": aws, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

    def start(folder: str) -> Terraform:
        made = Terraform(infra / folder, clean | given | {"TF_IN_AUTOMATION": "1"})
        plugins = [f"-plugin-dir={found}" for found in _plugins()]
        try:
            made.run("init", "-no-color", *plugins)
        except AssertionError as error:
            if plugins:
                raise
            pytest.skip(f"Terraform cannot get the provider of AWS ({PLUGINS} names a folder that has it): {error}")
        return made

    return start


def _plugins() -> list[Path]:
    """The folder that the variable names, else the first of those in which machines keep providers."""
    if given := os.environ.get(PLUGINS):
        return [Path(given)]
    folders = [*Path("/opt").glob("*"), Path("/usr/share/terraform/plugins"), Path.home() / ".terraform.d/plugins"]
    return [folder for folder in folders if (folder / PROVIDER).is_dir()][:1]

"""Each role of AWS can do its work, and its policy allows no request more: `infra/modules/access`."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from processor.environment.settings.settings import setting_flags
from processor.environment.stores.kinds import open_store
from tests.faulty.proxy import proxy
from tests.recorder.role import Role

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
NOT_OF_EDITS = {"DescribeContinuousBackups", "DescribeTimeToLive", "Scan"}
"""Only `doctor` and `copy` ask for these."""


@pytest.fixture
def scene(new_scene: Callable[..., Any], dynamodb_local: str) -> Any:
    """A scene on DynamoDB Local, over a table that somebody else made."""
    scene = new_scene(endpoint=dynamodb_local)
    store = open_store(scene.settings)
    store.create(scene.settings.slots)
    store.close()
    return scene


@pytest.fixture
def as_role(dynamodb_local: str) -> Iterator[Callable[..., tuple[Role, str]]]:
    """Makes a role with the rights of these names, and the endpoint of a proxy that lets only its requests through."""
    with ExitStack() as proxies:

        def make(*names: str) -> tuple[Role, str]:
            role = Role(*names)
            return role, proxies.enter_context(proxy(dynamodb_local, role))

        yield make


@pytest.mark.slow
def test_the_policies_allow_exactly_what_each_role_does(scene: Any, rows: SimpleNamespace, as_role: Any) -> None:
    job, endpoint = as_role("job")
    scene.produce(rows.user(1, "ada"), rows.star("ada", "one"), rows.star("ada", "two"), ("star", b"{", b"{}"))
    scene.run(endpoint=endpoint, fan_out_page=1)
    scene.produce(rows.user(1, "grace"), rows.user(2, "ada"), rows.star("grace", "three"))
    scene.run(endpoint=endpoint, fan_out_page=1)
    assert scene.documents() == scene.truth()
    assert job.used == job.allowed

    reader, endpoint = as_role("reader")
    reads = [
        ["get", "profile", "1"],
        ["explain", "profile", "1"],
        ["row", "user", "1"],
        ["rows", "user"],
        ["keys", "profile"],
        ["statistics"],
        ["verify"],
        ["dead-letters", "list"],
    ]
    assert [_verb(scene, endpoint, *verb).returncode for verb in reads] == [0] * len(reads)
    assert reader.used == reader.allowed
    more_slots = ["add-slots", "4", "--why", "a test"]
    assert "not authorized to perform: dynamodb:DescribeTable" in _verb(scene, endpoint, *more_slots).stderr

    operator, endpoint = as_role("operator")
    edits = [*reads, ["dead-letters", "drop", "--why", "a test"], more_slots]
    assert [_verb(scene, endpoint, *verb).returncode for verb in edits] == [0] * len(edits)
    assert operator.used == operator.allowed - NOT_OF_EDITS


@pytest.mark.slow
def test_a_copy_reads_as_an_operator_and_writes_as_an_operator_and_a_job(
    scene: Any, rows: SimpleNamespace, as_role: Any
) -> None:
    scene.produce(rows.user(1, "ada"), rows.star("ada", "one"))
    scene.run()
    source, endpoint = as_role("operator")
    assert _copy(scene, endpoint, "dynamodb", "postgres") == (0, "")
    assert source.used == {"BatchGetItem", "DescribeTable", "DescribeTimeToLive", "Scan"}

    scene.produce(rows.user(1, "grace"), rows.user(2, "ada"), rows.gone(rows.star("ada", "one")))
    scene.run(store="postgres")
    target, endpoint = as_role("operator", "job")
    assert _copy(scene, endpoint, "postgres", "dynamodb") == (0, "")
    assert target.used == source.used | {"DeleteItem", "Query index", "UpdateItem"}
    assert scene.run().published == 0
    assert scene.documents() == scene.truth()

    elsewhere = f"dynamodb:///{scene.settings.table}-2"
    status, error = _copy(scene, endpoint, "dynamodb", elsewhere)
    assert (status, "not authorized to perform: dynamodb:CreateTable" in error) == (1, True)
    maker, endpoint = as_role("operator", "job", "table_maker")
    assert _copy(scene, endpoint, "dynamodb", elsewhere) == (0, "")
    assert maker.used >= {"CreateTable", "UpdateTimeToLive"}


def _copy(scene: Any, endpoint: str, source: str, target: str) -> tuple[int, str]:
    """Gives `copy`. Returns its exit status and, of a failure, what it says."""
    done = _verb(scene, endpoint, "copy", "--from", source, "--to", target)
    return done.returncode, done.stderr if done.returncode else ""


def _verb(scene: Any, endpoint: str, *verb: str) -> subprocess.CompletedProcess[str]:
    """Gives a verb in a process of its own, with the settings of a scene."""
    settings = replace(scene.settings, endpoint=endpoint)
    variables = {f"STATESTORE_{name.upper()}": str(getattr(settings, name)) for name, _ in setting_flags()}
    return subprocess.run(
        [sys.executable, "-c", "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))", *verb],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )

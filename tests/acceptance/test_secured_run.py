"""`statestore` as a command over a broker with TLS and SCRAM: nobody can see the secret, and a wrong setting is one line."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from processor.environment.embedded import up
from tests.secured.broker import CANARY, PASSWORD, VARIABLE, SecuredBroker, secured_broker

Story = Any  # the class in conftest.py
pytestmark = pytest.mark.slow  # Spark with all its logs, while the test reads the arguments of all processes
VERBS = (["run", "--once"], ["verify"], ["dead-letters", "list"], ["epoch", "some.topic", "--why", "a test"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(scope="module")
def settings(module_story: Story, broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings file of the story's job. The SCRAM listener asks for no certificate; its key must not appear either."""
    addresses = up(module_story.local)
    own = dict(zip([word[2:].replace("-", "_") for word in module_story.own[::2]], module_story.own[1::2], strict=True))
    folder = tmp_path_factory.mktemp("settings")
    (folder / "registry").write_text(addresses.registry_url)
    own |= {"registry": f"file:{folder}/registry", "endpoint": addresses.endpoints["dynamodb"], "region": "us-east-1"}
    own |= {"bootstrap_servers": broker.addresses["SCRAM"], "checkpoint": str(module_story.checkpoint)}
    (folder / "key-password").write_text(PASSWORD + "\n")
    kafka = broker.table("TLS") | broker.table("SCRAM") | {"ssl.key.password": f"file:{folder}/key-password"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    lines += ["[kafka]", *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in kafka.items())]
    file = folder / "settings.toml"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture(scope="module")
def ran(
    module_story: Story, settings: Path, statestore: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[str]]:
    """The folder with the messages and all logs of a run whose Spark logs much, and the arguments of all processes meanwhile."""
    folder = tmp_path_factory.mktemp("ran")
    shown = f"spark.log.level INFO\nspark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{folder}\n"
    (folder / "spark-defaults.conf").write_text(shown)
    words = ["run", "--settings", str(settings), *module_story.define, "--from", module_story.file, "--once"]
    words += ["--to", str(folder / "published.jsonl")]
    environment = {**os.environ, VARIABLE: PASSWORD, "SPARK_CONF_DIR": str(folder)}
    arguments: set[str] = set()
    with (folder / "log.txt").open("w") as log:
        job = subprocess.Popen([*statestore, *words], env=environment, stdout=log, stderr=subprocess.STDOUT)
        while job.poll() is None:
            arguments |= set(_arguments())
            sleep(0.1)
    assert job.returncode == 0, (folder / "log.txt").read_text()[-3000:]
    return folder, arguments


def test_the_documents_are_the_answer_of_postgres(ran: tuple[Path, set[str]], module_story: Story) -> None:
    assert module_story.wrong(str(ran[0] / "published.jsonl")) == []


def test_no_log_no_event_and_no_argument_shows_a_secret(ran: tuple[Path, set[str]], broker: SecuredBroker) -> None:
    folder, arguments = ran
    key = (broker.folder / "client.key").read_text().splitlines()[1]
    logs = [path for path in folder.rglob("*") if path.is_file()]
    assert [(path, secret) for path in logs for secret in (CANARY, key) if secret in path.read_text()] == []
    assert [one for one in arguments if CANARY in one or key in one] == []
    texts = "".join(path.read_text() for path in logs)  # not in vain: the options are there
    assert "sasl.mechanism = SCRAM-SHA-512" in texts
    assert "SparkListenerApplicationStart" in texts
    assert any("org.apache.spark.deploy.SparkSubmit" in one for one in arguments)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_wrong_password_is_one_line_in_each_verb(
    ran: tuple[Path, set[str]], settings: Path, statestore: list[str], verb: list[str]
) -> None:
    words = [*statestore, *verb, "--settings", str(settings)]
    environment = {**os.environ, VARIABLE: "wrong"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"statestore {verb[0]}: [kafka] sasl.username, sasl.password: ")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_missing_variable_is_one_line(ran: tuple[Path, set[str]], settings: Path, statestore: list[str]) -> None:
    words = [*statestore, "verify", "--settings", str(settings)]
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == f"statestore verify: [kafka] sasl.password: the variable {VARIABLE} is not set\n"


def _arguments() -> Iterator[str]:
    """The arguments of every process that runs now."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")

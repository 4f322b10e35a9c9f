"""Kafka Connect with one connector of Debezium, as an embedded part: a worker, and its REST interface.

`write_connector` puts the connector's properties into the part's directory, and the password of the source into a file there that
only its owner can read. `start_connect` starts a worker over them, and again over the same data after a kill.

Promises: the worker keeps offsets in Kafka, as a worker of a production does: a file of offsets may be half written after a kill,
and Debezium would take a new snapshot, which has no deletes. The password is no part of the properties, of a command line, of a
log or of Kafka: the worker reads it from its environment. A new worker has a group of its own, so it waits for no dead one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from processor.environment.programs.downloads import (
    JVM_OPTIONS,
    ShowProgress,
    connect_jars,
    debezium_jars,
    find_java,
    silent,
)
from processor.environment.programs.program import (
    LOOPBACK,
    EmbeddedPart,
    Launch,
    PartsState,
    Program,
    log_tail,
    start_and_wait,
    start_owned,
)
from processor.errors import PartError

CONNECT_NAME: Final = "Debezium on Kafka Connect"
PASSWORD: Final = "STATESTORE_SOURCE_PASSWORD"
"""The variable of the worker with the password of the source."""
PASSWORD_WORD: Final = f"${{env:{PASSWORD}}}"
"""The password in the properties of a connector: the worker puts the value of the variable there."""
BROKER_WORD: Final = "BROKER:9092"
"""The broker in the properties of a connector: `start_connect` puts its address there."""
OF_WORKER: Final = ("connect-", "jackson-", "kafka-", "slf4j-")
"""Jars that the worker gives its plugins, as Debezium's own archive leaves them out."""
LOG_OPTIONS: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
FLUSH_MS: Final = 2_000
"""The worker stores offsets so often. After a kill Debezium sends again what came after the last stored offset."""
MESSAGE_BYTES: Final = 10 * 1024 * 1024
"""The largest message, as of the embedded broker."""
WORKER_SETTINGS: Final[Mapping[str, str]] = {
    **{f"{name}.storage.topic": f"connect-{plural}" for name, plural in
       {"config": "configs", "offset": "offsets", "status": "status"}.items()},
    **{f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")},
    **{f"{name}.storage.partitions": "1" for name in ("offset", "status")},
    **{f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")},
    "offset.flush.interval.ms": str(FLUSH_MS),
    "scheduled.rebalance.max.delay.ms": "0",
    "plugin.discovery": "service_load",
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.env.param.allowlist.pattern": PASSWORD,
    "producer.max.request.size": str(MESSAGE_BYTES),
}  # fmt: skip
CONNECTOR: Final = "connector.json"
SECRET: Final = "secret"
REQUEST_SECONDS: Final = 60.0
READY_SECONDS: Final = 120.0
"""The longest wait for a worker that takes a connector."""


def write_connector(directory: Path, properties: Mapping[str, str], password: str) -> None:
    """Keeps the properties of the connector, with PASSWORD_WORD as its password, and the password, for `start_connect`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONNECTOR).write_text(json.dumps(dict(properties), indent=2) + "\n", encoding="utf-8")
    (directory / SECRET).unlink(missing_ok=True)
    with os.fdopen(os.open(directory / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(password)


def read_connector(directory: Path) -> tuple[Mapping[str, str], str] | None:
    """The properties and the password; None where no connector was written."""
    file = directory / CONNECTOR
    return (json.loads(file.read_text(encoding="utf-8")), (directory / SECRET).read_text()) if file.exists() else None


def start_connect(
    directory: Path,
    *,
    launch: Launch = start_owned,
    port: int | None = None,
    bootstrap: str = "",
    progress: ShowProgress = silent,
) -> EmbeddedPart:
    """Starts a worker with the connector of the directory, on `port` if it is free; `endpoint` is the URL of its REST interface.
    `bootstrap`: the broker; without it, that of the parts in the parent of the directory. Raises PartError, also where Debezium
    refuses the properties."""
    if (kept := read_connector(directory)) is None:
        raise PartError(CONNECT_NAME, f"there is no connector in {directory}", "start it with `local up --source`")
    connector, password = kept
    kind = "mariadb" if "mariadb" in connector["connector.class"] else "postgresql"
    jars = connect_jars(progress)
    _link_plugin(directory / "plugins" / kind, debezium_jars(kind, progress))
    broker = bootstrap or PartsState(directory.parent / "state.json").parts["kafka"].endpoint or ""

    def build(chosen: int) -> Program:
        own = {
            "bootstrap.servers": broker,
            "group.id": f"statestore-{token_hex(4)}",
            "listeners": f"http://{LOOPBACK}:{chosen}",
            "plugin.path": "plugins",
        }
        lines = (f"{name}={value}\n" for name, value in ({**WORKER_SETTINGS, **own}).items())
        (directory / "worker.properties").write_text("".join(lines))
        main = ("org.apache.kafka.connect.cli.ConnectDistributed", "worker.properties")
        argv = (find_java(), *JVM_OPTIONS, *LOG_OPTIONS, "-cp", f"{jars}/*", *main)
        return Program(name=CONNECT_NAME, directory=directory, argv=argv, env={PASSWORD: password})

    process, chosen = start_and_wait(build, launch, port, lambda *_: True)
    part = EmbeddedPart(name=CONNECT_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)
    try:
        known = {name: broker if value == BROKER_WORD else value for name, value in connector.items()}
        _put(part, known, directory / "log.txt")
    except BaseException:
        process.stop()
        raise
    return part


def _link_plugin(folder: Path, jars: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)  # each folder of the path is a plugin
    for jar in jars.iterdir():
        if not jar.name.startswith(OF_WORKER) and not (folder / jar.name).exists():
            (folder / jar.name).symlink_to(jar)


def _put(part: EmbeddedPart, connector: Mapping[str, str], log: Path) -> None:
    """Gives the worker its connector. A worker that has it already changes nothing."""
    deadline, answer = time.monotonic() + READY_SECONDS, ""
    while time.monotonic() < deadline:
        if not part.alive():
            raise PartError(CONNECT_NAME, f"it ended; its log ends with:\n{log_tail(log)}", "read these lines")
        status, answer = _request(part.endpoint, f"/connectors/{connector['name']}/config", connector)
        if status in (200, 201):
            return
        if status == 400:
            raise PartError(
                CONNECT_NAME, f"it refuses the connector: {_message(answer)}", "correct the source's settings"
            )
        time.sleep(0.2)  # the worker has not joined its group yet
    raise PartError(CONNECT_NAME, f"it takes no connector: {_message(answer)}", f"read its log, {log}")


def connector_problem(endpoint: str, name: str) -> str:
    """Why the connector does not run: the first line of the error of its task; empty if it runs, or has not begun yet."""
    status, answer = _request(endpoint, f"/connectors/{name}/status")
    if status != 200:
        return ""
    found: dict[str, Any] = json.loads(answer)
    for one in (found["connector"], *found["tasks"]):
        if one["state"] == "FAILED":
            causes = [line for line in one.get("trace", "").splitlines() if not line.startswith("\t")]
            return str(causes[-1] if causes else "it failed").removeprefix("Caused by: ")
    return ""


def _request(endpoint: str, path: str, body: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The status and the text of an answer; status 0 without an answer."""
    data = None if body is None else json.dumps(dict(body)).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(endpoint + path, data=data, headers=headers, method="GET" if body is None else "PUT")
    try:
        with urlopen(request, timeout=REQUEST_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (URLError, OSError) as error:
        return 0, str(error)


def _message(answer: str) -> str:
    try:
        return " ".join(str(json.loads(answer)["message"]).split())
    except (ValueError, KeyError, TypeError):
        return answer[:200]

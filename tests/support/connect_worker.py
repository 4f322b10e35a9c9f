"""A standalone worker of Kafka Connect with one connector, as a user starts it. The jars come from Maven Central, once."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from processor.environment.programs.connect import OF_WORKER
from processor.environment.programs.downloads import (
    DEBEZIUM_MODULES,
    Ivy,
    Module,
    connect_jars,
    fetch_once,
    find_java,
    jars_of_pyspark,
    silent,
)
from processor.environment.programs.program import Program, start_and_wait, start_owned

JDBC_SINK = Module("io.debezium", "debezium-connector-jdbc", "3.5.0.Final")
MARIADB_SOURCE = DEBEZIUM_MODULES["mariadb"]
OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@contextmanager
def connect_worker(folder: Path, broker: str, plugin: Module, connector: Mapping[str, str]) -> Iterator[None]:
    """A worker inside the block, which runs the connector of a plugin. Its log is in the folder."""
    plugins = folder / "plugins"
    (plugins / plugin.name).mkdir(parents=True)  # each folder there is a plugin
    for jar in _jars(plugin.name, [plugin]).iterdir():
        if not jar.name.startswith(OF_WORKER):
            (plugins / plugin.name / jar.name).symlink_to(jar)
    jars = connect_jars()
    _write(folder / "connector.properties", {"name": plugin.name, **connector})

    def build(port: int) -> Program:
        worker = {
            "bootstrap.servers": broker,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "listeners": f"http://127.0.0.1:{port}",
            "offset.storage.file.filename": str(folder / "offsets"),
            "plugin.path": str(plugins),
            "plugin.discovery": "service_load",
        }
        _write(folder / "worker.properties", worker)
        main = ("org.apache.kafka.connect.cli.ConnectStandalone", "worker.properties", "connector.properties")
        argv = (find_java(), *OPTIONS, "-cp", f"{jars}/*", *main)
        return Program(name="Kafka Connect", directory=folder, argv=argv, stop_signal=signal.SIGTERM)

    process, _ = start_and_wait(build, start_owned, None, lambda *_: True)
    try:
        yield
    finally:
        process.stop()


def _jars(name: str, modules: list[Module]) -> Path:
    def fill(directory: Path) -> None:
        ivy = Ivy(name, jars_of_pyspark(), silent)
        ivy.fetch(modules, directory, types="jar bundle")
        ivy.clear()

    return fetch_once(f"{name}-{modules[0].version}", fill, silent)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

"""What the embedded parts and Spark fetch: sets of jars in the user's cache, by the Ivy inside PySpark, which needs Java.

Each function for a set returns its directory. The first call needs the network and reports each step to `progress` as one line.
Later calls look at one directory only. Ivy asks its own default repository (Maven Central); IVY_SETTINGS may name an Ivy settings
file with another one.

Promises: a set is complete or absent, and several processes at once fetch it only once. Does not: ship a jar.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from processor.errors import PartError

ShowProgress = Callable[[str], None]


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/statestore`, else `~/.cache/statestore`, else a temporary directory; the first that this user can write.

    Raises PartError if the temporary directory belongs to another user.
    """
    for directory in _homes():
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK | os.X_OK):
                return directory.resolve()
    return _private(Path(tempfile.gettempdir()) / f"statestore-cache-{os.getuid()}")


def _homes() -> Iterator[Path]:
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]) / "statestore"
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"]) / ".cache" / "statestore"


def kept_set(name: str) -> Path | None:
    """The directory of a set that is here already; None without one. This user need not be able to write it: an image or an
    administrator may bring it."""
    return next((sets / name for home in _homes() if ((sets := home / "jars") / name).is_dir()), None)


def _private(directory: Path) -> Path:
    """Make a directory with a known name in a place where all users may write. Raises PartError if another user owns it.

    Java runs the jars in it, so another user must not be able to write them.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink() or directory.stat().st_uid != os.getuid():
        raise PartError(
            "The cache", f"{directory} belongs to another user", "set XDG_CACHE_HOME to a directory that belongs to you"
        )
    return directory.resolve()


def fetch_once(name: str, fill: Callable[[Path], None], progress: ShowProgress) -> Path:
    """The directory `name` of a cache. If it is absent, `fill` makes its files first, in the cache of `cache_directory`.

    1. One process at a time holds the lock of the name. The other processes wait, and then find the directory.
    2. The process fills a temporary directory next to it, which no other process reads.
    3. A rename gives the directory its name: no process ever sees an incomplete set.
    """
    if (kept := kept_set(name)) is not None:
        return kept.resolve()
    sets = cache_directory() / "jars"
    target = sets / name
    if target.is_dir():
        return target
    sets.mkdir(exist_ok=True)
    with locked(sets / f".{name}.lock", lambda: progress(f"{name}: waiting for another process that fetches it")):  # 1
        for abandoned in sets.glob(f".{name}.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        if not target.is_dir():
            new_set = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=sets))
            try:
                fill(new_set)  # 2
                new_set.rename(target)  # 3
            finally:
                shutil.rmtree(new_set, ignore_errors=True)
    return target


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an advisory lock between processes. Calls `waiting` once if another process holds the lock."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


INSTALL_SPARK = (
    "`make setup` in a checkout, else pip install 'statestore[spark,local]' (400 MB to download, 1 to 4 minutes)"
)
OLDEST_JAVA = 17  # Kafka 4 brokers need it; Spark 3.5 and 4 run on it
INSTALL_JAVA = f"install a JDK or JRE {OLDEST_JAVA} or newer, and set JAVA_HOME to it or put its java on PATH"
JVM_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""With the C1 compiler and the serial collector the port of Kafka opens after 2.2 s instead of 4.6 s, and DynamoDB Local needs
6.6 s of CPU for its start and 1,000 writes, instead of 13.6 s (2 cores)."""


def find_java() -> str:
    """The path of a java of version 17 or newer, from JAVA_HOME, else PATH. Raises PartError."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = str(Path(home) / "bin" / "java")
        if shutil.which(java) is None:
            raise PartError("Java", f"JAVA_HOME is {home}, which has no bin/java", INSTALL_JAVA)
    else:
        java = shutil.which("java") or ""
        if not java:
            raise PartError("Java", "there is no java on PATH, and JAVA_HOME is not set", INSTALL_JAVA)
    major = _major_version(java)
    if major < OLDEST_JAVA:
        raise PartError("Java", f"{java} is version {major}, which is too old", INSTALL_JAVA)
    return java


@functools.cache
def _major_version(java: str) -> int:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PartError("Java", f"{java} does not run ({error})", INSTALL_JAVA) from error
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    if match is None:
        raise PartError(
            "Java", f"{java} -version prints no version: {(run.stderr + run.stdout).strip()[:200]}", INSTALL_JAVA
        )
    return int(match[1])


PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
FETCH_ATTEMPTS = 2
FILES_PER_LINE = 10  # files for each line of progress
LINE_SECONDS = 10  # the longest time without a line of progress
NOT_FOUND = ": not found"


class NotInRepository(PartError):
    """The repository does not have the module; another attempt does not help."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a Maven repository."""

    organisation: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


class Ivy:
    """Ivy with a working directory of its own in our cache; it does not use ~/.ivy2. One process at a time may use a name."""

    def __init__(self, name: str, pyspark_jars: Path, progress: ShowProgress) -> None:
        self._name = name
        self._jars = pyspark_jars
        self._progress = progress
        self._home = cache_directory() / "ivy" / name

    def fetch(self, modules: list[Module], into: Path, *, types: str = "", transitive: bool = True) -> None:
        """Copy the files of the modules into a directory; if `transitive`, the files of their dependencies too.

        Raises NotInRepository, or PartError after a second attempt.
        """
        for attempt in range(1, FETCH_ATTEMPTS + 1):
            code, output = self._run(modules, into, types, transitive)
            if code == 0:
                return
            if any(NOT_FOUND in line for line in output):
                raise NotInRepository(
                    self._name, f"{', '.join(map(str, modules))} is not in the repository", "try another version"
                )
            if attempt < FETCH_ATTEMPTS:
                self._progress(f"{self._name}: the download failed, trying again")
        last_lines = "\n".join(line for line in output if line.strip())[-1500:]
        cure = "check the network, or set IVY_SETTINGS to an Ivy settings file that names your repository"
        raise PartError(self._name, f"its jars could not be fetched; Ivy printed:\n{last_lines}", cure)

    def description(self, module: Module) -> Path:
        """The path of Ivy's own description of a fetched module: its dependencies and their versions."""
        return self._home / "cache" / module.organisation / module.name / f"ivy-{module.version}.xml"

    def clear(self) -> None:
        """Remove Ivy's own copies of the files. Until then a second attempt needs no download of them."""
        shutil.rmtree(self._home, ignore_errors=True)

    def _run(self, modules: list[Module], into: Path, types: str, transitive: bool) -> tuple[int, list[str]]:
        self._home.mkdir(parents=True, exist_ok=True)
        wanted = self._home / "wanted.xml"
        wanted.write_text(_ivy_description(self._name, modules, transitive), encoding="utf-8")
        command = [find_java(), f"-Duser.home={self._home}", "-cp", f"{self._jars}/*", "org.apache.ivy.Main"]
        command += ["-cache", str(self._home / "cache"), "-ivy", str(wanted), "-confs", "default"]
        command += ["-retrieve", f"{into}/{PATTERN}"]
        command += ["-types", *types.split()] if types else []
        if os.environ.get("IVY_SETTINGS"):
            command += ["-settings", os.environ["IVY_SETTINGS"]]
        output: list[str] = []
        with (
            every(
                LINE_SECONDS, lambda seconds: self._progress(f"{self._name}: {ivy_progress(output)} after {seconds} s")
            ),
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run,
        ):
            assert run.stdout is not None
            try:
                for line in run.stdout:
                    output.append(line.rstrip())
                    self._report(output)
            except BaseException:
                run.kill()
                raise
        return run.returncode, output

    def _report(self, output: list[str]) -> None:
        if "[SUCCESSFUL" in output[-1]:
            done = _files(output)
            if done % FILES_PER_LINE == 0:
                self._progress(f"{self._name}: {ivy_progress(output)}")


def ivy_progress(output: list[str]) -> str:
    """What Ivy has done, by its output: first it asks for all descriptions, then it fetches the files."""
    if not (done := _files(output)):
        return f"{sum('found ' in line for line in output)} modules found"
    kilobytes = sum(int(size) for line in output for size in re.findall(r"\.\. \((\d+)kB\)", line))
    return f"{done} files, {kilobytes / 1024:.0f} MB"


def _files(output: list[str]) -> int:
    """How many files Ivy has fetched, by its output."""
    return sum("[SUCCESSFUL" in line for line in output)


@contextmanager
def every(seconds: int, say: Callable[[int], None]) -> Iterator[None]:
    """Within the block, calls `say` every `seconds` seconds, with the seconds since the beginning."""
    ended = Event()

    def repeat() -> None:
        passed = seconds
        while not ended.wait(seconds):
            say(passed)
            passed += seconds

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _ivy_description(name: str, modules: list[Module], transitive: bool) -> str:
    lines = [
        f"<dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f' rev={quoteattr(module.version)} conf="default->default" transitive="{str(transitive).lower()}"/>'
        for module in modules
    ]
    return (
        f'<ivy-module version="2.0"><info organisation="statestore" module={quoteattr(name)}/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


KAFKA_MODULE = Module("org.apache.kafka", "kafka_2.13", "4.1.0")
KAFKA_LOG_MODULE = Module("org.slf4j", "slf4j-simple", "1.7.36")  # without this module the broker writes no log
DYNAMODB_LOCAL_MODULE = Module("com.amazonaws", "DynamoDBLocal", "2.6.1")
OPENSEARCH_MODULES = [
    Module("org.opensearch", "opensearch", "2.19.0"),
    Module("org.opensearch.plugin", "transport-netty4-client", "2.19.0"),
    Module(
        "org.apache.logging.log4j", "log4j-core", "2.21.0"
    ),  # the version of the log4j-api that the first module brings
]
CONNECT_MODULES = [
    *(Module("org.apache.kafka", f"connect-{name}", "4.1.0") for name in ("runtime", "json", "transforms")),
    KAFKA_LOG_MODULE,
]
DEBEZIUM_MODULES = {
    "postgresql": Module("io.debezium", "debezium-connector-postgres", "3.6.3.Final"),
    "mariadb": Module("io.debezium", "debezium-connector-mariadb", "3.5.0.Final"),
}
"""Debezium's connector for each kind of source."""
SPARK_ORGANISATION = "org.apache.spark"


def silent(_: str) -> None:
    """A `ShowProgress` that shows nothing."""


def _jars(name: str, title: str, megabytes: int, modules: list[Module], types: str, progress: ShowProgress) -> Path:
    """The set of these modules, and of all that they need. The version of the first module is in its name."""

    def fill(directory: Path) -> None:
        ivy = Ivy(name, jars_of_pyspark(), progress)
        progress(f"{title}: fetching {megabytes} MB of jars, once (about 40 s)")
        ivy.fetch(modules, directory, types=types)
        ivy.clear()

    return fetch_once(f"{name}-{modules[0].version}", fill, progress)


def kafka_broker_jars(progress: ShowProgress = silent) -> Path:
    """The jars of the Kafka broker: 46 jars, 43 MB."""
    return _jars("kafka-broker", "Kafka broker", 43, [KAFKA_MODULE, KAFKA_LOG_MODULE], "jar bundle", progress)


def dynamodb_local_jars(progress: ShowProgress = silent) -> Path:
    """The files of DynamoDB Local: 85 files, 51 MB, with native libraries. Its licence allows use, not redistribution."""
    return _jars("dynamodb-local", "DynamoDB Local", 51, [DYNAMODB_LOCAL_MODULE], "", progress)


def opensearch_jars(progress: ShowProgress = silent) -> Path:
    """The jars of OpenSearch: 53 jars, 44 MB."""
    return _jars("opensearch", "OpenSearch", 44, OPENSEARCH_MODULES, "jar bundle", progress)


def connect_jars(progress: ShowProgress = silent) -> Path:
    """The jars of a worker of Kafka Connect: 59 jars, 33 MB."""
    return _jars("connect-worker", "Kafka Connect", 33, CONNECT_MODULES, "jar bundle", progress)


def debezium_jars(kind: str, progress: ShowProgress = silent) -> Path:
    """The jars of Debezium's connector for a kind of source: about 30 MB."""
    module = DEBEZIUM_MODULES[kind]
    return _jars(module.name, f"Debezium for {kind}", 30, [module], "jar bundle", progress)


def spark_kafka_jars(progress: ShowProgress = silent) -> Path:
    """The Kafka connector of the installed PySpark: the four jars that PySpark does not contain.

    The names of PySpark's own jars give the versions of Scala and of Spark. If the repository does not have the exact
    release, this function takes the next older patch of the same minor version. For the token provider it also tries the
    first release of the major version: the one of 4.0.0 works with the connector of 4.1.1.
    """
    pyspark_jars = jars_of_pyspark()
    scala, spark = _spark_version(pyspark_jars)

    def fill(directory: Path) -> None:
        progress(f"Kafka connector of Spark {spark}: fetching 4 jars, once")
        ivy = Ivy(f"spark-kafka-{spark}", pyspark_jars, progress)
        older = _same_minor(spark)
        connector = _fetch_first(ivy, f"spark-sql-kafka-0-10_{scala}", older, directory)
        first_of_major = f"{spark.split('.')[0]}.0.0"
        _fetch_first(ivy, f"spark-token-provider-kafka-0-10_{scala}", [*older, first_of_major], directory)
        needed = [_dependency(ivy, connector, "kafka-clients"), _dependency(ivy, connector, "commons-pool2")]
        ivy.fetch(needed, directory, types="jar", transitive=False)
        ivy.clear()

    return fetch_once(_spark_kafka_set(scala, spark), fill, progress)


def has_spark_kafka_jars() -> bool:
    """Whether the set of `spark_kafka_jars` is here already. Fetches nothing. Raises PartError without PySpark."""
    return kept_set(_spark_kafka_set(*_spark_version(jars_of_pyspark()))) is not None


def _spark_kafka_set(scala: str, spark: str) -> str:
    return f"spark-kafka-{scala}-{spark}"


def jars_of_pyspark() -> Path:
    """The jars of the installed PySpark. Raises PartError if it is not installed."""
    found = importlib.util.find_spec("pyspark")
    places = [Path(place) / "jars" for place in (found.submodule_search_locations or [])] if found else []
    for place in places:
        if any(place.glob("ivy-*.jar")):
            return place
    raise PartError(
        "Jars",
        "PySpark is not installed, and its Ivy is needed to fetch the jars",
        INSTALL_SPARK,
    )


def _spark_version(jars: Path) -> tuple[str, str]:
    """The versions of Scala and of Spark, e.g. ("2.13", "4.1.1"), from the name of the jar of spark-core."""
    for jar in jars.glob("spark-core_*.jar"):
        match = re.fullmatch(r"spark-core_([\d.]+)-([\d.]+)\.jar", jar.name)
        if match:
            return match[1], match[2]
    raise PartError("Kafka connector of Spark", f"{jars} has no released spark-core", "install a released PySpark")


def _same_minor(version: str) -> list[str]:
    """The version and the older patches of its minor version, newest first."""
    major, minor, patch = version.split(".")
    return [f"{major}.{minor}.{older}" for older in range(int(patch), -1, -1)]


def _fetch_first(ivy: Ivy, name: str, versions: list[str], directory: Path) -> Module:
    """Fetch the first of the versions that the repository has. Raises PartError if the repository has none."""
    for version in versions:
        module = Module(SPARK_ORGANISATION, name, version)
        try:
            ivy.fetch([module], directory, types="jar", transitive=False)
        except NotInRepository:
            continue
        return module
    raise PartError(name, f"none of {', '.join(versions)} is in the repository", "install another PySpark")


def _dependency(ivy: Ivy, module: Module, name: str) -> Module:
    """A dependency of a fetched module, with the version that the module declares."""
    for entry in ElementTree.parse(ivy.description(module)).iter("dependency"):
        if entry.get("name") == name:
            return Module(entry.get("org", ""), name, entry.get("rev", ""))
    raise PartError(module.name, f"{module.version} declares no {name}", "report this with the version of PySpark")

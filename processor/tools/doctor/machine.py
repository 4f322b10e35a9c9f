"""This machine: Python, Spark, Java, the jars of Spark's Kafka connector, and settings that are valid but a risk.

And the checkpoint, as far as this machine sees it without Spark; whether registry, table and checkpoint belong together.
"""

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from processor.engine.protocol.identity import IDENTITY, IDENTITY_FILE, TRACES, check_binding, identity_in, is_restored
from processor.environment.settings.settings import mistyped_variables
from processor.finding import Checks, Finding, NothingToCheck, failure, ok, warning
from processor.tools.doctor.context import CheckContext
from processor.tools.doctor.table import existing_registry
from registry.model import Binding

MACHINE = Checks()
OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
"""The newest Python that the tests run with."""
OLDEST_SPARK = (3, 5, 4)
TESTED_SPARK = ("3.5", "4.0", "4.1")
"""The minor versions that the tests of the job run with."""
SPARK_3_PYTHON = (3, 12)
"""The newest Python of Spark 3."""
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in a process that spark-submit or the platform started."""
SHORTEST_WAIT = 1.0
LONGEST_WAIT = 60.0
FEWEST_MARKER_DAYS = 7
"""A dead letter waits for a person: over a weekend, and until the definitions are correct."""


def python_version() -> tuple[int, int]:
    """The version of this Python."""
    return sys.version_info[:2]


def spark_version() -> str | None:
    """The version of the installed PySpark; None without one."""
    found = importlib.util.find_spec("pyspark")
    for place in (found.submodule_search_locations or []) if found else []:
        with suppress(OSError):
            match = re.search(r"__version__\b[^=]*= *['\"](.+?)['\"]", Path(place, "version.py").read_text())
            return match[1] if match else None
    return None


def java_path() -> str:
    """The path of a Java that fits. Raises PartError."""
    from processor.environment.programs.downloads import find_java

    return find_java()


def has_connector() -> bool:
    """Whether the jars of Spark's Kafka connector are on this machine. Raises PartError."""
    from processor.environment.programs.downloads import has_spark_kafka_jars

    return has_spark_kafka_jars()


def variables() -> Mapping[str, str]:
    """The environment."""
    return os.environ


@MACHINE.check("python", "the version of Python", cure="install Python 3.11")
def check_python(around: CheckContext) -> Iterator[Finding]:
    """The version of Python, alone and with the installed Spark."""
    version, spark = around.ask(python_version), around.ask(spark_version)
    shown = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        yield failure(f"Python {shown} is too old", "install Python 3.11 or newer, on the driver and on the executors")
    elif spark is not None and spark.startswith("3.") and version > SPARK_3_PYTHON:
        yield failure(f"Spark {spark} does not run with Python {shown}", "use Python 3.11 or 3.12, or Spark 4")
    elif version > NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        yield warning(f"no test of statestore has run on Python {shown}", f"use Python 3.11 to {newest}")
    else:
        yield ok(f"Python {shown}")


@MACHINE.check("spark", "the version of PySpark", cure="install PySpark 3.5 or 4")
def check_spark(around: CheckContext) -> Iterator[Finding]:
    """The version of PySpark."""
    spark = around.ask(spark_version)
    if spark is None:
        cure = "pip install 'statestore[spark]' here, or run the job where the platform brings Spark"
        yield warning("PySpark is not installed: no job can start on this machine", cure)
        return
    numbers = tuple(int(number) for number in spark.split(".")[:3] if number.isdigit())
    if numbers < OLDEST_SPARK:
        yield failure(f"Spark {spark} is too old", "install Spark 3.5.4 or newer")
    elif not spark.startswith(TESTED_SPARK):
        yield warning(f"no test of statestore runs with Spark {spark}", f"use Spark {', '.join(TESTED_SPARK)}")
    else:
        yield ok(f"Spark {spark}")


@MACHINE.check("java", "the Java of a local Spark", cure="install Java 17, set JAVA_HOME")
def check_java(around: CheckContext) -> Iterator[Finding]:
    """The Java of a local Spark."""
    _need_local_spark(around)
    yield ok(around.ask(java_path))


@MACHINE.check("jars", "Spark's Kafka connector", cure="install a released PySpark")
def check_jars(around: CheckContext) -> Iterator[Finding]:
    """The jars of the Kafka connector, which the first start of a local Spark fetches."""
    _need_local_spark(around)
    if around.ask(has_connector):
        yield ok("the Kafka connector of Spark is here")
    else:
        cure = "let this machine reach Maven Central once, or name another repository by IVY_SETTINGS"
        yield warning("the Kafka connector of Spark is not here yet: the first start fetches 4 jars", cure)


@MACHINE.check("variables", "names of variables", cure="correct the variables")
def check_variables(around: CheckContext) -> Iterator[Finding]:
    """The variables that look like settings, and are none."""
    found = [
        warning(f"no setting reads the variable {name}", f"did you mean {meant}? Rename the variable, or unset it")
        for name, meant in mistyped_variables(around.ask(variables)).items()
    ]
    yield from found or [ok("no variable STATESTORE_... has a mistyped name")]


@MACHINE.check("waits", "W and S", cure="correct --wait-seconds")
def check_waits(around: CheckContext) -> Iterator[Finding]:
    """The time that the job gives to the indexes of the table."""
    wait = around.settings.wait_seconds
    if wait < SHORTEST_WAIT and not around.embedded:
        text = f"W is {wait:g} s: an index may be later, and then a document stays old until its rows change again"
        yield warning(text, f"--wait-seconds {5}, or at least {SHORTEST_WAIT:g}")
    elif wait > LONGEST_WAIT:
        text = f"W is {wait:g} s: each start after a failure waits for W, and each correction"
        yield warning(text, f"--wait-seconds {5}, or at most {LONGEST_WAIT:g}")
    else:
        yield ok(f"W is {wait:g} s, S is {around.settings.settle_seconds:g} s")


@MACHINE.check("markers", "marker_days", cure="correct --marker-days")
def check_markers(around: CheckContext) -> Iterator[Finding]:
    """The time for which deleted rows are remembered."""
    days = around.settings.marker_days
    if days < FEWEST_MARKER_DAYS:
        text = f"marker_days is {days}: the job refuses to replay a dead letter that is older"
        yield warning(text, f"--marker-days {FEWEST_MARKER_DAYS} or more; 30 is the default")
    else:
        yield ok(f"deleted rows are remembered for {days} days")


def is_cluster(around: CheckContext) -> bool:
    """Whether the executors are processes of other machines, as far as the settings tell."""
    return bool(around.settings.spark_master) and not around.settings.spark_master.startswith("local")


def _need_local_spark(around: CheckContext) -> None:
    if around.ask(spark_version) is None:
        raise NothingToCheck("PySpark is not installed")
    if is_cluster(around) or (SUBMITTED in os.environ and not around.settings.spark_master):
        raise NothingToCheck("the platform brings Java and the connector")


CHECKPOINT = Checks()
BEGAN = "sources/0/0"
FORMAT_LINE = "v1"
"""The first line of Spark's files in `offsets` and `commits`."""


@CHECKPOINT.check("checkpoint", "the folder of the checkpoint", cure="give another --checkpoint")
def check_checkpoint(around: CheckContext) -> Iterator[Finding]:
    """Whether the job can make the checkpoint, or write into it."""
    if not around.settings.checkpoint:
        if around.embedded:
            raise NothingToCheck("an embedded job without --checkpoint takes a new folder")
        yield failure("the settings name no checkpoint", "--checkpoint DIR, or STATESTORE_CHECKPOINT")
        return
    folder = _folder(around)
    if is_cluster(around):
        text = f"{folder} is a local folder, and Spark is {around.settings.spark_master}: other machines do not see it"
        yield warning(text, "give a path that all machines see, such as s3://BUCKET/PATH")
    present = next(place for place in (folder, *folder.parents) if place.exists())
    if not present.is_dir():
        yield failure(f"{present} is a file", "give another --checkpoint")
    elif not os.access(present, os.W_OK | os.X_OK):
        yield failure(
            f"this user may not write in {present}", "let this user write there, or give another --checkpoint"
        )
    elif wrong := _unknown_format(folder):
        yield failure(
            f"{wrong} is not of Spark's format {FORMAT_LINE}", "give a new --checkpoint: the job reads all topics"
        )
    elif not is_cluster(around):
        yield ok(f"{folder} {'is there' if folder.exists() else 'does not exist yet, and can be made'}")


@CHECKPOINT.check(
    "identity",
    "whether registry, table and checkpoint belong together",
    cure="correct --job, --table, --registry-schema or --checkpoint",
    needs=("registry", "permissions"),
)
def check_identities(around: CheckContext) -> Iterator[Finding]:
    """Whether the job's name, the table and the checkpoint belong to the registry."""
    existing_registry(around)
    settings, store = around.settings, around.store
    state = around.table_state
    item = store.get([IDENTITY]).get(IDENTITY) if state else None
    traces = state and any(store.page(pk, None, 1).items for pk in TRACES)
    bound = around.registry.binding()
    check_binding(
        bound,
        Binding(identity="", job=settings.job, table=settings.place),
        table=identity_in(item) if state else None,
        used=bool(traces),
        restored=is_restored(item, state.created if state else None),
        checkpoint=_identity(around),
        path=settings.checkpoint,
    )
    yield ok(
        "the table and the checkpoint belong to the registry" if bound.table else "no job has run by this registry"
    )


def _folder(around: CheckContext) -> Path:
    """The folder of a local checkpoint."""
    scheme, _, path, *_ = urlsplit(around.settings.checkpoint)
    if scheme not in ("", "file"):
        text = (
            f"only Spark can look at {around.settings.checkpoint}: the start of the job says if it cannot write there"
        )
        raise NothingToCheck(text)
    return Path(unquote(path) if scheme else around.settings.checkpoint).absolute()


def _unknown_format(folder: Path) -> Path | None:
    """A file of the checkpoint that Spark does not read."""
    for name in ("offsets", "commits"):
        for file in sorted((folder / name).glob("[0-9]*")):
            if file.read_text(encoding="utf-8", errors="replace").partition("\n")[0] != FORMAT_LINE:
                return file
    return None


def _identity(around: CheckContext) -> str | None:
    """The id in the checkpoint; empty for a checkpoint without one, None where no stream has begun, or only Spark sees it."""
    try:
        folder = _folder(around)
    except NothingToCheck:
        return None
    if not around.settings.checkpoint or not (folder / BEGAN).exists():
        return None
    file = folder / IDENTITY_FILE
    return str(json.loads(file.read_text(encoding="utf-8"))["id"]) if file.exists() else ""

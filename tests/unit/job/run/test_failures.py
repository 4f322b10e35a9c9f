"""Every failure has one line for the operator."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from processor.errors import TopicRefused
from processor.job.run import run_job
from processor.job.run.outages import OUTAGES, error_line, outage_of
from processor.job.run.run_job import full_disk
from registry.errors import LeaseLost, RegistryMissing, RegistryUnreachable
from statestore.store import Terminal


class JvmError(Exception):
    """As py4j's: its text comes from the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError("no JVM")


def test_a_failure_whose_jvm_has_ended_has_a_line_too() -> None:
    assert error_line(JvmError()) == "the JVM of Spark has ended"


def test_the_line_is_the_error_of_the_python_worker() -> None:
    text = (
        "Job aborted\nTraceback (most recent call last):\n  File x, line 1, in y\n    z()\n"
        "processor.errors.ConfigError: entity user: no key\n"
    )
    assert error_line(RuntimeError(text)) == "entity user: no key"


def test_the_line_is_the_error_of_java_without_its_frames() -> None:
    text = "An error occurred while calling o59.create.\n: java.io.IOException: no folder /x\n\tat a.b.C.d(E.java:1)\n"
    assert error_line(RuntimeError(text)) == "java.io.IOException: no folder /x"


def test_a_failure_without_a_text_is_named_by_its_type() -> None:
    assert error_line(RuntimeError()) == "RuntimeError"


def test_the_line_is_the_last_error_of_a_chain() -> None:
    chain = (
        "Traceback (most recent call last):\n  File x\nbotocore.exceptions.ClientError: broke\n\nThe cause of ...\n\n"
    )
    text = f"{chain}Traceback (most recent call last):\n  File y\nstatestore.store.Transient: table t: try again\n"
    assert error_line(RuntimeError(text)) == "table t: try again"


def test_a_full_disk_is_named_with_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"/state/checkpoint": 0, "/scratch": 9_000}
    monkeypatch.setattr(run_job, "disk_usage", lambda folder: SimpleNamespace(free=free[folder]))
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch,/other")
    reason = "java.io.IOException: No space left on device"
    assert full_disk(reason, "file:///state/checkpoint") == (
        "; the disk of --checkpoint, /state/checkpoint, has 0 bytes left: free space on it"
    )
    assert full_disk("java.io.IOException: no folder", "/state/checkpoint") == ""


TASK = "Job aborted\nTraceback (most recent call last):\n  File x, line 1, in y\n    z()\n{}\n"


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (
            "registry.errors.RegistryUnreachable: no connection to the registry at h:5432/states (--registry)",
            "registry",
        ),
        ("registry.errors.RegistryBusy: another edit holds the registry", "registry"),
        ("statestore.store.Transient: table t: writing: connection refused", "store"),
        ("statestore.store.Throttled: table t: writing: throttled", "store"),
        ("processor.errors.SchemaRegistryAway: the schema registry http://h does not answer", "schema registry"),
        ("processor.errors.KafkaError: the transaction failed: Timed out", "broker"),
    ],
)
def test_the_failure_of_a_task_over_a_part_that_does_not_answer_is_an_outage(error: str, part: str) -> None:
    outage = outage_of(RuntimeError(TASK.format(error)), "the batch")
    assert outage is not None
    assert (outage.part, outage.throttled) == (part, "Throttled" in error)
    assert str(outage) == f"the batch failed: {error.partition(': ')[2]}"


def test_the_same_failure_of_the_driver_is_an_outage() -> None:
    found = outage_of(RegistryUnreachable("no connection"), "the work between batches")
    assert (str(found), found and found.part) == ("the work between batches failed: no connection", "registry")


@pytest.mark.parametrize(
    "error",
    ["processor.errors.Fenced: generation 1 lost its lease", "statestore.store.Terminal: no table", "ValueError: x"],
)
def test_a_failure_that_lasts_is_no_outage(error: str) -> None:
    assert outage_of(RuntimeError(TASK.format(error)), "the batch") is None


@pytest.mark.parametrize(
    "error",
    [TopicRefused("topic", "too large"), LeaseLost("another run"), RegistryMissing("none"), Terminal("no table")],
)
def test_an_error_that_needs_a_person_is_no_outage(error: Exception) -> None:
    assert outage_of(error, "the batch") is None


def test_every_name_of_an_outage_is_that_of_an_error() -> None:
    """The failure of a task comes as text, so the list has names."""
    for name in OUTAGES:
        module, _, error = name.rpartition(".")
        assert issubclass(getattr(import_module(module), error), Exception)

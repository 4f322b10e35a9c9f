"""The processes in which the tasks of a job run."""

import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipimport import zipimporter

import pytest

from processor.job.run.run_job import run_job

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


if sys.version_info < (3, 12):  # a newer Python itself reads an archive again only when it must: nothing to prevent

    def test_a_worker_that_ran_a_task_does_not_read_its_archives_again(scene: Scene, rows: SimpleNamespace) -> None:
        def archives_read(_: int) -> list[str]:
            """The archives whose directory Python reads when PySpark asks it to look again."""
            importers = [importer for importer in sys.path_importer_cache.values() if isinstance(importer, zipimporter)]
            before = [importer._files for importer in importers]  # type: ignore[attr-defined]
            importlib.invalidate_caches()
            after = [importer._files for importer in importers]  # type: ignore[attr-defined]
            assert importers, "PySpark's own archives are on the path"
            return [i.archive for i, old, new in zip(importers, before, after, strict=True) if new is not old]

        scene.produce(rows.user(0, "ada"))
        with scene.opened() as job:
            run_job(job, once=True)
            assert job.spark.sparkContext.parallelize([0], 1).map(archives_read).collect() == [[]]


def test_a_new_worker_has_the_modules_of_a_task_before_its_first_task(scene: Scene) -> None:
    def daemon(_: int) -> bytes:
        return Path(f"/proc/{os.getppid()}/cmdline").read_bytes()

    with scene.opened() as job:
        (command,) = job.spark.sparkContext.parallelize([0], 1).map(daemon).collect()
    assert b"processor.job.run.worker_daemon" in command

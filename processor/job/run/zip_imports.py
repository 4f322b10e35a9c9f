"""Makes importing from archives cheap in Spark's Python workers.

PySpark's worker calls `importlib.invalidate_caches()` before each task. Below 3.12, Python then reads the directory of each
archive on its path again: pyspark.zip, py4j and the connector's jars, 0.1 s of CPU a task (CPython gh-103200, SPARK-54744).
"""

import sys
from zipimport import zipimporter


def keep_zip_directories() -> None:
    """Lets this process keep the directories of its archives. The archives of a running job never change, and a new
    archive has a new importer. Spark reuses its workers, so only the first task of each reads the archives."""
    if sys.version_info < (3, 12):
        zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]


def _keep(_: zipimporter) -> None:
    """Keeps what the importer knows."""

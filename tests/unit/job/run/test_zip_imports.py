"""Before each task PySpark's worker lets Python look at its archives again; ours keeps the directories that it has read."""

import importlib
import sys
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from processor.job.run.worker import keep_zip_directories


@pytest.fixture(autouse=True)
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11))  # later ones need no help
    monkeypatch.setattr(zipimporter, "invalidate_caches", zipimporter.invalidate_caches)  # restored after the test
    keep_zip_directories()


def test_an_archive_is_not_read_again(tmp_path: Path) -> None:
    importer = _archive(tmp_path / "one.zip", "kept")
    (tmp_path / "one.zip").unlink()
    importer.invalidate_caches()
    assert importer.is_package("kept") is False  # raises for a module that the importer does not know


def test_an_archive_that_spark_adds_later_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "later.zip")])
    _archive(tmp_path / "later.zip", "added_by_spark")
    importlib.invalidate_caches()
    assert importlib.import_module("added_by_spark")


def _archive(path: Path, module: str) -> zipimporter:
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", "")
    return zipimporter(str(path))

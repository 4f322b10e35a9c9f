"""What the set-up of a checkout prints of pip's work."""

from pathlib import Path

import pytest

from infra import set_up

DOWNLOADED = [
    "Collecting a",
    "  Downloading a-1-py3-none-any.whl.metadata (5 kB)",
    "  Downloading a-1-py3-none-any.whl (2.5 MB)",
]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  Installing build dependencies: started", "pip prepares a build"),
        ("  Building wheel for pyspark (pyproject.toml): started", "pip builds pyspark"),
        ("Installing collected packages: a, b, c", "pip installs 3 packages"),
        ("Collecting b", "1 packages, 3 MB downloaded"),
    ],
)
def test_the_progress_is_what_pip_does_and_how_much_it_has_downloaded(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "pip-unpack-1" / "a-1-py3-none-any.whl"
    archive.parent.mkdir()
    archive.write_bytes(bytes(3 << 20))
    monkeypatch.setattr(set_up, "DOWNLOADS", tmp_path)
    assert set_up._progress([*DOWNLOADED, line]) == shown


def test_the_total_counts_packages_and_downloads_without_their_metadata() -> None:
    lines = [*DOWNLOADED, "  Downloading b-1.tar.gz (317.4 MB)", "Successfully installed a-1 b-1"]
    assert set_up._total(lines) == "2 packages installed, 320 MB downloaded"


def test_the_environment_of_a_copied_checkout_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (set_up.PYTHON, *set_up.STAMPS["full"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("/of/the/original\n")
    assert not set_up._usable()

"""The errors about wrong settings: each names where the setting came from, and what would be right."""

from dataclasses import fields
from pathlib import Path

import pytest

from processor.cli.main import main
from processor.environment.settings.settings import Settings

Printed = pytest.CaptureFixture[str]


def missing(flag: str, variable: str) -> str:
    """The error, whose cure is the embedded parts: tests/unit/cli/test_main.py has its words."""
    return f"--{flag} is missing: give it, or set STATESTORE_{variable}; or add --embedded, "


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lease-seconds", "1"], "--lease-seconds: 1 is out of range; it must be at least 5"),
        (["--batch-size", "9" * 30], f"--batch-size: {'9' * 30} is out of range; it must be from 1 to 2147483647"),
        (["--walk-rate", "9" * 30], f"--walk-rate: {'9' * 30} is out of range; it must be from 0 to 2147483647"),
        (["--wait-seconds", "1e300"], "--wait-seconds: 1e+300 is out of range; it must be from 0 to 2147483647"),
        (["--batch-size", "many"], "--batch-size: 'many' is not a whole number"),
        (
            ["--registry-schema", "No Schema"],
            "registry_schema: 'No Schema' is not a plain Postgres name; use a-z, 0-9 and _",
        ),
        (["--checkpoint", "c"], missing("bootstrap-servers", "BOOTSTRAP_SERVERS")),
        (["--bootstrap-servers", "b:1"], missing("checkpoint", "CHECKPOINT")),
        (["--to", "file"], "--to writes the published messages when the job has ended: add --once"),
        (["--settings", "no such file"], "the settings file no such file cannot be read: No such file or directory"),
    ],
)
def test_an_error_names_the_wrong_setting(words: list[str], message: str, capsys: Printed) -> None:
    assert main(["run", *words]) == 1
    assert capsys.readouterr().err.startswith(f"statestore run: {message}")


def test_an_error_names_the_wrong_variable_or_the_wrong_line_of_the_settings_file(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_SLOTS", "21")
    assert main(["run"]) == 1
    message = "statestore run: STATESTORE_SLOTS: 21 is out of range; it must be from 1 to 20\n"
    assert capsys.readouterr().err == message
    monkeypatch.delenv("STATESTORE_SLOTS")
    file = tmp_path / "settings.toml"
    file.write_text("tabel = 'x'\n")
    assert main(["run", "--settings", str(file)]) == 1
    assert capsys.readouterr().err == f"statestore run: {file}: there is no setting `tabel`; did you mean `table`?\n"
    file.write_text("zzzz = 'x'\n")
    assert main(["run", "--settings", str(file)]) == 1
    known = ", ".join(sorted(field.name for field in fields(Settings)))
    message = f"statestore run: {file}: there is no setting `zzzz`; the settings are {known}\n"
    assert capsys.readouterr().err == message

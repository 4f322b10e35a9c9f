"""`statestore local produce` without a broker that runs. The page about operation runs it with one."""

from pathlib import Path
from typing import Any

from processor.cli.main import main


def test_produce_without_parts_names_the_command_that_starts_them(tmp_path: Path, capsys: Any) -> None:
    assert main(["local", "produce", "topics.jsonl", "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "Kafka does not run; start it with `statestore local up`\n"

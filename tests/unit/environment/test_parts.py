"""What `local up` says of the parts that it starts, without a part."""

from pathlib import Path
from typing import Any

import pytest

from processor.environment import embedded
from processor.environment.programs.program import DetachedProcess, EmbeddedPart, PartProcess, PartsState


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (1001, 1002, ["another program listens at port 1001: kafka has port 1002 now"]),
        (1001, 1001, []),
    ],
)
def test_a_part_that_comes_back_at_another_port_is_named(
    before: int, now: int, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process: Any = DetachedProcess(pid=1, started="", stop_signal=15)
    part = EmbeddedPart(name="Kafka", endpoint=f"127.0.0.1:{now}", process=process)
    monkeypatch.setattr(embedded, "part_functions", lambda: {"kafka": lambda *_, **__: part})
    state = PartsState(tmp_path / "state.json")
    state._put("kafka", PartProcess(process=process, endpoint=f"127.0.0.1:{before}"))
    lines: list[str] = []
    embedded._start(["kafka"], tmp_path, state, lines.append)
    assert lines == said

"""`make bench-peers` reads the messages of each system, and counts the documents that differ from the answer of SQL."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("from_the_root")
REPOS: list[dict[str, Any]] = [
    {"owner": "b", "name": "two", "description": None},
    {"owner": "a", "name": "one", "description": "A, “tool”"},
]
PULL = {
    "repo": "one",
    "repo_owner": "a",
    "index": 7,
    "title": "Fix",
    "status": "open",
    "created_at": "2015-01-01T00:00:00Z",
}
DOCUMENT: dict[str, Any] = {
    "email": "o@x",
    "username": "o",
    "starred_repos": REPOS,
    "pull_requests": [PULL],
    "payment_verified": True,
}
EMPTY: dict[str, Any] = {
    "email": "o@x",
    "username": "o",
    "starred_repos": [],
    "pull_requests": [],
    "payment_verified": None,
}


@pytest.fixture
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


def test_pathways_removal_and_insertion_at_one_time_are_one_message(tmp_path: Path) -> None:
    from benchmarks.peers.documents import read_pathway

    empty = {"email": "o@x", "username": "o", "starred_repos": None, "pull_requests": None, "payment": None}
    stars = [[-2.0, "two", "b", None], [-1.0, "one", "a", "A, “tool”"]]
    full = {**empty, "starred_repos": stars, "pull_requests": [[-2.0, *PULL.values()]], "payment": [3, True]}
    changes = [
        {**empty, "diff": 1, "time": 2},
        {**full, "diff": 1, "time": 4},
        {**empty, "diff": -1, "time": 4},
        {**full, "diff": -1, "time": 6},
    ]
    file = _write(tmp_path, map(json.dumps, changes))
    assert _decoded(read_pathway(file)) == [("o@x", EMPTY), ("o@x", DOCUMENT), ("o@x", None)]


def test_a_row_of_flink_is_a_message_unless_it_takes_back_an_update(tmp_path: Path) -> None:
    from benchmarks.peers.documents import read_flink

    empty = json.dumps({**EMPTY, "starred_repos": None, "pull_requests": None})
    full = json.dumps({**DOCUMENT, "starred_repos": json.dumps(REPOS), "pull_requests": json.dumps([PULL])})
    lines = [f"+I[o@x, {empty}]", f"-U[o@x, {empty}]", f"+U[o@x, {full}]", f"-D[o@x, {full}]"]
    assert _decoded(read_flink(_write(tmp_path, lines))) == [("o@x", EMPTY), ("o@x", DOCUMENT), ("o@x", None)]


def test_the_last_message_of_each_user_counts() -> None:
    from benchmarks.peers.documents import Comparison, compare

    messages = [("o@x", dict), ("p@x", dict), ("o@x", lambda: DOCUMENT), ("p@x", None)]
    assert compare(iter(messages), {"o@x": DOCUMENT}, ordered=True) == Comparison(messages=4, documents=1, wrong=0)
    assert compare(iter(messages), {"o@x": EMPTY, "p@x": EMPTY}, ordered=True).wrong == 2


def test_lists_in_another_order_differ_only_where_order_counts() -> None:
    from benchmarks.peers.documents import compare

    def wrong(repos: list[dict[str, Any]], ordered: bool) -> int:
        messages = iter([("o@x", lambda: {**DOCUMENT, "starred_repos": repos})])
        return compare(messages, {"o@x": DOCUMENT}, ordered=ordered).wrong

    assert (wrong(REPOS[::-1], True), wrong(REPOS[::-1], False), wrong(REPOS[:1], False)) == (1, 0, 1)


def test_an_envelope_has_the_row_before() -> None:
    from benchmarks.peers.measure import envelopes

    key = {"owner": "a", "name": "one"}
    first, second = ({**key, "description": text} for text in ("A", "B"))
    lines = [{"topic": "repo", "key": key, "value": value} for value in (first, second, None)]
    marks = {"k": "repo#a#one", "table": "repo"}
    assert list(envelopes(lines)) == [
        {"before": None, "after": marks | first, "op": "c"},
        {"before": marks | first, "after": marks | second, "op": "u"},
        {"before": marks | second, "after": None, "op": "d"},
    ]


def test_the_cpu_of_a_process_that_outlives_its_parent_counts(tmp_path: Path) -> None:
    from benchmarks.peers.process_tree import cpu_of

    work = "import time\nwhile time.process_time() < 0.5: pass"
    parent = f"import subprocess, sys; print('begun'); subprocess.Popen([sys.executable, '-c', {work!r}])"
    assert cpu_of([sys.executable, "-c", parent], tmp_path / "output", tmp_path / "errors") >= 0.5
    assert (tmp_path / "output").read_text() == "begun\n"


@pytest.mark.rest
def test_a_peer_that_pip_cannot_install_has_a_reason(tmp_path: Path) -> None:
    from benchmarks.peers.environment import NotInstalled, peer_python

    with pytest.raises(NotInstalled, match="ERROR"):
        peer_python("nothing", str(tmp_path / "no-package"), home=tmp_path)


def test_the_table_names_each_system_and_the_reason_of_a_missing_one() -> None:
    from benchmarks.peers.documents import Comparison
    from benchmarks.peers.measure import PeerResult, format_peers

    result = PeerResult(
        title="Pathway",
        version="0.33.0 (Python 3.11.7)",
        events=1_000,
        cpu=[0.5, 0.25, 1.0],
        starts=[3.14],
        compared=Comparison(messages=400, documents=100, wrong=0),
        ordered=False,
        durable="nothing",
    )
    text = format_peers([result], {"Flink SQL": "no Java"})
    figures = "1,000 / 2,000 / 4,000 | 0.40 | 4.0 | 100 | 0, in any order of the lists | 3.1 | nothing |"
    assert f"| Pathway | 0.33.0 (Python 3.11.7) | 1,000 | {figures}" in text
    assert text.endswith("**Flink SQL** is not in the table: no Java")


def test_the_document_has_a_place_for_the_table() -> None:
    from benchmarks.peers.__main__ import BEGIN, END
    from benchmarks.run import DOCUMENT as PAGE
    from benchmarks.run import insert_tables

    assert "\nnew\n" in insert_tables(PAGE.read_text(encoding="utf-8"), "new", BEGIN, END)


def _decoded(messages: Any) -> list[tuple[str, Any]]:
    return [(email, decode and decode()) for email, decode in messages]


def _write(directory: Path, lines: Any) -> Path:
    file = directory / "messages"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file

"""A product's documents in an index of OpenSearch: readers find the last message of each root, whatever happens meanwhile."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.environment.programs.servers import start_opensearch
from processor.job.landing import search as module
from processor.job.landing.search import SearchClient, SearchTarget
from processor.job.landing.target import LandedMessage, LandingError
from tests.integration.landing.conftest import MAPPING, PRODUCT, SearchScene, make_topic

pytestmark = pytest.mark.rest


def test_readers_find_the_last_document_of_each_root(search: SearchScene) -> None:
    for n in range(10):
        search.publish(n, {"n": n, "name": f"person {n}", "big": 2**53 + 1})
    search.publish(3, {"n": 33, "name": "the third person"})
    search.publish(4, None)
    search.publish(11, {"n": 11}, product="city")
    tally = search.land().tally
    assert tally["foreign"] == 1
    del search.last['{"id":11}']
    assert search.table() == search.expected()
    (found,) = search.find({"match": {"name": "third"}})
    assert found["n"] == 33
    assert {name: found["statestore"][name] for name in ("key", "sequence", "product_version")} == {
        "key": '{"id":3}',
        "sequence": 2,
        "product_version": 3,
    }
    assert next(search.compare().lines()).startswith("equal 9, on the way 0, missing 0")


def test_a_redelivery_after_a_restart_brings_nothing_back(broker: str, tmp_path: Path) -> None:
    """The index itself forgets its deletes at a restart, which the index `plain` shows."""
    plain = "/plain/_doc/1?version_type=external&version="
    part = start_opensearch(tmp_path)
    try:
        scene = SearchScene(broker, part.endpoint, make_topic(broker))
        scene.ask("PUT", f"{plain}1", {"n": 1})
        scene.ask("DELETE", f"{plain}2")
        with pytest.raises(LandingError, match="version_conflict"):
            scene.ask("PUT", f"{plain}1", {"n": 1})
        scene.publish(1, {"n": 1}, partition=0)
        scene.publish(1, None, partition=0)
        scene.publish(2, {"n": 2})
        scene.land()
        scene.ask("POST", "/_flush")  # else the server reads its log of the last writes again
        part.stop()
        part = start_opensearch(tmp_path)
        scene.url = part.endpoint
        assert scene.ask("PUT", f"{plain}1", {"n": 1})["result"] == "created"
        scene.publish(1, {"n": 1}, sequence=1, partition=1)
        scene.land()
        assert scene.table() == {'{"id":2}': {"n": 2}}
        land_all_again(scene)
        assert scene.table() == scene.expected() == {'{"id":2}': {"n": 2}}
    finally:
        part.stop()


@pytest.mark.parametrize("after", [False, True])
def test_a_landing_dies_at_each_request(search: SearchScene, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """Before the server has the request, or after it has done its work."""
    monkeypatch.setattr("processor.job.landing.landing.BATCH", 7)
    exchange, left = SearchClient._exchange, [0]

    def dying(self: SearchClient, method: str, path: str, *rest: Any) -> tuple[int, bytes]:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise KeyboardInterrupt
        answer = exchange(self, method, path, *rest)
        if left[0] == 0:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(SearchClient, "_exchange", dying)
    for die_at in count(1):
        for n in range(10 * die_at, 10 * die_at + 10):
            search.publish(n % 20, None if n % 7 == 0 else {"n": "no number" if n % 11 == 0 else n})
        left[0] = die_at
        with suppress(KeyboardInterrupt):
            search.land()
            break  # so few requests end a landing
    assert die_at > 10
    left[0] = 0
    for n in range(20):
        search.publish(n, None if n % 3 == 0 else {"n": n})
    search.land()
    assert search.table() == search.expected()
    assert search.compare().right


def test_a_server_that_is_busy_gets_the_rest_later(search: SearchScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses a whole request with 503, then two writes of the next one with 429."""
    exchange, busy = SearchClient._exchange, [503, 429]
    rejected = {"status": 429, "error": {"type": "rejected_execution_exception", "reason": "queue is full"}}

    def half(self: SearchClient, method: str, path: str, *rest: Any) -> tuple[int, bytes]:
        if "_bulk" not in path or not busy:
            return exchange(self, method, path, *rest)
        if busy.pop(0) == 503:
            return 503, b"<html>Service Unavailable</html>"
        lines = rest[0].splitlines(keepends=True)
        status, data = exchange(self, method, path, b"".join(lines[:-4]), *rest[1:])
        return status, orjson.dumps({"items": [*orjson.loads(data)["items"], {"index": rejected}, {"index": rejected}]})

    with closing(search.target()) as target:
        target.open(search.topic)
    for n in range(5):
        search.publish(n, {"n": n})
    monkeypatch.setattr(SearchClient, "_exchange", half)
    assert search.land().tally["landed"] == 5
    assert busy == []
    assert search.table() == search.expected()
    troubles = [event for event in search.events if event.what in ("degraded", "recovered")]
    assert [event.what for event in troubles] == ["degraded", "recovered"]
    assert "takes no documents: 503: <html>Service Unavailable</html>" in troubles[0].text


def test_a_document_that_the_index_refuses(search: SearchScene) -> None:
    for n in range(5):
        search.publish(n, {"n": n})
    search.publish(2, {"n": "no number"})
    search.publish(7, {"n": "ada"})
    search.publish(8, [1])
    assert search.land().tally["refused"] == 3
    assert search.table() == {f'{{"id":{n}}}': {"n": n} for n in range(5)}
    found = search.compare()
    assert not found.right
    assert found.missing == found.different == []
    assert [(one.key, one.sequence) for one in found.refused] == [('{"id":2}', 2), ('{"id":7}', 1), ('{"id":8}', 1)]
    assert "failed to parse field [n] of type [long]" in found.refused[0].reason
    assert found.refused[2].reason == "the document is no JSON object"
    search.publish(2, {"n": 22})
    search.publish(7, None)
    search.publish(8, None)
    search.land()
    assert "ada" not in str(search.find(index=f"{PRODUCT}-v3"))
    assert search.compare().right
    with closing(search.target()) as target:
        assert target.refused() == 0


def test_an_old_tombstone_goes_at_the_next_start(search: SearchScene, monkeypatch: pytest.MonkeyPatch) -> None:
    search.publish(1, {"n": 1})
    search.publish(1, None)
    monkeypatch.setattr(module, "time", lambda: 1_600_000_000)
    search.land()
    monkeypatch.undo()
    search.publish(2, {"n": 2})
    search.publish(2, None)
    kinds = module.of_kind("tombstone")
    assert len(search.find(kinds, f"{PRODUCT}-v3")) == 1
    search.land()
    assert [one["statestore"]["sequence"] for one in search.find(kinds, f"{PRODUCT}-v3")] == [2]


class ForgetfulTarget(SearchTarget):
    """A target that has lost the offsets of earlier processes."""

    def __init__(self, scene: SearchScene) -> None:
        super().__init__(scene.url, PRODUCT, scene.version, MAPPING)
        self._seen: dict[int, int] = {}

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        return {partition: self._seen[partition] for partition in partitions if partition in self._seen}

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        self._seen |= ends
        return super().land(messages, ends)


def land_all_again(scene: SearchScene) -> None:
    """Lands the whole topic from its beginning."""
    with closing(ForgetfulTarget(scene)) as target:
        target.open(scene.topic)
        landing = scene.landing(target)
        landing.run()
    assert landing.tally.total() == sum(landing.goal.values())

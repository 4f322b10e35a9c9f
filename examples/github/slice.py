"""Cuts the demo's slice out of two hours of GH Archive: the same events in the same order and shape, only fewer.

    python examples/github/slice.py 2015-01-01-00-01.ndjson.gz examples/github/events.ndjson.gz

Kept, each rule over the whole input, so that the same input gives the same bytes:

1. stars: all of every user with `BUSY_USER` stars or more, all of every repository with `LOVED_REPO` or more, and all
   of every repository that some event gives a row to;
2. pull requests, in order of appearance: all events of every `SEVERAL_STATES`th that is seen in several states, and of
   every one that is reopened; every `FIRST_CLOSED`th of those only seen closed; every `STAYS_OPEN`th of those only seen
   open;
3. the first `ROWS` pull requests, forks and creations that give a row to a repository that anybody starred;
4. forks of a repository whose star or pull request is kept.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]

BUSY_USER = 4
LOVED_REPO = 5
SEVERAL_STATES = 2
FIRST_CLOSED = 8
STAYS_OPEN = 16
ROWS = 2


def main(source: Path, target: Path) -> None:
    """Reads the archive `source`, writes the slice to `target`; the modification time in the gzip header is 0."""
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        texts = list(lines)
    events = [json.loads(text) for text in texts]
    kept = choose(events)
    packed = gzip.compress("".join(texts[i] for i in sorted(kept)).encode(), compresslevel=9, mtime=0)
    target.write_bytes(packed)
    print(f"{len(kept)} of {len(events)} events, {len(packed)} bytes")


def choose(events: list[Event]) -> set[int]:
    """The places of the events to keep."""
    kept = set(_stars(events)) | set(_pull_requests(events)) | set(_rows_of_starred(events))
    known = {events[i]["repo"]["name"] for i in kept if events[i]["type"] != "CreateEvent"}
    return kept | {i for i, e in enumerate(events) if e["type"] == "ForkEvent" and e["repo"]["name"] in known}


def _stars(events: list[Event]) -> Iterator[int]:
    stars = [(i, e["actor"]["login"], e["repo"]["name"]) for i, e in enumerate(events) if e["type"] == "WatchEvent"]
    users = Counter(user for _, user, _ in stars)
    repos = Counter(repo for _, _, repo in stars)
    with_row = {name for event in events for name in _described(event)}
    for i, user, repo in stars:
        if users[user] >= BUSY_USER or repos[repo] >= LOVED_REPO or repo in with_row:
            yield i


def _pull_requests(events: list[Event]) -> Iterator[int]:
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for i, event in enumerate(events):
        if event["type"] == "PullRequestEvent":
            places[event["repo"]["name"], event["payload"]["number"]].append(i)
    shares = {("several",): SEVERAL_STATES, ("closed",): FIRST_CLOSED, ("opened",): STAYS_OPEN}
    seen: Counter[tuple[str, ...]] = Counter()
    for group in places.values():
        actions = tuple(events[i]["payload"]["action"] for i in group)
        kind = actions if len(actions) == 1 else ("several",)
        if "reopened" in actions or seen[kind] % shares[kind] == 0:
            yield from group
        seen[kind] += 1


def _rows_of_starred(events: list[Event]) -> Iterator[int]:
    starred = {e["repo"]["name"] for e in events if e["type"] == "WatchEvent"}
    rows: Counter[str] = Counter()
    for i, event in enumerate(events):
        names = [name for name in _described(event) if name in starred and rows[name] < ROWS]
        rows.update(set(names))
        if names:
            yield i


def _described(event: Event) -> Iterator[str]:
    """The repositories that the event gives a row to."""
    payload = event["payload"]
    match event["type"]:
        case "PullRequestEvent":
            sides = (payload["pull_request"][side]["repo"] for side in ("base", "head"))
            yield from (repo["full_name"] for repo in sides if repo)
        case "ForkEvent":
            yield payload["forkee"]["full_name"]
        case "CreateEvent" if payload["ref_type"] == "repository":
            yield event["repo"]["name"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Cut the demo's slice out of two hours of GH Archive: the same events in the same order and shape, only fewer.

    python examples/github/slice.py 2015-01-01-00-01.ndjson.gz examples/github/events.ndjson.gz

The slice contains the following events. Each rule looks at the whole input, so the same input gives the same bytes:

1. stars: all of each user with at least `MIN_USER_STARS` stars, all of each repository with at least `MIN_REPO_STARS`,
   and all of each repository that some event gives a row;
2. pull requests, in order of appearance: all events of every `SEVERAL_STATES`th pull request that occurs in several
   states, and of each reopened one; those of every `ONLY_CLOSED`th pull request that occurs only as closed; those of
   every `ONLY_OPENED`th that occurs only as opened;
3. the first `ROWS_PER_REPO` pull requests, forks and creations that give a row to a starred repository;
4. forks of each repository whose star or pull request the slice contains.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]

MIN_USER_STARS = 4
MIN_REPO_STARS = 5
SEVERAL_STATES = 2
ONLY_CLOSED = 8
ONLY_OPENED = 16
ROWS_PER_REPO = 2


def main(source: Path, target: Path) -> None:
    """Reads the archive `source` and writes the slice to `target`. The modification time in the gzip header is 0."""
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        texts = list(lines)
    events = [json.loads(text) for text in texts]
    chosen = choose_events(events)
    packed = gzip.compress("".join(texts[i] for i in sorted(chosen)).encode(), compresslevel=9, mtime=0)
    target.write_bytes(packed)
    print(f"{len(chosen)} of {len(events)} events, {len(packed)} bytes")


def choose_events(events: list[Event]) -> set[int]:
    """The indexes of the chosen events."""
    chosen = set(_stars(events)) | set(_pull_requests(events)) | set(_rows_of_starred(events))
    known = {events[i]["repo"]["name"] for i in chosen if events[i]["type"] != "CreateEvent"}
    return chosen | {i for i, e in enumerate(events) if e["type"] == "ForkEvent" and e["repo"]["name"] in known}


def _stars(events: list[Event]) -> Iterator[int]:
    stars = [(i, e["actor"]["login"], e["repo"]["name"]) for i, e in enumerate(events) if e["type"] == "WatchEvent"]
    users = Counter(user for _, user, _ in stars)
    repos = Counter(repo for _, _, repo in stars)
    with_row = {name for event in events for name in _repos_with_row(event)}
    for i, user, repo in stars:
        if users[user] >= MIN_USER_STARS or repos[repo] >= MIN_REPO_STARS or repo in with_row:
            yield i


def _pull_requests(events: list[Event]) -> Iterator[int]:
    events_of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for i, event in enumerate(events):
        if event["type"] == "PullRequestEvent":
            events_of[event["repo"]["name"], event["payload"]["number"]].append(i)
    shares = {("several",): SEVERAL_STATES, ("closed",): ONLY_CLOSED, ("opened",): ONLY_OPENED}
    seen: Counter[tuple[str, ...]] = Counter()
    for group in events_of.values():
        actions = tuple(events[i]["payload"]["action"] for i in group)
        kind = actions if len(actions) == 1 else ("several",)
        if "reopened" in actions or seen[kind] % shares[kind] == 0:
            yield from group
        seen[kind] += 1


def _rows_of_starred(events: list[Event]) -> Iterator[int]:
    starred = {e["repo"]["name"] for e in events if e["type"] == "WatchEvent"}
    rows: Counter[str] = Counter()
    for i, event in enumerate(events):
        names = [name for name in _repos_with_row(event) if name in starred and rows[name] < ROWS_PER_REPO]
        rows.update(set(names))
        if names:
            yield i


def _repos_with_row(event: Event) -> Iterator[str]:
    """The repositories to which the event gives a row."""
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

"""Splits pages of documentation into fenced blocks, runs their shell blocks, and follows their links."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for folder in ("docs", "benchmarks", "examples", "infra", "tests")
            for page in (ROOT / folder).rglob("*.md")
        ),
    ]
)
"""Every page of the repository."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(make [a-z-]+\n)+")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language and text, its line in the page, and the text between it and the block before it."""

    language: str
    text: str
    line: int
    between: str


def page_name(page: Path) -> str:
    """The path of a page in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page's text."""
    end = 0
    for found in FENCE.finditer(page):
        line = page.count("\n", 0, found.start()) + 1
        yield Block(language=found[1], text=found[2], line=line, between=page[end : found.start()].strip())
        end = found.end()


def blocks_of(page: Path, language: str) -> list[Block]:
    """The blocks of a page in one language."""
    return [block for block in blocks(page.read_text(encoding="utf-8")) if block.language == language]


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The relative links of a page, as (path, anchor); either may be empty. Text in fenced blocks holds no links."""
    for path, anchor in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in path:
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes for the headings of a page: lower case, spaces as hyphens, without punctuation."""
    seen: Counter[str] = Counter()
    made = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        made.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return made


def make_checkout(directory: Path) -> Path:
    """Fills a directory so that it looks like a checkout after `make setup`."""
    (directory / "examples").symlink_to(ROOT / "examples")
    command = directory / ".venv" / "bin" / "statestore"
    command.parent.mkdir(parents=True)
    command.symlink_to(Path(sys.executable).parent / "statestore")
    python = command.with_name("python")  # a symbolic link would not find the packages of the environment
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return directory


def bash(text: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Runs a block without the STATESTORE_ variables of the person who runs the tests. W and S are short, because the index of
    an embedded part is never late."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STATESTORE_")}
    environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    environment |= {"STATESTORE_WAIT_SECONDS": "0.2", "STATESTORE_SETTLE_SECONDS": "0.2"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def run_page(page: Path, checkout: Path, until: str = "") -> None:
    """Runs the shell blocks of a page in their order. If the page continues with `prints`, the next block must equal the
    standard output.

    Bash runs a block unchanged, with two exceptions. A block `make TARGET` does not run: each target takes minutes, and
    `make test` would run this test again. For a block that uses `production.toml`, the addresses of the embedded parts
    replace the invented ones. With `until` the first block with this text, and all after it, do not run.
    """
    found = list(blocks(page.read_text(encoding="utf-8")))
    for block, after in zip_longest(found, found[1:]):
        if block.language != "sh" or MAKE.fullmatch(block.text):
            continue
        if until and until in block.text:
            return
        if "production.toml" in block.text:
            _write_production(page, checkout)
        done = bash(block.text, checkout)
        place = f"{page_name(page)}:{block.line}"
        assert done.returncode == 0, f"{place}\n{block.text}\n{done.stdout}\n{done.stderr}"
        if after is not None and after.between == "prints":
            assert done.stdout == after.text, f"the output of {place} differs from the page"


def stop_parts(checkout: Path) -> None:
    """Stops the embedded parts that the blocks of a page left running."""
    if (checkout / ".statestore").exists():
        bash(".venv/bin/statestore local down", checkout)


def _write_production(page: Path, checkout: Path) -> None:
    """Writes the `production.toml` of the page, with the addresses of the embedded parts and a checkpoint in the checkout."""
    started = bash(".venv/bin/statestore local up --store dynamodb --json", checkout)
    parts: dict[str, Any] = json.loads(started.stdout)
    (block,) = blocks_of(page, "toml")
    (checkout / "registry").write_text(parts["registry_url"])
    own = {
        "registry": f"file:{checkout}/registry",
        "registry_password": "",
        "bootstrap_servers": parts["bootstrap_servers"],
        "endpoint": parts["dynamodb_endpoint"],
        "checkpoint": str(checkout / "production-checkpoint"),
    }
    others = {name: value for name, value in tomllib.loads(block.text).items() if name not in (*own, "kafka")}
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in (others | own).items())
    (checkout / "production.toml").write_text("".join(lines))

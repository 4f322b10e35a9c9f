"""Pages of documentation as their fenced blocks, and how a shell block is run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(make [a-z-]+\n)+")
SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language and text, its line in the page, and what stands between it and the block before it."""

    language: str
    text: str
    line: int
    between: str


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page's text."""
    end = 0
    for found in FENCE.finditer(page):
        line = page.count("\n", 0, found.start()) + 1
        yield Block(language=found[1], text=found[2], line=line, between=page[end : found.start()].strip())
        end = found.end()


def make_checkout(directory: Path, root: Path) -> Path:
    """Makes a directory look like a checkout after `make setup`."""
    (directory / "examples").symlink_to(root / "examples")
    command = directory / ".venv" / "bin" / "statestore"
    command.parent.mkdir(parents=True)
    command.symlink_to(Path(sys.executable).parent / "statestore")
    return directory


def bash(text: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Runs a block; a setting of whoever runs the tests must not reach it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STATESTORE_")}
    environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
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


def run_block(page: str, block: Block, after: Block | None, checkout: Path) -> None:
    """Runs a shell block; where the page goes on with `prints`, the next block is its standard output."""
    done = bash(block.text, checkout)
    assert done.returncode == 0, f"{page}:{block.line}\n{block.text}\n{done.stdout}\n{done.stderr}"
    if after is not None and after.between == "prints":
        assert done.stdout == after.text, f"{page}:{after.line}"

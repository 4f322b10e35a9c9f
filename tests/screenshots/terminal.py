"""Writes the screens of terminal sessions that README.md and docs/first-product.md show, as SVG: `make screens`.

Each session runs its commands in a copy of an example, and rich draws what they print. The SVG names the fonts of the reader's
machine, and loads nothing.
"""

import argparse
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).parents[2]
STATESTORE: Final = "from processor.cli.main import main; import sys; sys.exit(main())"
MOST_BYTES: Final = 24 * 1024
WITHOUT_FONTS: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1b1d1e"/>
<g transform="translate(12, 22)" class="{unique_id}-matrix">{matrix}</g>
</svg>
"""


class Session(NamedTuple):
    """Commands in a copy of an example, which has the name `shop` there. `file`: of the screen."""

    file: str
    commands: tuple[str, ...]
    width: int
    example: str = "examples/orders"


SESSIONS: Final = (
    Session("docs/tour.svg", ("statestore tour",), 132),
    Session(
        "docs/first-product.svg",
        (
            "statestore check shop",
            "statestore try --definitions shop --from shop/topics.jsonl | grep -o '{\"order\".*}]}'",
            "sed -i 's/order_id: id/orderid: id/' shop/order_enriched.yaml && statestore check shop",
        ),
        92,
    ),
)


def draw(session: Session) -> str:
    """The screen of a session as SVG."""
    console = Console(
        record=True, width=session.width, file=io.StringIO(), color_system="truecolor", force_terminal=True
    )
    with TemporaryDirectory() as directory:
        copytree(ROOT / session.example, Path(directory) / "shop")
        for command in session.commands:
            console.print(Text.assemble(("$ ", "green"), (command, "bold")))
            console.print(Text.from_ansi(_printed(command, directory)))
    svg = console.export_svg(theme=MONOKAI, code_format=WITHOUT_FONTS, unique_id="screen")
    return re.sub(r'<text [^>]*>\n</text>| clip-path="[^"]*"', "", svg)


def _printed(command: str, directory: str) -> str:
    """What a command prints, in bash."""
    program = f'statestore() {{ {shlex.quote(sys.executable)} -c {shlex.quote(STATESTORE)} "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", program + command],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout.rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT, help="the directory of the files")
    to = parser.parse_args().to
    for session in SESSIONS:
        target = to / session.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(draw(session))
        size = target.stat().st_size
        print(f"{session.file}: {size:,} bytes")
        if size > MOST_BYTES:
            sys.exit(f"{session.file} has more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()

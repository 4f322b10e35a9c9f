"""The files that the pages load: a style sheet, htmx, and a few lines of script. All come with the package."""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Final

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
NAMES: Final = ("console.css", "console.js", "htmx.min.js", "icon.svg")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file. `tag`: names its content, so that a browser keeps it until the next release."""

    content: bytes
    type: str
    tag: str


def static_files() -> dict[str, StaticFile]:
    """The files by name."""
    folder = files("processor.console") / "static"
    found = {name: (folder / name).read_bytes() for name in NAMES}
    return {
        name: StaticFile(content, TYPES[name.rpartition(".")[2]], sha256(content).hexdigest()[:12])
        for name, content in found.items()
    }

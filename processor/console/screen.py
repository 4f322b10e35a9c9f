"""A screen of the console: a path with its content, and with the edit that its form makes. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from processor.console.console_parts import ConsoleParts
from processor.console.visit import Visit

Content = Mapping[str, Any]
"""JSON values: a template shows them, and `/api` gives them as they are."""
Show = Callable[[ConsoleParts, Visit], Content]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDone:
    """An edit is made. `to`: the path of the page that shows its effect; `said`: a sentence for that page."""

    to: str
    said: str


Act = Callable[[ConsoleParts, Visit], EditDone]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A screen. `path`: as of a route, with the parts of a place; `menu`: its place in the menu; `template`: of its page; `act`:
    makes the edit of its form."""

    path: str
    menu: str
    template: str
    show: Show
    act: Act | None = None

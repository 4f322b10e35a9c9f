"""Renders the pages of the console."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from processor.catalogue.rendering import open_templates
from processor.console.form_tokens import FIELD
from processor.console.screen import Content, Screen
from processor.console.static_files import StaticFile
from processor.console.visit import Visit
from processor.serve.problem import LookUpProblem


class ConsolePage:
    """The look of all pages. `screens`: the first of each name is in the menu; `static`: the files that pages load."""

    def __init__(self, screens: Sequence[Screen], static: Mapping[str, StaticFile]) -> None:
        self._render = open_templates("processor.console", "console")
        menu: dict[str, str] = {}
        for one in screens:
            menu.setdefault(one.menu, one.path)
        self._always = {
            "menu": menu,
            "files": {name: f"/static/{name}?v={file.tag}" for name, file in static.items()},
            "form_field": FIELD,
            "url": _url,
        }

    def page(
        self,
        screen: Screen,
        content: Content,
        visit: Visit,
        *,
        here: str,
        token: str,
        said: str,
        problem: LookUpProblem | None,
    ) -> str:
        """The page of a screen. `said`: what an edit before it did; `problem`: why an edit was refused."""
        return self._text(
            screen.template,
            it=content,
            of_menu=screen.menu,
            here=here,
            person=visit.person,
            why=visit.asked("why"),
            token=token,
            said=said,
            problem=None if problem is None else str(problem),
        )

    def problem(self, problem: LookUpProblem, *, here: str) -> str:
        """The page in place of one that cannot be shown."""
        return self._text("problem.html", of_menu="", here=here, person=None, said="", problem=str(problem), it={})

    def _text(self, template: str, **values: Any) -> str:
        now = datetime.now(UTC)
        return self._render(template, made_at=f"{now:%Y-%m-%d %H:%M:%S} UTC", **self._always, **values)


def _url(path: str, **query: object) -> str:
    """An address, with each part of the query escaped; empty parts are left out."""
    parts = "&".join(f"{name}={quote(text, safe='')}" for name, value in query.items() if (text := str(value)))
    return f"{path}?{parts}" if parts else path

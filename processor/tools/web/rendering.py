"""The templates of pages, with Jinja2. They write each value escaped, so that no name is markup."""

from collections.abc import Callable
from typing import Any

from processor.errors import StatestoreError
from processor.text import visible

RenderPage = Callable[..., str]
"""The text of the template with this name, and with these values."""


def open_templates(room: str = "processor.tools.web.catalogue", extra: str = "catalogue") -> RenderPage:
    """The function that renders the templates of a room. Raises StatestoreError where Jinja2 is not installed, and names the
    extra that brings it."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise StatestoreError(f"the pages need Jinja2: pip install 'statestore[{extra}]'") from None
    templates = Environment(
        loader=PackageLoader(room),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["prose"] = _prose
    return lambda name, **values: templates.get_template(name).render(**values)


def _prose(text: str) -> Any:
    """A sentence, in which `words` that a person types are code."""
    from markupsafe import Markup, escape

    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # an odd sign of another meaning
        return Markup(escape("`".join(parts)))
    marked = (f"<code>{escape(one)}</code>" if number % 2 else str(escape(one)) for number, one in enumerate(parts))
    return Markup("".join(marked))


def _shown(value: Any) -> Any:
    """A text without characters that steer a terminal or turn the direction of writing; other values as they are, and markup,
    whose values went this way before."""
    return visible(value) if type(value) is str else value

"""The templates of the pages, with Jinja2 (the extra `catalogue`). They write each value escaped, so that no name is markup."""

from collections.abc import Callable

from processor.errors import StatestoreError

RenderPage = Callable[..., str]
"""The text of the template with this name, and with these values."""


def open_templates() -> RenderPage:
    """The function that renders the templates. Raises StatestoreError where Jinja2 is not installed."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise StatestoreError("the pages need Jinja2: pip install 'statestore[catalogue]'") from None
    templates = Environment(
        loader=PackageLoader("processor.catalogue"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return lambda name, **values: templates.get_template(name).render(**values)

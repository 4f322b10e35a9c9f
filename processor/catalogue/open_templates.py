"""The templates of the pages, with Jinja2 (the extra `catalogue`). They write each value escaped, so that no name is markup."""

from typing import TYPE_CHECKING

from processor.errors import StatestoreError

if TYPE_CHECKING:
    from jinja2 import Environment


def open_templates() -> "Environment":
    """The environment of the templates. Raises StatestoreError where Jinja2 is not installed."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise StatestoreError("the pages need Jinja2: pip install 'statestore[catalogue]'") from None
    return Environment(
        loader=PackageLoader("processor.catalogue"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

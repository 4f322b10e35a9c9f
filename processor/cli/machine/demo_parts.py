"""The embedded parts of the demo: for the time of a block, or kept, with the operators' console over them."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from processor.cli.options import print_progress, set_embedded_credentials, with_addresses
from processor.environment.settings.settings import Settings, read_settings

if TYPE_CHECKING:
    from processor.environment.embedded import Addresses

BATCH: Final = 200
KEPT_DIR: Final = Path(".statestore/demo")
"""The directory of the parts that a demo keeps."""
OpenParts = Callable[[str], AbstractContextManager[tuple[Settings, Path]]]
"""Opens the parts of a demo with its table in this store: their settings, and a directory for the demo's files."""


@contextmanager
def demo_parts(store: str) -> Iterator[tuple[Settings, Path]]:
    """Parts of the demo's own. They and the directory are removed at the end of the block."""
    from processor.environment import embedded as parts

    set_embedded_credentials()
    with parts.embedded_parts(progress=print_progress, store=store) as addresses, _demo_on(addresses, store) as opened:
        yield opened


@contextmanager
def kept_parts(store: str) -> Iterator[tuple[Settings, Path]]:
    """Parts in KEPT_DIR that stay after the block, in place of those of an earlier demo. They go if the block fails."""
    from processor.environment import embedded as parts

    set_embedded_credentials()
    parts.down(KEPT_DIR, print_progress)
    addresses = parts.up(KEPT_DIR, print_progress, store)
    try:
        with _demo_on(addresses, store) as opened:
            yield opened
    except BaseException:
        parts.down(KEPT_DIR, print_progress)
        raise


def start_kept_console(store: str) -> str:
    """Starts the console over the kept parts. Returns its address."""
    from processor.environment import embedded as parts

    return parts.up(KEPT_DIR, print_progress, store, [parts.CONSOLE]).endpoints[parts.CONSOLE]


@contextmanager
def _demo_on(addresses: "Addresses", store: str) -> Iterator[tuple[Settings, Path]]:
    with tempfile.TemporaryDirectory(prefix="statestore-demo-", ignore_cleanup_errors=True) as directory:
        settings = with_addresses(read_settings({"batch_size": BATCH, "store": store}), addresses)
        yield replace(settings, checkpoint=f"{directory}/checkpoint"), Path(directory)

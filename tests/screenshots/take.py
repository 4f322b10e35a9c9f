"""Takes the screenshots of the console that docs/verbs.md shows.

    python -m tests.screenshots.take [--to FOLDER] [--format png]

Needs Chromium, and starts a Postgres of its own. An image of more than MOST_BYTES is an error. `--format png` is for programs
that show no WebP.
"""

import argparse
import base64
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import pytest

from processor.environment.programs.program import SecretUrl
from processor.environment.programs.servers import start_postgres
from processor.job.landing.landing import LandingState
from processor.tools.web.console import documents
from processor.tools.web.console.app import OwnUser
from processor.tools.web.console.documents import PublishedMessage
from processor.tools.web.console.overview import LandingCache
from processor.tools.web.console.screen import KnownLandings
from tests.integration.web.console.conftest import ConsoleScene, at
from tests.screenshots.shop_scene import shop_scene
from tests.support.browser import chromium, served

FOLDER: Final = Path(__file__).parents[2] / "docs" / "console"
MOST_BYTES: Final = 60 * 1024
QUALITY: Final = 55
WIDE, NARROW = (1180, 1000), (400, 860)
"""Width of the image, and its greatest height."""


class Shot(NamedTuple):
    """An image. `path`: of the page."""

    name: str
    path: str
    scheme: str = "light"
    size: tuple[int, int] = WIDE


GROUP = at("/letters/group", topic="order_line", code="column-type", column="quantity")
SHOTS: Final = (
    Shot("overview", "/"),
    Shot("slots", "/slots"),
    # makes the prices, which the list of products shows
    Shot("costs", at("/costs", without="customer_orders"), size=(WIDE[0], 765)),
    Shot("products", "/products"),
    Shot("product", at("/products/product", product="order_enriched")),
    Shot("documents", at("/documents", product="customer_orders", key=7)),
    Shot("letters", GROUP),
    Shot("history", "/history"),
    Shot("overview-dark", "/", "dark"),
    Shot("documents-dark", at("/documents", product="customer_orders", key=7), "dark"),
    Shot("slots-narrow", "/slots", "light", NARROW),
    Shot("documents-narrow", at("/documents", product="customer_orders", key=7), "light", NARROW),
)
LANDED = LandingState("order_enriched", "db.example.org/orders/order_enriched", 0.0, "order_enriched", 12, 2)


def take(folder: Path, form: str) -> None:
    """Takes all images. Raises ValueError for one that is too large."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="statestore-shots-", ignore_cleanup_errors=True) as home:
        Path(home).chmod(0o755)  # under root the server is another user
        server = start_postgres(Path(home))
        try:
            url = SecretUrl(server.endpoint.replace("+psycopg", ""))
            with (
                shop_scene(url, "shop") as (scene, published),
                _staged(published),
                served(_app(scene)) as address,
                chromium() as browser,
            ):
                for shot in SHOTS:
                    content = _image(browser, address, shot, form)
                    if form == "webp" and len(content) > MOST_BYTES:
                        raise ValueError(f"{shot.name} has {len(content):,} bytes, more than {MOST_BYTES:,}")
                    folder.joinpath(f"{shot.name}.{form}").write_bytes(content)
                    print(f"{shot.name}: {len(content):,} bytes")
        finally:
            server.stop()


def _app(scene: ConsoleScene) -> Any:
    return scene.app(scene.registry, OwnUser("lin"), rate=10_000)


@contextmanager
def _staged(published: Mapping[bytes, Any]) -> Iterator[None]:
    """A broker that has these documents, and knows a landing."""
    landings = KnownLandings(states=(LANDED._replace(landed_at=time() - 2),), age=1.0)
    with (
        patch.object(LandingCache, "landings", lambda _: landings),
        patch.object(documents, "published_message", lambda *asked: PublishedMessage(True, published[asked[3]])),
    ):
        yield


def _image(browser: Any, address: str, shot: Shot, form: str) -> bytes:
    """A page from its top, as high as it is, or as `size` lets it be."""
    width, most = shot.size
    context = browser.new_context(color_scheme=shot.scheme, viewport={"width": width, "height": most})
    page = context.new_page()
    page.goto(address + shot.path)
    height = min(most, page.evaluate("Math.ceil(document.body.getBoundingClientRect().bottom)"))
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    asked = {"format": form, "clip": clip} | ({"quality": QUALITY} if form == "webp" else {})
    answer = context.new_cdp_session(page).send("Page.captureScreenshot", asked)
    context.close()
    return base64.b64decode(answer["data"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--format", choices=("webp", "png"), default="webp")
    options = parser.parse_args()
    try:
        take(options.to, options.format)
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))

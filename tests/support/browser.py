"""A real browser without a window, and a server of this process for it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.support.required import require_playwright, required_browser


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of the application, on a port of its own."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, as Playwright drives it."""
    require_playwright()
    from playwright.sync_api import sync_playwright

    path = required_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()

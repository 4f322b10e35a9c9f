"""Records the calls that reach moto, in the process in which it runs."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from py_partiql_parser import JsonParser

from tests.recorder.calls import record

Application = Callable[[Any, dict[str, Any], Any], Any]


def record_moto() -> None:
    """Lets every moto server of this process write down its calls. Gives ImportTable a reader of JSON: moto's own knows no
    escapes in a text. A second call changes nothing."""
    answer: Application = DomainDispatcherApplication.__call__
    if answer.__module__ == __name__:
        return

    def recording(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        headers = {name[5:].replace("_", "-").lower(): text for name, text in environ.items() if name[:5] == "HTTP_"}
        record({**headers, ":method": environ["REQUEST_METHOD"]}, body)
        return answer(self, environ, start_response)

    setattr(DomainDispatcherApplication, "__call__", recording)  # noqa: B010 - mypy forbids to assign a method
    setattr(JsonParser, "parse", lambda original: map(json.loads, original.split("\n")))  # noqa: B010

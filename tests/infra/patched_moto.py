"""A moto server in a thread of the tests. It also does what moto leaves out and Terraform's provider asks for."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from moto.applicationautoscaling.responses import ApplicationAutoScalingResponse
from moto.emrserverless import models as emr
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer


def _no_tags(_: ApplicationAutoScalingResponse) -> str:
    return json.dumps({"Tags": {}})


def _delete_connection(response: GlueResponse) -> str:
    response.glue_backend.connections.pop(response.parameters["ConnectionName"])
    return json.dumps({})


@contextmanager
def patched_moto() -> Iterator[str]:
    """The endpoint of a server. AWS's applications of EMR Serverless begin as CREATED, moto's as STARTED."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else a failed test shows a line for each request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with (
        patch.object(emr, "APPLICATION_STATUS", "CREATED"),
        patch.object(ApplicationAutoScalingResponse, "list_tags_for_resource", _no_tags, create=True),
        patch.object(GlueResponse, "delete_connection", _delete_connection, create=True),
    ):
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()

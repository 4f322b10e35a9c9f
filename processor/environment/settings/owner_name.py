"""The name of this process in the lease and in the registry's history."""

import os
import socket


def owner_name() -> str:
    """Host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"

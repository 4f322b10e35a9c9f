"""The Host of a request. A site in a browser may lead a name of its own to this machine (DNS rebinding), and the Host then has
that name. So a listener takes only requests that name it as its people do. Pure.
"""

import re
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine for its own users."""
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\\,\[\]]+)(?::[0-9]{0,5})?", re.ASCII)
"""A name or an address, perhaps with a port."""


def is_named(host: str, names: Collection[str]) -> bool:
    """Whether the header `Host` has one of the names, which are as `plain_name` has them."""
    found = _HOST.fullmatch(host)
    return found is not None and plain_name(found[1]) in names


def plain_name(name: str) -> str:
    """A name or an address in its one form: without brackets, and in lower case."""
    text = name.strip("[]").removesuffix(".").lower()
    try:
        return str(ip_address(text))
    except ValueError:
        return text


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

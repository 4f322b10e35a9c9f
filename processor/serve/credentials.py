"""What a request shows of its sender: `Authorization: Bearer TOKEN`, or, as browsers ask for it, a name with the token as its
password."""

from base64 import b64decode
from typing import NamedTuple


class ShownCredentials(NamedTuple):
    """The token that a request shows, empty for none, and the name that its sender states."""

    token: str = ""
    name: str = ""


def read_credentials(header: str) -> ShownCredentials:
    """The credentials in the header `Authorization`; empty ones where nobody can read it."""
    scheme, _, given = header.partition(" ")
    match scheme.lower():
        case "bearer":
            return ShownCredentials(token=given.strip())
        case "basic":
            try:
                name, _, token = b64decode(given.strip(), validate=True).decode().partition(":")
            except ValueError:
                return ShownCredentials()
            return ShownCredentials(token=token, name=name)
    return ShownCredentials()

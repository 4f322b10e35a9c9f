"""What the verbs that listen on a port share: their flags, the token, and the packages that they need."""

import argparse
from importlib.util import find_spec

from processor.cli.arguments import positive
from processor.errors import SettingError
from processor.settings.resolve_secrets import resolve_reference
from processor.settings.secret_references import EXAMPLES, is_reference


def add_listener(parser: argparse.ArgumentParser, port: int, otherwise: str) -> None:
    """Adds the address, the token, the certificate and the limits. `otherwise`: what another address than loopback needs."""
    parser.add_argument("--host", default="127.0.0.1", help=f"address (127.0.0.1); another needs {otherwise}")
    parser.add_argument("--port", type=positive, default=port, help=f"port ({port})")
    parser.add_argument("--token", metavar="REF", default="", help="token of each request: env:, file: or secret:")
    parser.add_argument("--certificate", metavar="FILE", default="", help="certificate of the server (PEM)")
    parser.add_argument("--key", metavar="FILE", default="", help="key of the certificate (PEM)")
    parser.add_argument("--rate", type=positive, default=200, help="most requests a second (200)")
    parser.add_argument("--at-once", type=positive, default=16, help="most requests in work (16)")


def token_of(options: argparse.Namespace) -> str:
    """The token. Raises SettingError for one in the command itself, where other users may read it."""
    reference = options.token
    if reference and not is_reference(reference):
        raise SettingError(f"--token holds the token itself: {EXAMPLES}")
    token = resolve_reference("--token", reference)
    if reference and len(token) < 16:
        raise SettingError(f"--token: {reference} has fewer than 16 characters: use a longer random text")
    return token


def require_packages(extra: str, *modules: str) -> None:
    """Raises SettingError where a package of the extra is not installed."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"this verb needs more packages: pip install 'statestore[{extra}]'")

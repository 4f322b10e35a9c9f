"""What the verbs that listen on a port share: their flags, the token, and the packages that they need."""

import argparse
import os
from importlib.util import find_spec

from processor.cli.arguments import positive
from processor.environment.listeners import THIS_MACHINE, ConnectionLimits
from processor.environment.settings.resolve import resolve_reference
from processor.environment.settings.secrets import EXAMPLES, is_reference
from processor.errors import SettingError


def add_listener(parser: argparse.ArgumentParser, port: int, otherwise: str) -> None:
    """Adds the address, the certificate and the limits. `otherwise`: what another address than loopback needs."""
    parser.add_argument("--host", default="127.0.0.1", help=f"address (127.0.0.1); another needs {otherwise}")
    parser.add_argument("--port", type=_port, default=port, help=f"port ({port})")
    parser.add_argument("--certificate", metavar="FILE", default="", help="certificate of the server (PEM)")
    parser.add_argument("--key", metavar="FILE", default="", help="key of the certificate (PEM)")
    parser.add_argument("--rate", type=positive, default=200, help="most requests a second (200)")
    parser.add_argument("--at-once", type=positive, default=16, help="most requests in work (16)")


def _port(text: str) -> int:
    if (number := positive(text)) > 65535:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 65535")
    return number


def connection_limits(options: argparse.Namespace, proxy: str = "") -> ConnectionLimits:
    """The limits of connections: of one address, and of all, some for each request in work. `proxy`: address of many clients."""
    least = ConnectionLimits()
    return ConnectionLimits(
        most=max(least.most, 4 * options.at_once),
        most_of_one=max(least.most_of_one, 2 * options.at_once),
        shared=THIS_MACHINE | ({proxy} if proxy else set()),
    )


def add_token(parser: argparse.ArgumentParser) -> None:
    """Adds the token that all requests share."""
    parser.add_argument("--token", metavar="REF", default="", help="token of each request: env:, file: or secret:")


def token_of(options: argparse.Namespace) -> str:
    """The token. Raises SettingError for one in the command itself, where other users may read it."""
    reference = options.token
    if reference and not is_reference(reference):
        raise SettingError(f"--token holds the token itself: {EXAMPLES}")
    token = resolve_reference("--token", reference)
    if reference and len(token) < 16:
        raise SettingError(f"--token: {reference} has fewer than 16 characters: use a longer random text")
    return token


def owned_text(flag: str, reference: str) -> str:
    """The text of a reference that holds secrets of people. Raises SettingError for a secret in the command itself, and for a
    file that others may read."""
    if not is_reference(reference):
        raise SettingError(f"{flag} holds the secret itself: {EXAMPLES}")
    text = resolve_reference(flag, reference)
    kind, _, path = reference.partition(":")
    if kind == "file" and (found := os.stat(path)).st_mode & (0o037 if found.st_uid == 0 else 0o077):
        raise SettingError(f"{flag}: others may read {path}: give it to its owner alone (chmod 600 {path})")
    return text


def require_packages(extra: str, *modules: str) -> None:
    """Raises SettingError where a package of the extra is not installed."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"this verb needs more packages: pip install 'statestore[{extra}]'")

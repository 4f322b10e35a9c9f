"""The table [schema_registry] of the settings file: where the registry of schemas is, and how a client proves who it is.

    url                                            http:// or https://; several, with commas between them
    username, password                             basic authentication
    ssl.ca.pem                                     who signed the registry's certificate, if no public authority did
    ssl.certificate.pem, ssl.key.pem, ssl.key.password      the client's own certificate

The file holds no secret: the value of each PEM text and of each password is a reference (secrets.py).
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from processor.environment.settings.kafka import TLS, flat_settings, setting_text
from processor.errors import SettingError

NAMES = ("url", "username", "password", *TLS)
_NEEDS = {
    "username": "password",
    "password": "username",
    "ssl.certificate.pem": "ssl.key.pem",
    "ssl.key.pem": "ssl.certificate.pem",
    "ssl.key.password": "ssl.key.pem",
}


def read_schema_registry(table: Any, path: str | None) -> tuple[tuple[str, str], ...]:
    """The settings of the table, with references as they are. Raises SettingError, which names the wrong setting."""
    try:
        if not isinstance(table, dict):
            raise SettingError("is no table: write [schema_registry] in a line, and the settings below it")
        found = {name: setting_text(name, value) for name, value in flat_settings(table)}
        _check(found)
    except SettingError as error:
        raise SettingError(f"{path}: [schema_registry] {error}") from None
    return tuple(sorted(found.items()))


def _check(found: Mapping[str, str]) -> None:
    for name in found:
        if name not in NAMES:
            raise SettingError(f"there is no setting {name!r}; the settings are {', '.join(NAMES)}")
        if name in _NEEDS and _NEEDS[name] not in found:
            raise SettingError(f"{_NEEDS[name]} is missing, and {name} needs it")
    if found and "url" not in found:
        raise SettingError('url is missing: write "url" = "https://registry.example.org"')
    for url in found["url"].split(",") if found else ():
        _check_url(url.strip(), found)


def _check_url(url: str, found: Mapping[str, str]) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        raise SettingError("url: the address cannot be read; write https://host:port") from None
    if parts.username is not None or parts.password is not None:
        raise SettingError("url: the address holds a user; give it as username, and a reference as password")
    if not valid:
        raise SettingError(
            f"url: {url!r} is no address of a registry; write https://host:port, and a path if it has one"
        )
    if parts.scheme == "http":
        for name in TLS:
            if name in found:
                raise SettingError(f"{name} has no effect with {url}: write https://, or remove it")

"""The table [schema_registry] of the settings file: the kind of the registry of schemas, where it is, and how a client proves who
it is.

    kind                                           confluent (the default), apicurio or glue: which framing the job reads
    url                                            http:// or https://; several of `confluent`, with commas between them
    ids                                            of `apicurio`: contentId or globalId, the ids that records have in their bytes
    username, password                             basic authentication
    ssl.ca.pem                                     who signed the registry's certificate, if no public authority did
    ssl.certificate.pem, ssl.key.pem, ssl.key.password      the client's own certificate
    region, endpoint                               of `glue`: of AWS; credentials come from where the clients of AWS look

The file holds no secret: its value is a reference. Secrets and PEM text are as in [kafka] (kafka.py).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from processor.environment.settings.kafka import TLS, flat_settings, setting_text
from processor.errors import SettingError
from processor.text import nearest

_LOGIN = {
    "username": "password",
    "password": "username",
    "ssl.certificate.pem": "ssl.key.pem",
    "ssl.key.pem": "ssl.certificate.pem",
    "ssl.key.password": "ssl.key.pem",
}
"""A setting -> another setting that it needs."""
_HTTP = ("username", "password", *TLS)
IDS = ("contentId", "globalId")
"""The two numbers that a schema of Apicurio has."""


class RegistrySettings(NamedTuple):
    """The settings of one kind of registry. `needs`: each with a line to write where it is missing; `place`: where the registry
    is, for people, from its settings; `check`: raises SettingError."""

    needs: Mapping[str, str]
    allows: tuple[str, ...]
    place: Callable[[Mapping[str, str]], str]
    check: Callable[[Mapping[str, str]], None]


def _url(found: Mapping[str, str]) -> str:
    return found["url"]


def _glue_place(found: Mapping[str, str]) -> str:
    return found.get("endpoint") or f"AWS Glue in {found['region']}"


def _check_confluent(found: Mapping[str, str]) -> None:
    for url in found["url"].split(","):
        _check_url("url", url.strip(), found)


_VERSIONS = re.compile(r"/apis/registry/v[23]/*\Z")


def _check_apicurio(found: Mapping[str, str]) -> None:
    _check_url("url", found["url"], found)
    if not _VERSIONS.search(found["url"]):
        raise SettingError(f"url: {found['url']!r} does not end in /apis/registry/v3 or /apis/registry/v2")
    if found["ids"] not in IDS:
        raise SettingError(
            f"ids: there is no {found['ids']!r}; use {' or '.join(IDS)}, as `apicurio.registry.use-id` of the producers"
        )


_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]+")


def _check_glue(found: Mapping[str, str]) -> None:
    if not _REGION.fullmatch(found["region"]):
        raise SettingError(f"region: {found['region']!r} is no region of AWS, such as eu-central-1")
    if "endpoint" in found:
        _check_url("endpoint", found["endpoint"], found)


_WRITE_URL = 'write "url" = "https://registry.example.org"'
KINDS: Mapping[str, RegistrySettings] = {
    "confluent": RegistrySettings({"url": _WRITE_URL}, _HTTP, _url, _check_confluent),
    "apicurio": RegistrySettings(
        {"url": f'{_WRITE_URL[:-1]}/apis/registry/v3"', "ids": 'write "ids" = "contentId", or "globalId"'},
        _HTTP,
        _url,
        _check_apicurio,
    ),
    "glue": RegistrySettings({"region": 'write "region" = "eu-central-1"'}, ("endpoint",), _glue_place, _check_glue),
}
"""By the word of `kind`."""
FIRST = "confluent"
"""The kind of a table without `kind`."""
SCHEMA_REGISTRY_NAMES = ("kind", *dict.fromkeys(name for one in KINDS.values() for name in (*one.needs, *one.allows)))


def registry_kind(access: Mapping[str, str]) -> str:
    """The kind of registry that the settings name."""
    return access.get("kind", FIRST)


def schema_registry_place(access: Mapping[str, str]) -> str:
    """Where the registry is, for people; empty without settings."""
    return KINDS[registry_kind(access)].place(access) if access else ""


def read_schema_registry(table: Any, path: str | None) -> tuple[tuple[str, str], ...]:
    """The settings of the table, with references as they are. Raises SettingError, which names the wrong setting."""
    try:
        if not isinstance(table, dict):
            raise SettingError("is no table: write [schema_registry] in a line, and the settings below it")
        found = {name: setting_text(name, value) for name, value in flat_settings(table)}
        if found:
            _check(found)
    except SettingError as error:
        raise SettingError(f"{path}: [schema_registry] {error}") from None
    return tuple(sorted(found.items()))


def _check(found: Mapping[str, str]) -> None:
    name = registry_kind(found)
    if name not in KINDS:
        near = nearest(name, KINDS)
        raise SettingError(
            f"kind: there is no {name!r}; {f'did you mean {near!r}?' if near else 'use ' + ', '.join(KINDS)}"
        )
    kind, of_kind = KINDS[name], f" of kind {name}" if "kind" in found else ""
    names = ("kind", *kind.needs, *kind.allows)
    for one in found:
        if one not in names:
            raise SettingError(f"there is no setting {one!r}{of_kind}; the settings are {', '.join(names)}")
        if one in _LOGIN and _LOGIN[one] not in found:
            raise SettingError(f"{_LOGIN[one]} is missing, and {one} needs it")
    for one, cure in kind.needs.items():
        if one not in found:
            raise SettingError(f"{one} is missing: {cure}")
    kind.check(found)


def _check_url(setting: str, url: str, found: Mapping[str, str]) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        raise SettingError(f"{setting}: the address cannot be read; write https://host:port") from None
    if parts.username is not None or parts.password is not None:
        raise SettingError(f"{setting}: the address holds a user; give it as username, and a reference as password")
    if not valid:
        raise SettingError(
            f"{setting}: {url!r} is no address of a registry; write https://host:port, and a path if it has one"
        )
    if parts.scheme == "http":
        for name in TLS:
            if name in found:
                raise SettingError(f"{name} has no effect with {url}: write https://, or remove it")

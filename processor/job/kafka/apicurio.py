"""Asks Apicurio's registry for the schemas of records, by version 2 or 3 of its own REST API.

    GET /ids/globalIds/13, /ids/contentIds/13               the text
    GET .../references                                      the schemas that it needs, by group, artifact and version
    GET /search/artifacts?globalId=13                       the kind, where no header X-Registry-ArtifactType says it

Source: github.com/Apicurio/apicurio-registry (rest/v2, rest/v3: IdsResourceImpl, SearchResource), read on 2026-11-27.
Nobody has run statestore against an Apicurio registry yet. Its API for Confluent's clients (/apis/ccompat/v7) is a registry of
kind `confluent`.

The promises and limits are those of `registry_client`. The client authenticates by a user and a password, or by a certificate;
OAuth is not supported.
"""

import ssl
from collections.abc import Callable, Mapping
from time import sleep
from typing import Any, Final, TypeVar
from urllib.parse import quote

import urllib3

from processor.errors import SchemaRegistryAway, SettingError
from processor.job.kafka import registry_client
from processor.job.kafka.proto_text import compiled_text
from processor.job.kafka.registry_client import CURE, SchemaMissing, WriterSchema, pem_files, wrong_settings
from processor.values import canonical_json
from processor.values.framing import SchemaId

T = TypeVar("T")
_TYPE_HEADER: Final = "X-Registry-ArtifactType"
_AGAIN: Final = {408, 429}
"""Answers that may pass, as all from 500."""


class ApicurioClient:
    """A connection to the registry. `access`: the resolved settings of [schema_registry]."""

    def __init__(self, access: Mapping[str, str]) -> None:
        self._url, self._ids = access["url"].rstrip("/"), access["ids"]
        self._newer = self._url.endswith("/v3")
        login = f"{access['username']}:{access['password']}" if "username" in access else None
        with wrong_settings():
            self._client = urllib3.PoolManager(
                headers=urllib3.make_headers(basic_auth=login),
                ssl_context=_tls(access),
                timeout=urllib3.Timeout(registry_client.SECONDS),
                retries=False,
            )

    def schema(self, number: SchemaId) -> WriterSchema:
        """The schema of this id, with its references. A bare number is an id of the kind that the settings name."""
        what = f"schema {number}"
        kind_of_id, digits = number.split(" ") if isinstance(number, str) else (self._ids, str(number))
        place = f"/ids/{kind_of_id}s/{digits}"
        answer = self._get(place, what, {"returnArtifactType": "true"} if self._newer else {})
        text = answer.data.decode()
        kind = answer.headers.get(_TYPE_HEADER) or self._kind(what, kind_of_id, digits)
        references: dict[str, str] = {}
        self._add_references(place, what, references)
        if kind != "PROTOBUF":
            return WriterSchema(kind, text, references)
        compiled = {name: _compiled(what, name, text) for name, text in references.items()}
        return WriterSchema(kind, _compiled(what, "the schema", text), compiled)

    def probe(self) -> str:
        """The number of artifacts."""
        count = self._json("/search/artifacts", "its artifacts", {"limit": "1"}, lambda found: int(found["count"]))
        return f"{self._url} has {count} artifacts"

    def close(self) -> None:
        """Ends the connection."""
        self._client.clear()

    def _kind(self, what: str, kind_of_id: str, digits: str) -> str:
        kinds = self._json("/search/artifacts", what, {kind_of_id: digits, "limit": "20"}, _kinds_in)
        if len(kinds) != 1:  # an old registry ignores the filter
            raise SchemaMissing(f"the registry {self._url} does not say the kind of {what}")
        return kinds.pop()

    def _add_references(self, place: str, what: str, found: dict[str, str]) -> None:
        for name, inner in self._json(f"{place}/references", what, {}, _places_in):
            if name not in found:
                found[name] = self._get(f"{inner}/content" if self._newer else inner, what, {}).data.decode()
                self._add_references(inner, what, found)

    def _json(self, place: str, what: str, query: Mapping[str, str], read: Callable[[Any], T]) -> T:
        """What `read` takes from the JSON of an answer."""
        data = self._get(place, what, query).data
        try:
            return read(canonical_json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise SettingError(f"{self._url} answers, but not as an Apicurio registry, for {what}: {CURE}") from None

    def _get(self, place: str, what: str, query: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """The answer of status 200. Asks again where an answer may pass."""
        tries = registry_client.RETRY["max.retries"]
        while True:
            try:
                answer = self._client.request("GET", self._url + place, fields=dict(query))
                if answer.status not in _AGAIN and answer.status < 500:
                    break
                failure = f"fails for {what}: HTTP {answer.status}"
            except urllib3.exceptions.HTTPError as error:
                failure = f"does not answer for {what} ({type(error).__name__}: {error})"
            if not tries:
                raise SchemaRegistryAway(f"the schema registry {self._url} {failure}")
            tries -= 1
            sleep(registry_client.RETRY["retries.wait.ms"] / 1000)
        if answer.status == 200:
            return answer
        if answer.status in (401, 403):
            raise SettingError(
                f"the schema registry {self._url} refuses the user for {what} (HTTP {answer.status}): {CURE}"
            )
        if answer.status == 404 and "NotFoundException" in answer.data.decode(errors="replace"):
            raise SchemaMissing(f"the schema registry has no {what}, or lacks a reference of it")
        raise SettingError(f"the schema registry {self._url} refuses to give {what}: HTTP {answer.status}; {CURE}")


def _kinds_in(found: Any) -> set[str]:
    """The kinds of the artifacts that a search found."""
    return {str(one.get("artifactType") or one.get("type")) for one in found["artifacts"]}


def _places_in(references: Any) -> list[tuple[str, str]]:
    """The name and the place of each reference."""
    found = []
    for one in references:
        parts = (one.get("groupId") or "default", one["artifactId"], one["version"])
        group, artifact, version = (quote(str(part), safe="") for part in parts)
        found.append((str(one["name"]), f"/groups/{group}/artifacts/{artifact}/versions/{version}"))
    return found


def _compiled(what: str, name: str, text: str) -> str:
    try:
        return compiled_text(name, text)
    except ValueError as error:
        raise SchemaMissing(f"{what} cannot be read: {name}: {error}") from None


def _tls(access: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.get("ssl.ca.pem"))
    with pem_files(access) as files:
        if "ssl.certificate.pem" in files:
            password = access.get("ssl.key.password")
            context.load_cert_chain(files["ssl.certificate.pem"], files["ssl.key.pem"], password)
    return context

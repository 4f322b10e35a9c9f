"""Asks a registry with Confluent's API for the schemas of records, and registers those of documents; and what the clients of all
kinds share. Only this package imports a client.

Promises: no answer in time, and each answer that may pass, is SchemaRegistryAway; refused credentials and a wrong address are a
SettingError; a schema that is not there is a SchemaMissing, and one that the registry does not take a SchemaRefused. Does not:
keep answers, or show a password.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka.schema_registry import RuleKind, Schema, SchemaRegistryClient, SchemaRegistryError

from processor.errors import SchemaRegistryAway, SettingError
from processor.values.framing import SchemaId

SECONDS: Final = 10.0
"""The longest wait for an answer."""
RETRY: Final = {"max.retries": 2, "retries.wait.ms": 500}
"""How often the client asks again, and after how long."""
_MISSING: Final = {40401, 40402, 40403}
"""The registry's own codes: no such subject, version or schema."""
_FILES: Final = {
    "ssl.ca.pem": "ssl.ca.location",
    "ssl.certificate.pem": "ssl.certificate.location",
    "ssl.key.pem": "ssl.key.location",
}
CURE: Final = "correct [schema_registry] in the settings file"
REFUSED_CURE: Final = (
    "change the product so that readers of the earlier schema can read it, give it another `topic`, or change the compatibility "
    "of the subject in the registry"
)


class SchemaMissing(ValueError):
    """The registry has no such schema, or one that reads no records."""


class SchemaRefused(ValueError):
    """The registry does not take the schema: it is not compatible with the earlier ones, or not valid."""


class WriterSchema(NamedTuple):
    """A schema as its writer registered it. `kind`: AVRO, PROTOBUF or JSON. `references`: name -> text of each schema that it
    needs, also of those that these need. Protobuf's texts are base64 of the compiled file."""

    kind: str
    text: str
    references: Mapping[str, str]


class SchemaSource(Protocol):
    """A connection to a registry of any kind. It is made of the resolved settings of [schema_registry]."""

    def schema(self, number: SchemaId, /) -> WriterSchema:
        """The schema of this id, with its references. Raises SchemaMissing, SchemaRegistryAway and SettingError."""

    def probe(self) -> str:
        """Asks the registry a small question. Returns what its answer shows, for people. Raises SchemaRegistryAway and
        SettingError."""

    def close(self) -> None:
        """Ends the connection."""


class RegistryClient:
    """A connection to a registry with Confluent's API. `access`: the resolved settings of [schema_registry]."""

    def __init__(self, access: Mapping[str, str]) -> None:
        self._url = access["url"]
        with _client_settings(access) as conf, wrong_settings():
            self._client = SchemaRegistryClient(conf)

    def schema(self, number: SchemaId) -> WriterSchema:
        """The schema of this id, with its references. Raises SchemaMissing, SchemaRegistryAway and SettingError."""
        what = f"schema {number}"
        with self._errors(what):
            schema = self._client.get_schema(int(number))
            kind = schema.schema_type or "AVRO"
            form = "serialized" if kind == "PROTOBUF" else None
            if form is not None:
                self._forget()
                schema = self._client.get_schema(int(number), fmt=form)
            self._check_rules(what, schema)
            references: dict[str, str] = {}
            self._add_references(schema, form, references)
            self._forget()
        return WriterSchema(kind, str(schema.schema_str), references)

    def register(self, subject: str, text: str) -> int:
        """The id of an Avro schema under a subject; registers it if the subject lacks it. Raises SchemaRefused,
        SchemaRegistryAway and SettingError."""
        schema, what = Schema(text, "AVRO", []), f"the schema of subject {subject}"
        try:
            with self._errors(what):
                return int(self._client.lookup_schema(subject, schema).schema_id or 0)
        except SchemaMissing:
            with self._errors(what):
                return int(self._client.register_schema(subject, schema))

    def subjects(self) -> list[str]:
        """The names of all subjects. Raises SchemaRegistryAway and SettingError."""
        with self._errors("the subjects"):
            return [str(subject) for subject in self._client.get_subjects()]

    def latest(self, subject: str) -> WriterSchema:
        """The newest schema of a subject. Raises SchemaMissing, SchemaRegistryAway and SettingError."""
        with self._errors(f"subject {subject}"):
            number = int(self._client.get_latest_version(subject).schema_id or 0)
        return self.schema(number)

    def probe(self) -> str:
        """The kinds of schemas that the registry knows."""
        with self._errors("the kinds of schemas"):
            return f"{self._url} knows {', '.join(map(str, self._client.get_schema_types()))}"

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def _forget(self) -> None:
        """Drops the answers that the client keeps: by id, whatever the format."""
        self._client.clear_caches()  # type: ignore[no-untyped-call]

    def _add_references(self, schema: Schema, form: str | None, found: dict[str, str]) -> None:
        for reference in schema.references or ():
            if reference.name not in found:
                subject, number = str(reference.subject), int(reference.version or 0)
                version = self._client.get_version(subject, number, True, form)
                found[str(reference.name)] = str(version.schema.schema_str)
                self._add_references(version.schema, form, found)

    def _check_rules(self, what: str, schema: Schema) -> None:
        rules = schema.rule_set
        every = (*(rules.domain_rules or ()), *(rules.encoding_rules or ())) if rules else ()
        if any(rule.kind == RuleKind.TRANSFORM and not rule.disabled for rule in every):
            raise SchemaMissing(f"{what} has rules that change or encrypt values, and statestore does not run rules")

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except SchemaMissing:
            raise
        except SchemaRegistryError as error:
            raise self._answer_error(what, error) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SettingError(f"{self._url} answers, but not as a schema registry, for {what}: {CURE}") from None
        except Exception as error:  # of the HTTP client, which has two packages
            cause = f"{type(error).__name__}: {error}"
            raise SchemaRegistryAway(f"the schema registry {self._url} does not answer for {what} ({cause})") from None

    def _answer_error(self, what: str, error: SchemaRegistryError) -> Exception:
        status = error.http_status_code
        if status in (401, 403):
            return SettingError(f"the schema registry {self._url} refuses the user for {what} (HTTP {status}): {CURE}")
        if status == 404 and error.error_code in _MISSING:
            return SchemaMissing(
                f"the schema registry has no {what}, or lacks a reference of it ({error.error_message})"
            )
        if status in (409, 422):
            return SchemaRefused(f"the schema registry refuses {what} ({error.error_message}): {REFUSED_CURE}")
        if status in (408, 429) or status >= 500:
            return SchemaRegistryAway(f"the schema registry {self._url} fails for {what}: {error}")
        return SettingError(f"the schema registry {self._url} refuses to give {what}: {error}; {CURE}")


@contextmanager
def _client_settings(access: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The settings in the client's names. The client takes PEM text from files only."""
    conf: dict[str, Any] = {"url": access["url"], "timeout": SECONDS, **RETRY}
    if "username" in access:
        conf["basic.auth.user.info"] = f"{access['username']}:{access['password']}"
    if "ssl.key.password" in access:
        conf["ssl.key.password"] = str(access["ssl.key.password"])
    with pem_files(access) as files:
        yield conf | {_FILES[name]: file for name, file in files.items()}


@contextmanager
def pem_files(access: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The files with the PEM texts of the settings, by the names of the settings. They are gone after the block."""
    files: dict[str, str] = {}
    try:
        for name in _FILES:
            if name in access:
                with NamedTemporaryFile("w", suffix=".pem", delete=False) as file:  # only its owner may read it
                    files[name] = file.name
                    file.write(access[name])
        yield files
    finally:
        for path in files.values():
            os.unlink(path)


@contextmanager
def wrong_settings() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OSError) as error:  # OSError: ssl, for a PEM text that is none
        raise SettingError(f"the client of the schema registry refuses its settings: {error}; {CURE}") from None

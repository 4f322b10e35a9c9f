"""Asks the AWS Glue Schema Registry for the schemas of records, by `GetSchemaVersion` with the UUID of the framing.

The role of the job needs glue:GetSchemaVersion on `*`: the request names no registry. A schema of Glue has no references: Avro
and JSON come whole, and a .proto file imports only those of Google.

Source: docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html, read on 2026-11-27. Tested against moto.

Promises as those of `registry_client`. Only this module and the table's doorway send requests to AWS with keys of the job.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, NoCredentialsError

from processor.environment.settings.schema_registry import schema_registry_place
from processor.errors import SchemaRegistryAway, SettingError
from processor.job.kafka import registry_client
from processor.job.kafka.proto_text import compiled_text
from processor.job.kafka.registry_client import CURE, SchemaMissing, WriterSchema
from processor.values.framing import SchemaId

_NO_VERSION: Final = "00000000-0000-0000-0000-000000000000"
_MISSING: Final = ("EntityNotFoundException", "InvalidInputException")
_AGAIN: Final = ("ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException")


class GlueClient:
    """A connection to the registry. `access`: the resolved settings of [schema_registry]."""

    def __init__(self, access: Mapping[str, str]) -> None:
        self._place = schema_registry_place(access)
        config = Config(
            retries={"mode": "standard", "total_max_attempts": registry_client.RETRY["max.retries"] + 1},
            connect_timeout=registry_client.SECONDS,
            read_timeout=registry_client.SECONDS,
            user_agent_extra="statestore",
        )
        with self._errors("the settings"):
            self._client: Any = boto3.client(
                "glue", region_name=access["region"], endpoint_url=access.get("endpoint"), config=config
            )

    def schema(self, number: SchemaId) -> WriterSchema:
        """The schema of this version."""
        what = f"schema {number}"
        with self._errors(what):
            answer = self._client.get_schema_version(SchemaVersionId=number)
        if (status := answer.get("Status")) != "AVAILABLE":
            raise SchemaMissing(f"{what} is {status} in the registry, not AVAILABLE")
        kind, text = str(answer["DataFormat"]), str(answer["SchemaDefinition"])
        if kind != "PROTOBUF":
            return WriterSchema(kind, text, {})
        try:
            return WriterSchema(kind, compiled_text("the schema", text), {})
        except ValueError as error:
            raise SchemaMissing(f"{what} cannot be read: {error}") from None

    def probe(self) -> str:
        """Whether the role may read schemas: asks for a version that nobody has."""
        try:
            with self._errors("its schemas"):
                self._client.get_schema_version(SchemaVersionId=_NO_VERSION)
        except SchemaMissing:
            pass
        return f"{self._place} answers, and allows glue:GetSchemaVersion"

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise self._answer_error(what, error) from None
        except NoCredentialsError:
            raise SettingError(
                f"{self._place} needs credentials of AWS for {what}: give the job a role, or keys"
            ) from None
        except (ConnectionError, HTTPClientError) as error:
            raise SchemaRegistryAway(
                f"the schema registry {self._place} does not answer for {what} ({error})"
            ) from None
        except (BotoCoreError, ValueError) as error:
            raise SettingError(f"the client of AWS refuses {what}: {error}; {CURE}") from None

    def _answer_error(self, what: str, error: ClientError) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in _MISSING:
            return SchemaMissing(f"the schema registry has no {what}")
        if code in _AGAIN or status in (408, 429) or status >= 500:
            return SchemaRegistryAway(f"the schema registry {self._place} fails for {what}: {code}")
        if code == "AccessDeniedException":
            cure = "allow glue:GetSchemaVersion on * in the policy of the role"
            return SettingError(f"{self._place} refuses {what}: {code}: {cure}")
        return SettingError(
            f"{self._place} refuses to give {what}: {error}; correct the credentials, or [schema_registry]"
        )

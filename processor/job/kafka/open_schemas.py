"""Opens the reader and the writer of framed records that the settings ask for. The packages of the formats load only then."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from processor.errors import SettingError
from processor.values.framing import NO_SCHEMAS, FramedReader

if TYPE_CHECKING:
    from processor.job.kafka.registry_client import RegistryClient

SchemaAccess = tuple[tuple[str, str], ...]
"""The resolved settings of [schema_registry]."""


def open_schemas(access: SchemaAccess) -> FramedReader:
    """This process's reader; that of no schema without settings. Asks the registry for nothing yet. Raises SettingError."""
    if not access:
        return NO_SCHEMAS
    try:
        from processor.job.kafka.framed_records import registry_schemas
    except ImportError as error:
        raise _missing(error) from None
    return registry_schemas(access)


def open_client(access: SchemaAccess) -> "RegistryClient":
    """A client of the registry. Raises SettingError."""
    try:
        from processor.job.kafka.registry_client import RegistryClient
    except ImportError as error:
        raise _missing(error) from None
    return RegistryClient(dict(access))


def open_avro_writer(schema: str) -> Callable[[Any], bytes]:
    """The function that writes bodies by the text of an Avro schema. Raises SettingError."""
    try:
        from processor.job.kafka.avro_writer import avro_writer
    except ImportError as error:
        raise _missing(error) from None
    return avro_writer(schema)


def _missing(error: ImportError) -> SettingError:
    return SettingError(
        f"[schema_registry] needs packages that are not here ({error}): pip install 'statestore[schema-registry]'"
    )

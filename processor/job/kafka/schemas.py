"""Opens the readers and writers of framed records that the settings ask for; registers the schemas of Avro documents, and reads
published documents back. The packages of the formats load only when the settings name a schema registry.

A product whose schema the registry does not take is refused, with the registry's reason. The other products continue.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from processor.engine.plan.plan import Plan
from processor.environment.settings.schema_registry import registry_kind
from processor.errors import SettingError
from processor.language.product.avro import avro_datum, avro_schema_text
from processor.language.product.product import Product
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.framing import NO_SCHEMAS, FramedReader, is_framed
from processor.values.record import Record

if TYPE_CHECKING:
    from processor.job.kafka.registry_client import RegistryClient, SchemaSource

SchemaAccess = tuple[tuple[str, str], ...]
"""The resolved settings of [schema_registry]."""


def open_schemas(access: SchemaAccess) -> FramedReader:
    """This process's reader; `NO_SCHEMAS` without settings. Sends no request yet. Raises SettingError."""
    if not access:
        return NO_SCHEMAS
    try:
        from processor.job.kafka.framed_records import registry_schemas
    except ImportError as error:
        raise _missing(error) from None
    return registry_schemas(access)


def open_client(access: SchemaAccess) -> "SchemaSource":
    """A client of the registry, of the kind that the settings name. Raises SettingError."""
    try:
        from processor.job.kafka.framed_records import CLIENTS
    except ImportError as error:
        raise _missing(error) from None
    return CLIENTS[registry_kind(dict(access))](dict(access))


def open_confluent(access: SchemaAccess) -> "RegistryClient":
    """A client of a registry with Confluent's API. Raises SettingError."""
    try:
        from processor.job.kafka.registry_client import RegistryClient
    except ImportError as error:
        raise _missing(error) from None
    return RegistryClient(dict(access))


def open_avro_writer(schema: str) -> Callable[[Any], bytes]:
    """The function that writes bodies by the text of an Avro schema. Raises SettingError."""
    try:
        from processor.job.kafka.framed_records import avro_writer
    except ImportError as error:
        raise _missing(error) from None
    return avro_writer(schema)


def _missing(error: ImportError) -> SettingError:
    return SettingError(
        f"[schema_registry] needs packages that are not here ({error}): pip install 'statestore[schema-registry]'"
    )


NO_REGISTRY = (
    "its documents are Avro, and the settings name no schema registry: give [schema_registry] in the settings file"
)


def has_subjects(access: SchemaAccess) -> bool:
    """Whether the registry has Confluent's API, with subjects. Other registries only give schemas by their ids."""
    return bool(access) and registry_kind(dict(access)) == "confluent"


def registration_refusal(access: SchemaAccess) -> str:
    """Why no schema of a document can be registered; empty where it can."""
    if not access or has_subjects(access):
        return ""
    return (
        f'its documents are Avro, and [schema_registry] has kind = "{registry_kind(dict(access))}": statestore registers schemas '
        "by Confluent's API only, which Apicurio has, too, at /apis/ccompat/v7: name this API, or remove `format: avro`"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchemas:
    """`ids`: product -> the id of its schema; `refused`: product -> why it has none. Products of JSON are in neither."""

    ids: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistration:
    """Registers the schema of each Avro product under `<topic>-value`. `access`: the resolved settings of [schema_registry].
    `known`: the ids that the registry gave, by subject and text."""

    access: SchemaAccess
    known: dict[tuple[str, str], int] = field(default_factory=dict)

    def register(self, plan: Plan) -> RegisteredSchemas:
        """Registers the schemas of a plan. Raises SchemaRegistryAway where the registry does not answer."""
        products = avro_products(plan)
        entities = plan.declared_entities
        wanted = {p.name: (f"{p.topic}-value", avro_schema_text(p, entities)) for p in products}
        if not self.access:
            return RegisteredSchemas(refused=dict.fromkeys(wanted, NO_REGISTRY))
        if refusal := registration_refusal(self.access):
            return RegisteredSchemas(refused=dict.fromkeys(wanted, refusal))
        refused: dict[str, str] = {}
        for name, schema in wanted.items():
            try:
                self._learn(*schema)
            except (SettingError, ValueError) as error:
                refused[name] = str(error)
        ids = {name: self.known[schema] for name, schema in wanted.items() if name not in refused}
        return RegisteredSchemas(ids=ids, refused=refused)

    def _learn(self, subject: str, text: str) -> None:
        if (subject, text) not in self.known:
            with closing(open_confluent(self.access)) as client:
                self.known[subject, text] = client.register(subject, text)


def avro_products(plan: Plan) -> list[Product]:
    """The products whose documents are Avro. A retracted product has tombstones only."""
    return [one.product for one in plan.products.values() if one.product.format == "avro" and not one.retracted]


def as_json(
    records: Iterable[Record], product: Product, entities: Mapping[str, Entity], access: SchemaAccess
) -> Iterator[Record]:
    """The messages of an Avro product with their documents as JSON. A value that is no document of it stays as it is. Raises
    SettingError, and SchemaRegistryAway where the registry does not answer."""
    datum, schemas = avro_datum(product, entities), open_schemas(access)
    for record in records:
        if record.value is None or not is_framed(record.value):
            yield record
            continue
        schemas.fetch(record)
        try:
            document = datum.read(schemas.read(record, "value").payload)
        except (ValueError, TypeError, AttributeError):  # of another program, or of a version that shows other rows
            yield record
        else:
            yield replace(record, value=canonical_json.encode(document))

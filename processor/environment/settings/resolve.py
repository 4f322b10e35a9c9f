"""The settings with the values of their secrets, and what they lead to: the registry, and a store at an address.

The address of a store, as `statestore copy` takes it:

    the name of a kind of store (dynamodb, postgres)    the table of the settings, in this store
    dynamodb://REGION/TABLE?endpoint=http://host:port   a table in DynamoDB
    postgresql://USER@HOST:PORT/DATABASE?table=TABLE    a table in Postgres; other parameters (sslmode) go to Postgres

A part that an address leaves out comes from the settings, and so does the password of a user in Postgres.

Promises: an error names the setting and the reference, never the value. A process reads each secret of Secrets Manager once, with
at most 3 attempts. Does not: read a place again for a resolved value. Only this module sends requests to Secrets Manager.
"""

import binascii
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from processor.environment.settings.kafka import EXAMPLES, JAVA, LIBRDKAFKA, PEM, Secret, is_reference
from processor.environment.settings.settings import PASSWORD, PASSWORDS, Settings
from processor.environment.stores.kinds import KINDS, names
from processor.errors import SettingError

if TYPE_CHECKING:
    from registry.repository import Registry


def open_registry(settings: Settings) -> "Registry":
    """The registry at `settings.registry`, in the Postgres schema `settings.registry_schema`; use it in a `with` block."""
    from registry.repository import Registry

    return Registry(settings.registry, settings.registry_schema)


PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""In an encrypted key: the identifier of its scheme, 1.2.840.113549.1.5.13."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def resolve_registry(settings: Settings) -> Settings:
    """The settings with the whole addresses of the registry and of the store, with passwords, in place of references."""
    resolved: dict[str, Any] = {}
    for address, password in PASSWORDS.items():
        resolved |= {address: _address(settings, address, password), password: ""}
    return replace(settings, **resolved)


def _address(settings: Settings, setting: str, password_setting: str) -> str:
    if not getattr(settings, setting):
        return ""
    address = resolve_reference(setting, getattr(settings, setting))
    return _with_password(address, password_setting, getattr(settings, password_setting))


def database_address(address: str, password: str, flags: tuple[str, str] = ("--database", "--password")) -> str:
    """The address of a source database with its password, in place of references. `flags`: gave the two. Raises SettingError for
    a secret in the command itself, where other users may read it."""
    own, other = flags
    if not is_reference(address) and PASSWORD.search(address):
        raise SettingError(f"{own}: the address holds a password; leave it out, and for {other} {EXAMPLES}")
    if password and not is_reference(password):
        raise SettingError(f"{other} holds the password itself: {EXAMPLES}")
    return _with_password(resolve_reference(own, address), other, password)


def _with_password(address: str, setting: str, reference: str) -> str:
    if reference:
        secret = quote(resolve_reference(setting, reference), safe="")
        address += f"{'&' if '?' in address else '?'}password={secret}"
    return Secret(address)


def resolve_kafka(kafka: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The settings of [kafka] with the values of their references."""
    return tuple((name, _resolved("kafka", name, value)) for name, value in kafka)


def resolve_schema_registry(access: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The settings of [schema_registry] with the values of their references."""
    return tuple((name, _resolved("schema_registry", name, value)) for name, value in access)


def resolve_tables(settings: Settings) -> Settings:
    """The settings with the values of the references in [kafka], [schema_registry] and [secrets]: workers have neither the
    variables nor the files that these name."""
    access = resolve_schema_registry(settings.schema_registry)
    secrets = tuple((name, _secret(name, reference)) for name, reference in settings.secrets)
    return replace(settings, kafka=resolve_kafka(settings.kafka), schema_registry=access, secrets=secrets)


def secret_readers(settings: Settings) -> dict[str, Callable[[], str]]:
    """By the name of each secret of [secrets], what reads its value at the first call."""
    return {name: cache(partial(_secret, name, reference)) for name, reference in settings.secrets}


def _secret(name: str, reference: str) -> str:
    value = resolve_reference(f"[secrets] {name}", reference)
    if not value:
        raise SettingError(f"[secrets] {name}: {reference} is empty")
    return value


def resolve_reference(setting: str, text: str) -> str:
    """The text in the place that a reference names; any other text as it is. `setting`: its name, for errors. Raises
    SettingError."""
    if isinstance(text, Secret) or not is_reference(text):
        return text
    kind, _, place = text.partition(":")
    try:
        return Secret({"env": _variable, "file": _file, "secret": _stored}[kind](place))
    except SettingError as error:
        raise SettingError(f"{setting}: {error}") from None


def _variable(name: str) -> str:
    if name not in os.environ:
        raise SettingError(f"the variable {name} is not set")
    return os.environ[name]


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingError(f"the file {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SettingError(f"the file {path} is not UTF-8 text") from None


def _stored(place: str) -> str:
    arn, _, field = place.partition("#")
    text = read_secret(arn)
    if not field:
        return text
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise SettingError(f"the secret {arn} is no JSON object, so it has no field {field}")
    if not isinstance(members.get(field), str):
        raise SettingError(f"the secret {arn} has no field {field} with a text")
    return str(members[field])


_ARN = re.compile(r"arn:[a-z-]+:secretsmanager:([a-z0-9-]+):\d{12}:secret:[\w/+=.@!-]+")
_CURES = {
    "ResourceNotFoundException": "there is no such secret, or it has no value: correct the ARN",
    "AccessDeniedException": "allow secretsmanager:GetSecretValue on it, and kms:Decrypt on its own key if it has one",
    "UnrecognizedClientException": "give valid AWS credentials",
    "ExpiredTokenException": "renew the AWS credentials",
}


@lru_cache
def read_secret(arn: str) -> str:
    """The text of the secret, from the region of its ARN. Raises SettingError with the ARN and the cure."""
    import boto3  # no other reference needs it
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    found = _ARN.fullmatch(arn)
    if found is None:
        raise SettingError(f"{arn!r} is no ARN of a secret: give arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME")
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 3},
        connect_timeout=5,
        read_timeout=10,
        user_agent_extra="statestore",
    )
    try:
        client = boto3.client("secretsmanager", region_name=found[1], config=config)
        text = client.get_secret_value(SecretId=arn).get("SecretString")
    except ClientError as error:
        code = error.response["Error"].get("Code", "")
        raise SettingError(f"the secret {arn} cannot be read: {code}: {_CURES.get(code, error)}") from None
    except BotoCoreError as error:
        raise SettingError(f"the secret {arn} cannot be read: {error}") from None
    if text is None:
        raise SettingError(f"the secret {arn} holds bytes: store it as text")
    return str(text)


def _resolved(table: str, name: str, value: str) -> str:
    text = resolve_reference(f"[{table}] {name}", value)
    if text is value:
        return value
    if name in PEM:
        _check_pem(table, name, value, text)
    elif not name.startswith((LIBRDKAFKA, JAVA)) and (not text or _CONTROL.search(text)):
        raise SettingError(f"[{table}] {name}: {value} is not text in one line")
    return text


def _check_pem(table: str, name: str, reference: str, text: str) -> None:
    """Raises SettingError for a text that one of the clients cannot read."""
    block = re.search(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)", text)
    if block is None or block[1] not in PEM[name]:
        begin = " or ".join(f"`BEGIN {kind}`" for kind in PEM[name])
        cure = ": convert the key with `openssl pkcs8 -topk8`" if block and block[1].endswith("KEY") else ""
        raise SettingError(f"[{table}] {name}: {reference} has no PEM text that begins with {begin}{cure}")
    try:
        encoded = binascii.a2b_base64(block[2])
    except ValueError:
        raise SettingError(f"[{table}] {name}: {reference} has no PEM text: its lines are not base64") from None
    if table == "kafka" and block[1].startswith("ENCRYPTED") and PBES2 in encoded:
        raise SettingError(
            f"[{table}] {name}: Java 17 cannot read the encryption of {reference} (PBES2): encrypt the key with `openssl pkcs8 "
            "-topk8 -v1 PBE-SHA1-3DES`, or leave it unencrypted"
        )


def address_forms() -> str:
    """The forms of an address, for a message."""
    return f"{', '.join(sorted(kind.addresses.form for kind in KINDS.values()))}, or only {names()}"


def settings_at(flag: str, address: str, settings: Settings) -> Settings:
    """The settings with the table at an address, or at the place that a reference names (`env:NAME`). Raises SettingError, which
    names the flag."""
    if not is_reference(address) and PASSWORD.search(address):
        raise SettingError(f"{flag}: the address holds a password; leave it out, and give --store-password")
    given = resolve_reference(flag, address)
    if given in KINDS:
        return replace(settings, store=given)
    try:
        url = urlsplit(given)
        query = dict(parse_qsl(url.query))
    except ValueError:
        raise SettingError(f"{flag}: the address is no URL: give {address_forms()}") from None
    for kind in KINDS.values():
        if url.scheme in kind.addresses.schemes:
            changes = kind.addresses.read(url, query, settings)
            if changes is not None:
                found = replace(settings, store=kind.name, **changes)
                return resolve_registry(found) if kind.passwords else found
    raise SettingError(f"{flag}: there is no store at {re.sub('[?].*', '', address)!r}: give {address_forms()}")

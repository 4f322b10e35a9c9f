"""The address of a store, as `statestore copy` takes it.

    the name of a kind of store (dynamodb, postgres)    the table of the settings, in this store
    dynamodb://REGION/TABLE?endpoint=http://host:port   a table in DynamoDB
    postgresql://USER@HOST:PORT/DATABASE?table=TABLE    a table in Postgres; other parameters (sslmode) go to Postgres

A part that an address leaves out comes from the settings, and so does the password of a user in Postgres.
"""

import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from processor.environment.settings.resolve_secrets import resolve_reference, resolve_registry
from processor.environment.settings.secret_references import is_reference
from processor.environment.settings.settings import PASSWORD, Settings
from processor.environment.stores.kinds import KINDS, names
from processor.errors import SettingError


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

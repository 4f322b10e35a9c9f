"""The address of a store, as `statestore copy` takes it.

    dynamodb, postgres                                  the table of the settings, in this store
    dynamodb://REGION/TABLE?endpoint=http://host:port   a table in DynamoDB
    postgresql://USER@HOST:PORT/DATABASE?table=TABLE    a table in Postgres; other parameters (sslmode) go to Postgres

A part that an address leaves out comes from the settings, and so does the password of a user in Postgres.
"""

import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from processor.errors import SettingError
from processor.settings.resolve_secrets import resolve_reference, resolve_registry
from processor.settings.secret_references import is_reference
from processor.settings.settings import PASSWORD, Settings

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_FORMS = "give dynamodb://REGION/TABLE, postgresql://USER@HOST:PORT/DATABASE, or only dynamodb or postgres"


def settings_at(flag: str, address: str, settings: Settings) -> Settings:
    """The settings with the table at an address, or at the place that a reference names (`env:NAME`). Raises SettingError, which
    names the flag."""
    if not is_reference(address) and PASSWORD.search(address):
        raise SettingError(f"{flag}: the address holds a password; leave it out, and give --store-password")
    given = resolve_reference(flag, address)
    if given == "dynamodb":
        return replace(settings, store="dynamodb")
    if given == "postgres":
        return replace(settings, store="postgres")
    try:
        url = urlsplit(given)
        kind, host, path, query = url.scheme, url.netloc, url.path.strip("/"), dict(parse_qsl(url.query))
    except ValueError:
        raise SettingError(f"{flag}: the address is no URL: {_FORMS}") from None
    if kind == "dynamodb" and query.keys() <= {"endpoint"}:
        return replace(
            settings,
            store="dynamodb",
            region=host or settings.region,
            table=path or settings.table,
            endpoint=query.get("endpoint", "" if host else settings.endpoint),
        )
    if kind in _POSTGRES:
        table = query.pop("table", settings.table)
        plain = urlunsplit(url._replace(query=urlencode(query)))
        return resolve_registry(replace(settings, store="postgres", store_url=plain, table=table))
    raise SettingError(f"{flag}: there is no store at {re.sub('[?].*', '', address)!r}: {_FORMS}")

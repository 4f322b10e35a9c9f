"""The forms in which Debezium writes its placeholder: a value that did not change, and that the source did not read (TOAST).

The connector's `unavailable.value.placeholder` is one text, and the type of a column decides the form:

    text, xml, json, numeric as text        the text
    bytea                                   its bytes in Base64, also for URLs, or in hex
    text[], json[]; bytea[]; uuid[]         an array with the text; with such bytes; with the UUID of the text (Java's version 3)
    smallint[], int[], bigint[], date[],    an array with a number for each byte
    float8[]; numeric[] as bytes            such numbers as Debezium writes decimals
    hstore, hstore[]                        {text: text}, as an object or as JSON text

Debezium 3.6.3 writes null in place of some of these. The default text always counts, next to that of the entity: a topic may hold
records from before the connector's setting.
"""

from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from typing import Any, Final
from uuid import UUID

from processor.values import canonical_json

PLACEHOLDER: Final = "__debezium_unavailable_value"
"""Debezium's default."""
HEX: Final = "hex:"
"""Debezium reads the rest of such a setting as bytes in hex."""
_LEAST: Final = 8
"""Bytes of a placeholder whose hex digits are not taken for another value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """texts: the forms that are text. plain: those that also tell of a value that holds them inside. lists: the forms that are
    arrays. maps: those that are objects."""

    texts: frozenset[str]
    plain: frozenset[str]
    lists: tuple[list[Any], ...]
    maps: tuple[dict[str, Any], ...]

    def is_in(self, value: Any) -> bool:
        """Whether the value is the placeholder, in any form."""
        if type(value) is str:
            return value in self.texts
        if type(value) is list:
            return value in self.lists
        return type(value) is dict and value in self.maps

    def is_inside(self, value: Any) -> bool:
        """Whether a member or an element of the value, at any depth, is the text."""
        if type(value) is str:
            return value in self.plain
        if type(value) is dict:
            return any(map(self.is_inside, value.values()))
        return type(value) is list and any(map(self.is_inside, value))


@lru_cache(maxsize=256)
def placeholder_of(setting: str) -> Placeholder:
    """The forms of the placeholder that the connector has by this setting, and of the default. Raises ValueError for wrong hex
    digits."""
    own = _forms(_bytes(setting))
    if setting == PLACEHOLDER:
        return own
    default = placeholder_of(PLACEHOLDER)
    return Placeholder(
        texts=own.texts | default.texts,
        plain=own.plain | default.plain,
        lists=own.lists + default.lists,
        maps=own.maps + default.maps,
    )


def _bytes(setting: str) -> bytes:
    return bytes.fromhex(setting.removeprefix(HEX)) if setting.startswith(HEX) else setting.encode()


def _forms(data: bytes) -> Placeholder:
    text = data.decode(errors="replace")
    base64, url = b64encode(data).decode(), urlsafe_b64encode(data).decode()
    encoded = {base64, url, url.rstrip("=")} | ({data.hex()} if len(data) >= _LEAST else set())
    json_text, as_map = canonical_json.dumps({text: text}), {text: text}
    numbers = [byte - 256 if byte > 127 else byte for byte in data]
    unscaled = [b64encode(bytes([byte])).decode() for byte in data]
    scaled = [{"scale": 0, "value": one} for one in unscaled]
    singles = sorted({text, json_text, name_uuid(data)} | encoded)
    return Placeholder(
        texts=frozenset({text, json_text} | encoded),
        plain=frozenset({text}),
        lists=(*([one] for one in singles), [as_map], numbers, unscaled, scaled),
        maps=(as_map,),
    )


def name_uuid(data: bytes) -> str:
    """The UUID that Java's `UUID.nameUUIDFromBytes` makes of bytes."""
    return str(UUID(bytes=md5(data, usedforsecurity=False).digest(), version=3))

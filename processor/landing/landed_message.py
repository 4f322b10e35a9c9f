"""The messages of a product's topic, as a target takes them."""

from collections.abc import Callable, Iterable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from typing import NamedTuple

import simplejson

from processor.records.record import Record

HEADER = "statestore."
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class LandedMessage(NamedTuple):
    """A message of a product. `key`, `document`: as JSON text; `document` None for a tombstone. `sequence`: rises with each
    message of a root. `version`: the product's version. `published_at`: Kafka's time, in milliseconds since 1970."""

    partition: int
    offset: int
    key: str
    document: str | None
    sequence: int
    version: int
    published_at: int

    @property
    def key_hash(self) -> bytes:
        """SHA-256 of the key, for what must outlive a deleted document without its values."""
        return sha256(self.key.encode()).digest()


def read_message(record: Record, product: str) -> LandedMessage | None:
    """The message in a record; None for a record that no job of the product published."""
    headers = {name.removeprefix(HEADER): text or b"" for name, text in record.headers if name.startswith(HEADER)}
    sequence, version = headers.get("sequence", b""), headers.get("product_version", b"")
    if headers.get("product", b"").decode(errors="replace") != product or not (
        sequence.isdigit() and version.isdigit()
    ):
        return None
    return LandedMessage(
        partition=record.partition,
        offset=record.offset,
        key=(record.key or b"").decode(errors="backslashreplace"),
        document=None if record.value is None else record.value.decode(errors="backslashreplace"),
        sequence=int(sequence),
        version=int(version),
        published_at=record.timestamp,
    )


def latest(messages: Iterable[LandedMessage]) -> list[LandedMessage]:
    """The message of each key with the highest sequence, in the order of the keys."""
    found: dict[str, LandedMessage] = {}
    for message in messages:
        known = found.get(message.key)
        if known is None or message.sequence > known.sequence:
            found[message.key] = message
    return [found[key] for key in sorted(found)]


def write_latest(
    messages: Sequence[LandedMessage], write: Callable[[list[LandedMessage]], list[tuple[LandedMessage, str]]]
) -> list[tuple[LandedMessage, str]]:
    """Writes the latest message of each key. A refused document leaves its place to the message before it. `write` returns the
    refused messages with the reason, and so does this function."""
    refused: list[tuple[LandedMessage, str]] = []
    while messages:
        new = write(latest(messages))
        refused += new
        sequences = {message.key: message.sequence for message, _ in new}
        messages = [one for one in messages if one.sequence < sequences.get(one.key, 0)]
    return refused


def fingerprint(text: str) -> bytes:
    """A hash that is equal for equal JSON values: neither the order of members nor the form of a number counts."""
    value = simplejson.loads(text, parse_int=_number, parse_float=_number)
    return sha256(simplejson.dumps(value, use_decimal=True, sort_keys=True).encode()).digest()


def _number(text: str) -> Decimal:
    number = _EXACT.create_decimal(text)
    return number.normalize(_EXACT) if number else Decimal(0)

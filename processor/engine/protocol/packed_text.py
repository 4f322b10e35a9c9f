"""Text of the job's items, compressed. An item of 400 KB could unpack to 400 MB: no item of the job comes near."""

import zlib

from processor.errors import StatestoreError

MOST_BYTES = 2**26
"""The most bytes of a text. The job writes 390 KB, and more only for one row with many former keys."""


def pack(text: bytes) -> bytes:
    """The text, in UTF-8, as zlib's bytes."""
    return zlib.compress(text)


def unpack(packed: bytes) -> bytes:
    """The text in UTF-8. Raises StatestoreError for bytes that would unpack to more than MOST_BYTES."""
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(packed, MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise StatestoreError(
            f"an item of the job unpacks to more than {MOST_BYTES:,} bytes, so another program wrote it: let only the job write "
            "the table"
        )
    return text

"""The bytes of a record as lines for people. Pure."""

from collections.abc import Iterator

HEX_COLUMNS = 16


def readable_lines(data: bytes | None) -> Iterator[str]:
    """Bytes as text, else in hexadecimal; each line is indented, so none looks like a line of statestore."""
    if data is None:
        yield "    null"
        return
    try:
        for line in data.decode().split("\n"):
            yield f"    {line}"
    except UnicodeDecodeError:
        for first in range(0, len(data), HEX_COLUMNS):
            row = data[first : first + HEX_COLUMNS]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            yield f"    {first:08x}  {row.hex(' '):<{3 * HEX_COLUMNS}} |{text}|"

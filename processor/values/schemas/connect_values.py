"""Values and names as Kafka Connect's JsonConverter writes them: bytes as base64, numbers int or Decimal."""

from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from struct import pack
from typing import Any, Final

from processor.values.record import Value

ToJson = Callable[[Any], Value]
"""Turns a value of a reader that is not null into its JSON value."""

CONNECT: Final = "org.apache.kafka.connect.data."
DECIMAL: Final = f"{CONNECT}Decimal"
VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"


def shortest_float(number: float) -> float:
    """The double whose text is the shortest of a 32-bit float: 0.1, not 0.10000000149011612."""
    for digits in (6, 7, 8):
        short = float(f"{number:.{digits}g}")
        if pack("f", short) == pack("f", number):
            return short
    return float(f"{number:.9g}")


def float_value(number: float) -> Value:
    """A double as JSON has it. Kafka Connect writes NaN and the infinities as text."""
    if isfinite(number):
        return Decimal(repr(number))
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def base64_text(data: bytes) -> str:
    """Bytes as JSON has them."""
    return b64encode(data).decode()


def unscaled_text(number: int) -> str:
    """The unscaled number of a decimal, as Java's BigInteger has its bytes: no more than it needs. A `fixed` has more."""
    size = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return base64_text(number.to_bytes(size, "big", signed=True))

"""Prices of DynamoDB's requests: those of one region here, those on demand of other regions in a file (TOML).

region = "eu-west-1"
date = "2026-11"
write = 0.705          # dollars a million write request units
read = 0.141           # dollars a million read request units
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from processor.environment.settings.settings import read_toml
from processor.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars a million request units in a region, as of `date`."""

    region: str
    date: str
    write: Decimal
    read: Decimal

    def dollars(self, write_units: int | Decimal, read_units: Decimal) -> Decimal:
        """Dollars a million events, if one event takes so many units."""
        return write_units * self.write + read_units * self.read


DEFAULT = Prices(region="us-east-1", date="2026-11", write=Decimal("0.625"), read=Decimal("0.125"))
_WRITE_HOUR, _READ_HOUR, _USED = Decimal("0.00065"), Decimal("0.00013"), Decimal("0.7")
"""Dollars an hour for provisioned capacity of a unit a second, and the part of it that a steady rate uses (docs/costs.md)."""


def _provisioned(discount: str) -> Prices:
    write, read = (hour * 1_000_000 / 3600 / _USED * (1 - Decimal(discount)) for hour in (_WRITE_HOUR, _READ_HOUR))
    return replace(DEFAULT, write=write, read=read)


BILLING: Final[Mapping[str, Prices]] = {
    "on demand": DEFAULT,
    "provisioned": _provisioned("0"),
    "reserved for a year": _provisioned("0.54"),
    "for three years": _provisioned("0.77"),
}
"""The prices of a million units by how AWS bills them."""
MONTH_SECONDS: Final = 730 * 3_600


def read_prices(path: str) -> Prices:
    """Reads the prices of a file. Raises SettingError, which names the file and what is wrong."""
    try:
        table = read_toml(Path(path), parse_float=Decimal)
    except OSError as error:
        raise SettingError(f"the prices {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"the prices {path} are not TOML: {error}") from None
    if table.keys() != {"region", "date", "write", "read"}:
        raise SettingError(f"the prices {path} must have region, date, write and read, and nothing else")
    try:
        write, read = Decimal(table["write"]), Decimal(table["read"])
        if not (write.is_finite() and read.is_finite() and min(write, read) >= 0):
            raise ValueError
    except (InvalidOperation, TypeError, ValueError):
        raise SettingError(
            f"the prices {path}: write and read must be dollars a million units, such as 0.625"
        ) from None
    return Prices(region=str(table["region"]), date=str(table["date"]), write=write, read=read)

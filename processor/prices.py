"""What DynamoDB's on-demand requests cost, by region: the one table of prices, and a file that says others.

region = "eu-west-1"
date = "2026-11"
write = 0.705          # dollars a million write request units
read = 0.141           # dollars a million read request units
"""

import tomllib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from processor.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars a million request units in a region, looked up at `date`."""

    region: str
    date: str
    write: Decimal
    read: Decimal

    def dollars(self, write_units: int | Decimal, read_units: Decimal) -> Decimal:
        """What so many units of one event cost for a million events."""
        return write_units * self.write + read_units * self.read


DEFAULT = Prices(region="us-east-1", date="2026-11", write=Decimal("0.625"), read=Decimal("0.125"))


def read_prices(path: str) -> Prices:
    """The prices of a file. Raises SettingError naming what is wrong."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise SettingError(f"the prices {path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"the prices {path} are not TOML: {error}") from None
    if table.keys() != {"region", "date", "write", "read"}:
        raise SettingError(f"the prices {path} must say region, date, write and read, and nothing else")
    try:
        write, read = Decimal(table["write"]), Decimal(table["read"])
    except (InvalidOperation, TypeError, ValueError):
        raise SettingError(f"the prices {path}: write and read are dollars a million units, such as 0.625") from None
    return Prices(region=str(table["region"]), date=str(table["date"]), write=write, read=read)

"""Time zones by the rules of one release of the IANA data, and not by those of the machine.

The rules are those of the package `tzdata`, whatever files the system has. An expression names
its zone and the release: `local time` and `moment of` refuse another release than the installed one. So two machines never
make different documents of one definition, and a new release changes documents only where an operator applies it.

A local time has the form of a moment (`2026-03-29T02:30:00`). As in PostgreSQL (`DetermineTimeZoneOffset` of its datetime.c, read
2026-11-27), a local time that the clocks skip is read by the offset before the change. One that they show twice is the later
moment. Both are the smaller of the two offsets.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from processor.errors import SettingError

LOCAL_TIME: Final = "local time(timestamp,string,string)"
MOMENT_OF: Final = "moment of(timestamp,string,string)"
LARGEST_OFFSET: Final = "24 h"
"""More than any zone differs from UTC."""
_PROBE: Final = timedelta(hours=12)
"""No zone changes its clocks there and back within this time."""


@lru_cache(maxsize=1)
def installed() -> str:
    """The release of the installed rules, `2026f`. Raises SettingError where there are none."""
    try:
        from tzdata import IANA_VERSION
    except ImportError:
        raise SettingError("`at time zone` needs the rules of time zones: pip install tzdata") from None
    return str(IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> dict[str, str]:
    """The zones with a place, `Europe/Zurich`, by their names in lower case."""
    return {name.lower(): name for name in _all_names() if "/" in name}


@lru_cache(maxsize=1)
def short_names() -> frozenset[str]:
    """The other names, in capital letters. PostgreSQL reads some of them as an offset without summer time (`CET`)."""
    return frozenset(name.upper() for name in _all_names() if "/" not in name)


def _all_names() -> list[str]:
    installed()
    names: list[str] = _file("zones").read_text(encoding="utf-8").split()
    return names


class OtherRelease(SettingError):
    """An expression names another release than the installed one."""


@lru_cache(maxsize=1024)
def zone(name: str, release: str) -> ZoneInfo:
    """The rules of a zone. Raises OtherRelease where another release is installed."""
    if release != installed():
        raise OtherRelease(other_release([release]))
    with _file("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _file(*path: str) -> Any:
    from importlib.resources import files  # few definitions need it: `check` starts sooner

    return files("tzdata").joinpath(*path)


def other_release(releases: Sequence[str], products: str = "the definitions", *, joined: bool = False) -> str:
    """What is wrong, and the cure, where products have the rules of these releases, and another one is installed. `joined`: they
    join or group by a local time, so that stored rows have it."""
    again = "`statestore remove` and `statestore apply` them" if joined else "`statestore apply` them again"
    return (
        f"{products}: `at time zone` by the rules of tzdata {' and '.join(releases)}, and tzdata {installed()} is installed: "
        f"pip install {' or '.join(map(package_of, releases))}, or {again} with the installed one, which publishes their "
        "documents again"
    )


def package_of(release: str) -> str:
    """The package with a release, as pip names it: tzdata==2026.6 for 2026f."""
    return f"tzdata=={release[:4]}.{ord(release[4:5] or 'a') - ord('a') + 1}"


def local_time(moment: str, name: str, release: str) -> str | None:
    """The local time of a zone at a moment. None outside the years 1 to 9999."""
    rules = zone(name, release)
    try:
        return _text(datetime.fromisoformat(moment).replace(tzinfo=UTC).astimezone(rules))
    except OverflowError:
        return None


def moment_of(local: str, name: str, release: str) -> str | None:
    """The moment of a local time of a zone. None outside the years 1 to 9999."""
    rules, found = zone(name, release), datetime.fromisoformat(local)
    try:
        return _text(found - min(_offset(rules, found), _offset(rules, found.replace(fold=1))))
    except OverflowError:
        return None


def _text(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if moment.microsecond else text


def _offset(rules: ZoneInfo, local: datetime) -> timedelta:
    return rules.utcoffset(local) or timedelta()


def breaks(function: str, name: str, release: str, first: str, last: str) -> Iterator[str]:
    """The arguments of a function, later than `first` and up to `last`, from which on the zone has another offset, in order."""
    for year in range(max(1, int(first[:4]) - 1), min(9999, int(last[:4]) + 2)):
        for moment, local in _changes(name, release, year):
            at = moment if function == LOCAL_TIME else local
            if first < at <= last:
                yield at


def known_times(name: str, release: str, year: int) -> Iterator[tuple[str, str]]:
    """Moments of a year that show the rules of a zone, each with its local time: its begin, and each change of the clocks."""
    yield (begin := f"{year}-01-01T00:00:00"), local_time(begin, name, release) or ""
    for moment, local in _changes(name, release, year):
        before = _text(datetime.fromisoformat(moment) - timedelta(seconds=1))
        yield from ((moment, local), (before, local_time(before, name, release) or ""))


@lru_cache(maxsize=1024)
def _changes(name: str, release: str, year: int) -> tuple[tuple[str, str], ...]:
    """The moments of a year at which the clocks of a zone change, each with the local time after it."""
    rules, found = zone(name, release), list[tuple[str, str]]()
    at, end = datetime(year, 1, 1), datetime(min(year + 1, 9999), 1, 1)

    def offset(moment: datetime) -> timedelta:
        return moment.replace(tzinfo=UTC).astimezone(rules).utcoffset() or timedelta()

    try:
        while at < end:
            low, high = at, min(at + _PROBE, end)
            at, before = high, offset(low)
            if offset(high) == before:
                continue
            while high - low > timedelta(seconds=1):
                middle = (low + (high - low) // 2).replace(microsecond=0)
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            found.append((_text(high), _text(high + offset(high))))
    except OverflowError:
        pass
    return tuple(found)

"""Local times, by the files of the package `tzdata` alone."""

import struct
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from processor.language.product.expressions import zones

RELEASE = zones.installed()


@pytest.mark.parametrize(
    ("zone", "moment", "local"),
    [
        ("Europe/Zurich", "2026-03-29T00:59:59.5", "2026-03-29T01:59:59.5"),
        ("Europe/Zurich", "2026-03-29T01:00:00", "2026-03-29T03:00:00"),
        ("Europe/Zurich", "2026-10-25T01:30:00", "2026-10-25T02:30:00"),
        ("Europe/Dublin", "2026-10-25T01:30:00", "2026-10-25T01:30:00"),
        ("Pacific/Apia", "2011-12-30T10:00:00", "2011-12-31T00:00:00"),
        ("Africa/Monrovia", "1970-01-01T00:00:00", "1969-12-31T23:15:30"),
        ("Asia/Tokyo", "9999-12-31T14:59:59.999999", "9999-12-31T23:59:59.999999"),
    ],
)
def test_a_moment_has_one_local_time(zone: str, moment: str, local: str) -> None:
    assert zones.local_time(moment, zone, RELEASE) == local
    assert zones.moment_of(local, zone, RELEASE) == moment


def test_a_local_time_that_clocks_skip_or_show_twice_is_the_later_moment() -> None:
    assert zones.moment_of("2026-03-29T02:30:00", "Europe/Zurich", RELEASE) == "2026-03-29T01:30:00"
    assert zones.moment_of("2026-10-25T02:30:00", "Europe/Zurich", RELEASE) == "2026-10-25T01:30:00"
    assert zones.local_time("2026-10-25T00:30:00", "Europe/Zurich", RELEASE) == "2026-10-25T02:30:00"


def test_a_time_outside_the_years_of_timestamps_is_null() -> None:
    assert zones.local_time("9999-12-31T15:00:00", "Asia/Tokyo", RELEASE) is None
    assert zones.local_time("0001-01-01T00:00:00", "America/New_York", RELEASE) is None
    assert zones.moment_of("0001-01-01T00:00:00", "Asia/Tokyo", RELEASE) is None


def test_the_rules_are_those_of_the_package_on_every_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("zoneinfo.TZPATH", (str(tmp_path),))
    zones.zone.cache_clear()
    assert zones.local_time("2026-07-01T00:00:00", "Europe/Zurich", RELEASE) == "2026-07-01T02:00:00"


def changes_in_file(name: str) -> list[int]:
    """The moments of the file of a zone at which its offset changes, in seconds since 1970."""
    data = zones._file("zoneinfo", *name.split("/")).read_bytes()
    header = struct.Struct(">4s1s15x6I")

    def counts(at: int) -> tuple[int, ...]:
        return tuple(header.unpack_from(data, at)[2:])

    _, _, leaps, moments, types, letters = first = counts(0)
    at = header.size + moments * 5 + types * 6 + letters + leaps * 8 + first[0] + first[1]
    _, _, _, moments, types, _ = counts(at)
    at += header.size
    times = struct.unpack_from(f">{moments}q", data, at)
    kinds = data[at + moments * 8 : at + moments * 9]
    offsets = [struct.unpack_from(">i", data, at + moments * 9 + n * 6)[0] for n in range(types)]
    found = [offsets[kind] for kind in kinds]
    before = [offsets[0], *found][: len(found)]
    return [time for time, now, then in zip(times, found, before, strict=True) if now != then]


@pytest.mark.rest
def test_the_search_finds_each_change_of_the_clocks_from_1970_on() -> None:
    begin, end = datetime(1970, 1, 1), datetime(2037, 1, 1)
    for name in list(zones.zone_names().values())[::15]:
        found = {moment for year in range(1970, 2037) for moment, _ in zones._changes(name, RELEASE, year)}
        written = {begin + timedelta(seconds=at) for at in changes_in_file(name) if at > 0}
        missed = {at.isoformat() for at in written if begin < at < end} - found
        assert (name, missed) == (name, set())

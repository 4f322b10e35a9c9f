"""Local times and moments are those of Postgres: in each zone, around the changes of its clocks, by the rules of Postgres."""

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import psycopg
import pytest

from processor.errors import OracleError
from processor.language.definitions.load import load
from processor.language.product.expressions import zones
from processor.language.product.expressions.catalogue import FUNCTIONS
from processor.tools.inspect.oracle import oracle

RELEASE = zones.installed()
YEARS = (1, 1700, 1883, 1916, 1945, 1969, 1970, 1987, 1995, 2011, 2026, 2027, 2037, 2038, 2200, 2399, 9998, 9999)
AROUND = ("-1 d", "-1 h", "-30 min", "-1 s", "0 s", "1 s", "29 min", "30 min", "1 h", "90 min", "2 h", "1 d")


@pytest.fixture
def rules_of_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of zones that the server reads, in place of those of the package: their releases differ."""
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'").fetchone()
    assert found
    folder = Path(found[0]) / "timezone"

    def zone(name: str, release: str) -> ZoneInfo:
        with (folder / name).open("rb") as file:
            return ZoneInfo.from_file(file, key=name)

    monkeypatch.setattr(zones, "zone", zone)
    zones._changes.cache_clear()
    yield folder
    zones._changes.cache_clear()


def moments(name: str, rng: Random) -> list[str]:
    """Moments of many years, and some around the changes of the clocks in them."""
    found = [
        f"{year:04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:30:00" for year in YEARS
    ]
    found += ["0001-01-01T00:00:00", "0001-01-01T14:00:00", "9999-12-31T23:59:59.999999", "9999-12-31T09:00:00"]
    changes = chain.from_iterable(zones._changes(name, RELEASE, year) for year in (*YEARS, rng.randint(1900, 2037)))
    for at in chain.from_iterable(changes):
        for text in AROUND:
            number, unit = text.split()
            shift = timedelta(**{{"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}[unit]: int(number)})
            found.append((datetime.fromisoformat(at) + shift).isoformat())
    return found


@pytest.mark.rest
@pytest.mark.parametrize("function", [zones.LOCAL_TIME, zones.MOMENT_OF])
def test_each_zone_has_the_times_of_postgres(function: str, rules_of_postgres: Path, postgres_url: str) -> None:
    rng = Random(function)
    names = [name for name in zones.zone_names().values() if (rules_of_postgres / name).exists()]
    assert len(names) > 500
    asked = [(name, at) for name in rng.sample(names, 120) for at in moments(name, rng)]
    written = FUNCTIONS[function].write(("at", "zone", "NULL"))
    query = f"""SELECT {written}::text FROM unnest(%s::text[], %s::timestamptz[]) AS asked(zone, at)"""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        answers = connection.execute(query, [[z for z, _ in asked], [f"{at}Z" for _, at in asked]]).fetchall()
    run, wrong = FUNCTIONS[function].run, []
    for (name, at), (answer,) in zip(asked, answers, strict=True):
        mine = run(at, name, RELEASE)
        if (None if mine is None else mine.replace("T", " ") + "+00") != answer:
            wrong.append((name, at, mine, answer))
    assert wrong == []
    assert len(asked) > 5_000


def test_a_server_with_other_rules_does_not_answer(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entities = "visit: {key: [id], columns: {id: int, at: timestamp}}"
    fields = "{local: \"at at time zone 'Europe/Zurich'\"}"
    made = load({"entities.yaml": entities, "p.yaml": f"product: p\nroot: visit\nfields: {fields}\n"})
    with oracle(postgres_url, f"zones_{uuid.uuid4().hex}", made.entities) as tables:
        tables.load({"visit": [{"id": 1, "at": "2026-03-29T01:00:00Z"}]})
        assert tables.documents(made.products["p"]) == {'{"id":1}': {"local": "2026-03-29T03:00:00"}}
        monkeypatch.setattr(zones, "zone", lambda *_: ZoneInfo("Europe/London"))
        zones._changes.cache_clear()
        with pytest.raises(
            OracleError, match=r"product p: this Postgres has other rules for the time zone Europe/Zurich"
        ):
            tables.documents(made.products["p"])
    zones._changes.cache_clear()

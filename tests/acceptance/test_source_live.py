"""Real Debezium on a real Postgres: what never reached the table is named, and repaired while the application writes."""

import json
import re
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest

from processor.cli.main import main
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.tools.demo.live import DEBEZIUM, JOB, LiveDocuments, LiveParts, live_parts

pytestmark = pytest.mark.slow
DEADLINE = 900.0
TICKETS = "shop.public.ticket"


def wait_until(is_true: Callable[[], bool], parts: LiveParts) -> None:
    end = monotonic() + DEADLINE
    while not is_true():
        assert monotonic() < end
        parts.start_again()
        sleep(1)


def verify(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = main(["verify", "--source", "env:SOURCE", "--json", "--show", "1000", "--lag", "3", *flags])
    printed = capsys.readouterr()
    print(printed.out, printed.err)
    return status, json.loads(printed.out.splitlines()[0])["entities"]


def named(entities: Any) -> dict[tuple[str, str], set[str]]:
    """(entity, kind) -> the keys."""
    found: dict[tuple[str, str], set[str]] = {}
    for entity, result in entities.items():
        for one in result["sample"]:
            found.setdefault((entity, one["kind"]), set()).add("/".join(map(str, one["key"].values())))
    return found


def test_verify_names_and_repairs_what_never_arrived(
    credentials: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"wait_seconds": "0.2", "settle_seconds": "0.2", "batch_size": "200"}
    with live_parts("postgres", flags) as parts:
        for name, value in parts._job.items():
            monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(value))
        monkeypatch.setenv("SOURCE", re.sub(r"\+\w+", "", str(parts.source)))
        parts.create_source(seed=1)
        parts.start(DEBEZIUM)
        admin = Admin(parts.bootstrap, {})

        def is_there() -> bool:
            return bool(admin.topics([TICKETS])) and sum(admin.ends(TICKETS).values()) > 5

        wait_until(is_there, parts)
        sleep(3)
        ends = admin.ends(TICKETS)
        admin.delete_before(TICKETS, {p: min(2, end) for p, end in ends.items()})  # a lost segment
        kept = {json.loads(r.key or b"")["id"] for r in read_topic(parts.bootstrap, {}, TICKETS)}
        parts.start(JOB)
        documents = LiveDocuments(parts)
        wait_until(lambda: bool(list(documents.fresh())), parts)
        with psycopg.connect(re.sub(r"\+\w+", "", str(parts.source)), autocommit=True) as source:
            tickets = {id for (id,) in source.execute("select id from ticket").fetchall()}
            (publication,) = source.execute("select pubname from pg_publication").fetchone() or ("",)
            source.execute(f'alter publication "{publication}" drop table purchase, line, customer')
            (customer,) = source.execute(
                "update customer set name = 'quiet' where id = (select min(id) from customer) returning id"
            ).fetchone() or (0,)
            (gone,) = source.execute(
                "delete from purchase where id = (select min(purchase_id) from line) returning id"
            ).fetchone() or (0,)
            (new,) = source.execute("insert into purchase (customer_id) values (null) returning id").fetchone() or (0,)
            source.execute(f'alter publication "{publication}" add table purchase, line, customer')
        status, entities = verify(capsys)
        found = named(entities)
        lines = found.pop(("line", "orphaned"))
        assert status == 1
        assert lines
        assert all(line.startswith(f"{gone}/") for line in lines)  # by cascade
        assert found == {
            ("ticket", "missing"): {str(id) for id in tickets - kept},
            ("customer", "different"): {str(customer)},
            ("purchase", "orphaned"): {str(gone)},
            ("purchase", "missing"): {str(new)},
        }
        parts.start_writing("--seed", "3", "--pause", "0.5")
        status, _ = verify(capsys, "--repair", "--why", "the publication lost three tables")
        parts.stop_writing()
        wait_until(lambda: not parts.writes(), parts)
        wait_until(documents.is_closed, parts)
        assert verify(capsys)[0] == 0
        assert main(["history", "--limit", "1"]) == 0
        assert "the publication lost three tables" in capsys.readouterr().out
        parts.stop(JOB)
        parts.finish_job()
        assert main(["verify", "--sql"]) == 0
        assert documents.compare()[1] == []

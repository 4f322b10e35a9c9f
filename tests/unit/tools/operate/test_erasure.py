"""The certificate of an erasure, and the commands for the rows that refer to an erased one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from processor.cli.erase import erase_command
from processor.cli.main import main
from processor.environment.settings.settings import Settings
from processor.job.landing.landing import LandingState
from processor.tools.inspect.rows import Reference
from processor.tools.operate.erase import ErasureReport, Leftovers, RemovedLetters
from processor.tools.operate.erasure import ErasureContext, certificate_lines, make_certificate
from processor.values.record import Record
from statestore.items import Row
from tests.unit.engine.protocol.example import PLAN, V, key

MARK = "canary"
AT = datetime(2026, 11, 23, tzinfo=UTC)
BEFORE = Row(key=key("user", 1), version=V[1], columns={"id": 1, "name": MARK}, more={}, slots={1: MARK}, pending=())
LETTER = Record(topic="user", partition=0, offset=4, epoch=1, key=b"1", value=MARK.encode())
CONTEXT = ErasureContext(
    settings=Settings(),
    plan=PLAN,
    entity=PLAN.entities["user"],
    key={"id": 1},
    by="operator",
    at=AT,
    references=(Reference("star", ("who",), ({"id": 5}, {"id": 6})),),
    shows_key=True,
)
REPORT = ErasureReport(
    before=BEFORE,
    new={0: 12, 1: 0},
    tombstones={"profile": 3},
    published=2,
    letters=RemovedLetters((LETTER,)),
    left=(),
    expires=True,
    configs={"user": {"cleanup.policy": "delete", "retention.ms": "86400000"}},
)


def where(certificate: Mapping[str, Any], part: str, text: str) -> list[Any]:
    return [one for one in certificate[part] if text in one["where"] + one["what"]]


def test_the_certificate_says_what_went_what_is_new_and_what_remains_until_when() -> None:
    made = make_certificate(CONTEXT, REPORT)
    assert made["complete"]
    assert made["key"] == {"id": 1}
    assert where(made, "removed", "the document, by a tombstone with sequence 3")
    assert where(made, "removed", "1 dead letters (user/0 offset 4)")
    assert made["new_from"] == [
        {"topic": "user", "partition": 0, "offset": 12},
        {"topic": "user", "partition": 1, "offset": 0},
    ]
    assert made["referring"] == [{"entity": "star", "columns": ["who"], "rows": 2}]
    assert where(made, "remains", "a delete marker")[0]["until"].startswith("2026-12-23T00:00:00")
    assert where(made, "remains", "the topic is not the job's")[0]["until"].startswith("2026-11-24T00:00:00")
    lines = "\n".join(certificate_lines(made))
    assert 'Erasure of user {"id":1}: complete' in lines
    assert "user/0 offset 12" in lines


def test_the_certificate_names_the_landings_that_hold_documents() -> None:
    landing = LandingState("profile", "index profile-v1 at host:9200", 0.0, "profile", 3, 0, "f00")
    made = make_certificate(CONTEXT, replace(REPORT, leftovers=Leftovers(landings=(landing,))))
    (one,) = where(made, "remains", "index profile-v1 at host:9200")
    assert one["until"].startswith("the landing has read 3 more messages (no process of it runs, so start it")
    assert "`statestore land profile --remove f00`" in one["until"]


def test_the_certificate_names_a_landing_whose_group_the_broker_forgot() -> None:
    landing = LandingState("profile", "table app.profile at host:5432/db", None, "profile", None, 0, "f00", 1.0)
    made = make_certificate(CONTEXT, replace(REPORT, leftovers=Leftovers(landings=(landing,))))
    (one,) = where(made, "remains", "table app.profile at host:5432/db")
    assert one["until"].startswith("the landing has read all messages of the topic (no process of it runs")


def test_the_certificate_of_a_table_in_postgres_names_the_former_row_on_the_disk_of_the_server() -> None:
    made = make_certificate(replace(CONTEXT, settings=Settings(store="postgres")), REPORT)
    assert where(made, "remains", "a delete marker")[0]["until"].endswith("then a running job removes it")
    assert where(made, "remains", "write-ahead log")[0]["until"].startswith("VACUUM")
    assert not where(make_certificate(CONTEXT, REPORT), "remains", "write-ahead log")


def test_the_certificate_has_no_value_of_the_row_and_on_request_no_key() -> None:
    made = make_certificate(replace(CONTEXT, shows_key=False), REPORT)
    assert "key" not in made
    text = json.dumps(made) + "\n".join(certificate_lines(made))
    assert MARK not in text
    assert made["sha256"] in text


def test_the_certificate_is_not_complete_while_a_product_did_not_publish() -> None:
    made = make_certificate(CONTEXT, replace(REPORT, left=("product profile stopped: a reason",)))
    assert not made["complete"]
    assert "Not done: product profile stopped: a reason" in list(certificate_lines(made))


def test_dead_letters_that_the_broker_keeps_remain_with_the_reason() -> None:
    refused = replace(REPORT, letters=RemovedLetters((LETTER,), "cannot delete records of topic t: not allowed"))
    made = make_certificate(CONTEXT, refused)
    assert not where(made, "removed", "dead letters")
    (kept,) = where(made, "remains", "dead letters")
    assert "no replay takes: cannot delete records" in kept["what"]


def test_dead_letters_that_nobody_can_decode_remain_by_their_positions() -> None:
    left = replace(REPORT, letters=RemovedLetters((), "", (LETTER,), ()))
    (kept,) = where(make_certificate(CONTEXT, left), "remains", "whose key is unreadable")
    assert "(user/0/4)" in kept["what"]
    assert "--letter" in kept["until"]


def test_places_that_an_erasure_does_not_reach_remain_with_the_way_to_clear_them() -> None:
    leftovers = Leftovers(
        source_topics=("people",),
        joined=(("star", "stars"), ("team", "")),
        document_topics=(("old", "profiles"),),
        ledgers=("old",),
        versions=(3, 7),
    )
    report = replace(REPORT, leftovers=leftovers, configs={"people": {"cleanup.policy": "compact"}})
    made = make_certificate(CONTEXT, report)
    assert where(made, "remains", "topic people")[0]["until"].startswith("you delete the topic; or for ever")
    assert "old published here" in where(made, "remains", "topic profiles")[0]["what"]
    (entry,) = where(made, "remains", "the ledger entry of old")
    assert entry["until"] == "you define old again, and give this command again"
    assert where(made, "remains", "in the history of versions 3, 7")
    (joined,) = where(made, "remains", "former join keys")
    assert joined["where"] == "table statestore, star, team"
    assert where(made, "remains", "topic stars")[0]["until"].startswith("its retention ends")
    plain = make_certificate(CONTEXT, REPORT)
    for text in ("topic people", "topic profiles", "the ledger entry of old", "in the history"):
        assert not where(plain, "remains", text)


def test_a_ledger_entry_remains_while_a_product_of_its_group_shows_a_document() -> None:
    stuck = replace(REPORT, kept=frozenset(REPORT.tombstones))
    (name,) = REPORT.tombstones
    gone = make_certificate(CONTEXT, replace(stuck, leftovers=Leftovers(ledgers=("old",))))
    (entry,) = where(gone, "remains", f"the ledger entry of {name}")
    assert entry["what"] == f"the ledger entry of {name}: the key and a sequence, in an item with others"
    assert entry["until"] == "you define old again, and give this command again"
    (entry,) = where(make_certificate(CONTEXT, stuck), "remains", f"the ledger entry of {name}")
    assert entry["until"] == "all products have their tombstones: give this command again"


def test_values_that_left_the_statistics_are_named_without_themselves() -> None:
    (taken,) = where(make_certificate(CONTEXT, replace(REPORT, statistics=2)), "removed", "most frequent value")
    assert taken["what"] == "the most frequent value of 2 joins, a join key of the row"


def test_a_table_without_ttl_keeps_the_marker_for_ever() -> None:
    (marker,) = where(make_certificate(CONTEXT, replace(REPORT, expires=False)), "remains", "a delete marker")
    assert marker["until"].startswith("for ever, because the table has no TTL")


def test_a_row_that_was_not_stored_is_named_so() -> None:
    made = make_certificate(CONTEXT, replace(REPORT, before=None, tombstones={}, new={}, letters=RemovedLetters()))
    assert where(made, "removed", "no row was stored")
    assert not where(made, "remains", "marker")
    assert "  (no record: the topic of user does not exist)" in list(certificate_lines(made))


def test_a_command_quotes_its_key_for_the_shell() -> None:
    assert erase_command("star", {"who": "o'hara $x"}) == """statestore erase star '{"who":"o'"'"'hara $x"}'"""


def test_the_verb_needs_an_entity_and_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["erase", "user"])
    assert "KEY" in capsys.readouterr().err


def test_a_letter_is_chosen_by_its_position(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["erase", "user", "1", "--letter", "user-17"]) == 1
    assert "'user-17' is not a position: give TOPIC/PARTITION/OFFSET, such as user/0/17" in capsys.readouterr().err

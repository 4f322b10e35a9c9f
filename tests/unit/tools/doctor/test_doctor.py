"""`statestore doctor` over doubles: each fault gets its name, its cure and the exit status; and nothing ends in a traceback."""

import json
import socket
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from processor.cli.main import main
from processor.environment import embedded as parts
from processor.environment.embedded import Addresses
from processor.environment.settings.settings import Settings
from processor.environment.stores.dynamodb import DYNAMODB
from processor.environment.stores.kind import StoreKind
from processor.environment.stores.kinds import KINDS, place_of
from processor.finding import DoctorCheck, Finding
from processor.language.definitions.load import load_directory
from processor.tools.doctor import context
from processor.tools.doctor.checks import all_checks, examine
from processor.tools.doctor.context import CheckContext
from registry.model import Binding
from tests.unit.tools.doctor.broken import REFUSED, Fault
from tests.unit.tools.doctor.broken_topics import FAULTS, settled
from tests.unit.tools.doctor.broken_transactions import FINE
from tests.unit.tools.doctor.healthy import DURABLE, TABLE, Healthy, fail

CANARY = "canary-7391"
EXAMPLE = Path(__file__).parents[4] / "examples" / "github"


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Healthy:
    """A healthy set-up, which the verb takes for the real one."""

    class Own(Healthy):
        """A class of its own, so that a fault may replace a property."""

        def reach(self, host: str, port: int) -> None:
            super().reach(host, port)
            if host.endswith(".internal"):
                raise socket.gaierror(-2, "Name or service not known")

    settings = Settings(
        bootstrap_servers="b1.example.org:9092,b2.example.org:9092",
        checkpoint=str(tmp_path / "checkpoint"),
        kafka=(("security.protocol", "SSL"),),
    )
    made = Own(settings)

    def take(_: Settings, *, embedded: bool, definitions: Any) -> Healthy:
        made.definitions = definitions
        return made

    monkeypatch.setattr(context, "CheckContext", take)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return made


def examined(capsys: Any, *flags: str) -> tuple[int, list[dict[str, str]]]:
    """The exit status of the verb, and its findings."""
    status = main(["doctor", "--json", *flags])
    return status, json.loads(capsys.readouterr().out)["findings"]


def move_table(around: Healthy, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The healthy table is in a store of another kind."""
    monkeypatch.setenv("STATESTORE_STORE", store)
    around.settings = replace(around.settings, store=store, store_unlogged=False)
    around.registry.bound = replace(around.registry.bound, table=place_of(store, around.settings.table))
    around.table_state = replace(TABLE, logged=True, release=18)


def test_given_definitions_are_checked_before_there_is_a_registry(around: Healthy, capsys: Any) -> None:
    around.registry.found = replace(around.registry.found, exists=False)
    around.table_state = None
    status, findings = examined(capsys, "--definitions", str(EXAMPLE))
    found = {one["check"]: one for one in findings}
    assert (status, found["definitions"]["state"]) == (0, "ok")
    assert found["definitions"]["text"].startswith("--definitions: ")
    assert {found[name]["state"] for name in ("source topics", "source records", "product topics")} == {"ok"}
    settings = Settings(slots=5)
    plan = CheckContext(settings, embedded=False, definitions=load_directory(EXAMPLE)).plan
    assert [*plan.products] == ["user_profile"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_check_has_a_fault(kind: StoreKind[Any]) -> None:
    shown = {fault.check for fault in FAULTS if fault.store in (kind.name, DYNAMODB.name)}
    assert [check.name for check in all_checks(kind) if check.name not in shown] == []


def test_a_healthy_set_up_has_no_warning_and_no_failure(around: Healthy, capsys: Any) -> None:
    status, findings = examined(capsys)
    assert status == 0
    assert [one for one in findings if one["state"] != "ok"] == []
    assert {one["check"] for one in findings} == {check.name for check in all_checks(DYNAMODB)}


@pytest.mark.parametrize("made", FINE)
def test_transaction_metadata_that_is_there_has_no_warning(made: Any, around: Healthy, capsys: Any) -> None:
    made(around)
    status, findings = examined(capsys)
    assert status == 0
    assert [one for one in findings if one["state"] != "ok"] == []
    assert "app.transaction: the topic of transactions is there" in [one["text"] for one in findings]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_named_with_its_cure(
    fault: Fault, around: Healthy, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault.store != around.settings.store:
        move_table(around, fault.store, monkeypatch)
    fault.breaks(around)
    status, findings = examined(capsys)
    (found,) = [one for one in findings if one["check"] == fault.check and one["state"] not in ("ok", "skipped")]
    assert (found["state"], status) == (fault.state, 1 if fault.state == "failure" else 0)
    assert fault.text in found["text"]
    assert fault.cure in found["cure"]
    others = [one["check"] for one in findings if one["state"] == "failure" and one["check"] != fault.check]
    assert others == [], "a fault makes one failure"


def test_a_check_that_cannot_run_names_the_failure_that_is_the_cause(around: Healthy, capsys: Any) -> None:
    around.closed = {"registry.example.org": REFUSED}
    _, findings = examined(capsys)
    skipped = {one["check"]: one["text"] for one in findings if one["state"] == "skipped"}
    assert set(skipped.values()) == {"postgres failed"}
    assert {"registry", "rights", "definitions", "lease", "slots", "source topics", "identity"} <= skipped.keys()


def test_a_form_that_a_record_settled_is_shown(around: Healthy, capsys: Any) -> None:
    settled("text", "1000", "12345")(around)
    _, findings = examined(capsys)
    found = [one["text"] for one in findings if one["check"] == "source records" and one["state"] == "ok"]
    assert found[0] == "user: column price of entity user has `decimals: text` since the record user/1/17"
    assert len(found) == 2


def test_a_first_set_up_has_no_failure_before_apply_and_before_the_first_start(around: Healthy, capsys: Any) -> None:
    around.registry.found = replace(around.registry.found, exists=False)
    around.table_state = None
    status, findings = examined(capsys)
    assert status == 0
    assert [one["check"] for one in findings if one["state"] == "warning"] == ["registry"]
    texts = {one["text"] for one in findings if one["state"] == "skipped"}
    assert texts == {"there is no registry yet", "there is no table"}


def test_a_registry_without_a_job_has_no_table_yet(around: Healthy, capsys: Any) -> None:
    around.table_state = None
    around.registry.bound = Binding(identity="id", job="", table="")
    assert examined(capsys)[0] == 0


def test_a_lost_table_is_a_failure(around: Healthy, capsys: Any) -> None:
    around.table_state = None
    status, findings = examined(capsys)
    assert status == 1
    assert [one["check"] for one in findings if one["state"] == "failure"] == ["identity"]


@pytest.mark.parametrize(
    ("logged", "unlogged", "state", "text", "cure"),
    [
        (True, False, "ok", "the table is logged: its rows outlast a crash of the server", ""),
        (False, True, "warning", "the table is unlogged: a crash of the server empties it", "--store-unlogged false"),
        (True, True, "warning", "the setting store_unlogged is true", "the next start of the job alters it"),
        (False, False, "warning", "the setting store_unlogged is false", "the next start of the job alters it"),
    ],
)
def test_the_form_of_a_table_in_postgres_is_compared_with_its_setting(
    around: Healthy,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
    logged: bool,
    unlogged: bool,
    state: str,
    text: str,
    cure: str,
) -> None:
    move_table(around, "postgres", monkeypatch)
    around.settings = replace(around.settings, store_unlogged=unlogged)
    around.table_state = replace(TABLE, logged=logged)
    status, findings = examined(capsys)
    (found,) = [one for one in findings if one["check"] == "log"]
    assert (status, found["state"]) == (0, state)
    assert text in found["text"]
    assert cure in found["cure"]


@pytest.mark.parametrize(
    ("release", "state"), [(15, "ok"), (17, "ok"), (14, "warning"), (19, "warning"), (None, "skipped")]
)
def test_doctor_says_whether_the_tests_have_run_on_the_release_of_the_tables_postgres(
    around: Healthy, capsys: Any, monkeypatch: pytest.MonkeyPatch, release: int | None, state: str
) -> None:
    move_table(around, "postgres", monkeypatch)
    around.table_state = replace(TABLE, release=release)
    status, findings = examined(capsys)
    (found,) = [one for one in findings if one["check"] == "store server"]
    assert (status, found["state"]) == (0, state)


def test_a_checkpoint_that_only_spark_sees_is_no_failure(around: Healthy, capsys: Any) -> None:
    around.settings = replace(around.settings, checkpoint="s3://bucket/path")
    status, findings = examined(capsys)
    (found,) = [one for one in findings if one["check"] == "checkpoint"]
    assert (status, found["state"]) == (0, "skipped")
    assert found["text"].startswith("only Spark can look at s3://bucket/path")


def test_lines_are_aligned_and_a_cure_is_below_its_finding(around: Healthy, capsys: Any) -> None:
    around.python_version = (3, 10)
    assert main(["doctor"]) == 1
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert first == "failure  python          Python 3.10 is too old"
    assert second == " " * 25 + "cure: install Python 3.11 or newer, on the driver and on the executors"
    assert last.endswith(" ok, 0 warning, 1 failure, 0 skipped")


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError(""), ValueError("two\nlines")])
def test_an_unexpected_error_is_a_finding(error: Exception, around: Healthy, capsys: Any) -> None:
    around.kafka.topics = fail(error)  # type: ignore[method-assign]
    status, findings = examined(capsys)
    found = [one for one in findings if one["state"] == "failure"]
    assert status == 1
    assert {one["check"] for one in found} == {"source topics", "product topics", "dead letters"}
    assert all(one["text"].startswith(f"unexpected {type(error).__name__}: ") for one in found)
    assert {one["cure"] for one in found} == {"please report it"}


def test_a_check_without_an_answer_ends_by_its_limit(around: Healthy) -> None:
    never = Event()

    def wait(_: object) -> list[Finding]:
        never.wait()
        return []

    slow = DoctorCheck(name="slow", looks_at="", look=wait, cure="wait", seconds=0.01)
    after = DoctorCheck(name="after", looks_at="", look=lambda _: (), cure="", needs=("slow",))
    (first, second) = [found.finding for found in examine([slow, after], cast(CheckContext, around))]
    never.set()
    assert (first.text, first.cure, second.text) == ("no answer within 0.01 s", "wait", "slow failed")


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"]])
def test_no_secret_is_printed(words: list[str], around: Healthy, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of clients that repeat what they got."""
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "KAFKA_PASSWORD"):
        monkeypatch.setenv(name, f"{CANARY}-{name}")
    around.settings = replace(
        around.settings,
        registry=f"postgresql://etl:{CANARY}%2Fpg@registry.example.org/x",
        kafka=(("sasl.password", "env:KAFKA_PASSWORD"), ("security.protocol", "SSL")),
    )
    texts = [f"{CANARY}%2Fpg", f"{CANARY}/pg", *(f"{CANARY}-{name}" for name in ("AWS_SECRET_ACCESS_KEY",))]
    texts += [f"{CANARY}-AWS_SESSION_TOKEN", f"{CANARY}-KAFKA_PASSWORD"]
    around.kafka.cluster = fail(RuntimeError(" ".join(texts)))  # type: ignore[method-assign]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert "unexpected RuntimeError: *** *** *** *** ***" in printed.out
    assert CANARY not in printed.out + printed.err


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_check_has_a_name_of_its_own_and_needs_only_earlier_ones(kind: StoreKind[Any]) -> None:
    names = [check.name for check in all_checks(kind)]
    assert len(set(names)) == len(names)
    for n, check in enumerate(all_checks(kind)):
        assert set(check.needs) <= set(names[:n])
        assert check.cure
        assert check.looks_at


def test_a_database_that_answers_before_it_syncs_is_named_and_harms_nobody(around: Healthy, capsys: Any) -> None:
    around.registry_durability = DURABLE._replace(waits="off", standbys=2, synchronous=1)
    _, findings = examined(capsys)
    (found,) = [one for one in findings if one["check"] == "commits"]
    assert found["state"] == "ok"
    assert "the sessions of the job wait for each commit, though synchronous_commit is off elsewhere" in found["text"]
    assert "1 of 2 standbys have it too" in found["text"]


def test_a_dead_part_of_local_up_is_the_first_finding_and_the_others_follow(
    around: Healthy, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = Addresses(bootstrap_servers="b:1", registry_url="postgresql://h/d")
    dead = parts.PartsStatus(addresses=addresses, alive={"Kafka": False, "Postgres": True})
    monkeypatch.setattr(parts, "status", lambda _: dead)
    status, findings = examined(capsys, "--embedded")
    assert status == 1
    assert findings[0] == {
        "check": "parts",
        "looks_at": "the settings",
        "state": "failure",
        "text": "Kafka: died since `local up`",
        "cure": "Start it again with `statestore local up`",
    }
    assert [one["state"] for one in findings if one["check"] == "registry login"] == ["ok"]


def test_a_secret_that_is_not_in_its_place_is_the_first_finding_and_what_needs_none_is_looked_at(
    around: Healthy, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_REGISTRY_PASSWORD", "env:NOWHERE")
    status, findings = examined(capsys)
    states = {one["check"]: (one["state"], one["text"]) for one in findings}
    assert status == 1
    assert states["secrets"] == ("failure", "registry_password: the variable NOWHERE is not set")
    assert states["registry login"] == ("skipped", "secrets failed")
    assert states["kafka login"][0] == states["table"][0] == "ok"


def test_the_healthy_set_up_has_all_that_a_check_asks_the_world_with() -> None:
    asked = {name for name in dir(CheckContext) if not name.startswith("_")}
    assert asked - {*dir(Healthy(Settings()))} == set()

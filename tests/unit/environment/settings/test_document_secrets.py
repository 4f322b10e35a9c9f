"""The secrets of `hmac_sha256`: named in definitions, found by the settings, and shown by no part."""

import hashlib
import hmac
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.plan.plan import check_needs, secrets_of
from processor.engine.plan.planning import plan_alone, requirements_of
from processor.engine.rounds.operators import RegistryFollower
from processor.engine.rounds.trial import Trial
from processor.environment.settings.resolve import resolve_tables, secret_readers
from processor.environment.settings.settings import Settings, read_settings
from processor.errors import OracleError, PlanError, SettingError
from processor.job.run import worker
from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.expressions.functions import hmac_sha256, offer_secrets
from processor.language.product.product import Definitions
from processor.language.product.sql_printer import product_sql
from processor.tools.inspect.oracle import Oracle
from processor.values.record import Record
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import Lease, Snapshot

HIDDEN = "hunter2"
ENTITIES = """\
person:
  key: [id]
  columns: {id: int, email: string, mac: {type: string, as: "hmac_sha256(lower(email), :own)"}}
visit:
  key: [id]
  columns: {id: int, email: string}
"""
PRODUCT = """\
product: p
root: person
fields: {direct: "hmac_sha256(email, :shown)", computed: mac, sql: "encode(hmac(email, :'shown', 'sha256'), 'hex')"}
embed: {visits: {many: visit, on: {"hmac_sha256(email, :joined)": email}, value: id}}
"""
NAMES = {"own", "shown", "joined"}


@pytest.fixture(autouse=True)
def no_secrets() -> None:
    offer_secrets({})


def definitions(product: str = PRODUCT) -> Definitions:
    return load({"entities.yaml": ENTITIES, "p.yaml": product})


def settings_with(tmp_path: Path, lines: str) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(f"[secrets]\n{lines}\n")
    return read_settings({}, {}, str(file))


def problem(expression: str) -> str:
    with pytest.raises(DefinitionError) as error:
        definitions(f'product: p\nroot: person\nfields: {{a: "{expression}"}}\n')
    return str(error.value)


def test_a_hash_has_the_key_that_the_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", HIDDEN)
    (tmp_path / "key").write_text("sesame\n")
    lines = f'own = "env:A"\nshown = "file:{tmp_path / "key"}"\njoined = "env:A"'
    offer_secrets(secret_readers(settings_with(tmp_path, lines)))
    trial = Trial(plan=plan_alone(definitions(), 20), settings=Settings())
    keyed = hmac.new(HIDDEN.encode(), b"A@x", hashlib.sha256).hexdigest()
    rows = [("person", b'{"id":1,"email":"A@x"}'), ("visit", b'{"id":7,"email":"%s"}' % keyed.encode())]
    rows += [("visit", b'{"id":8,"email":"A@x"}')]
    trial.batch(Record(topic=topic, partition=0, offset=n, key=None, value=row) for n, (topic, row) in enumerate(rows))
    trial.finish()
    document = json.loads(trial.published.messages[-1].value or b"")
    assert document["computed"] == hmac.new(HIDDEN.encode(), b"a@x", hashlib.sha256).hexdigest()
    assert document["direct"] == document["sql"] == hmac.new(b"sesame", b"A@x", hashlib.sha256).hexdigest()


def test_a_definition_takes_the_name_of_a_secret_alone() -> None:
    for wrong in (f"hmac_sha256(email, '{HIDDEN}')", "hmac_sha256(email, email)", "hmac_sha256(email)"):
        found = problem(wrong)
        assert "takes a text and the name of a secret" in found
        assert "write `hmac_sha256(x, :mask)`" in found
        assert HIDDEN not in found
    assert "`:own` is a secret, and only `hmac_sha256` takes one" in problem("lower(:own)")
    assert "`:Own` is no name of a secret" in problem("hmac_sha256(email, :Own)")
    assert "write `hmac_sha256(x, :name)`" in problem("hmac(email, :own)")


def test_the_settings_take_a_reference_alone(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"\[secrets\] own holds no reference: write \"env:NAME\"") as error:
        settings_with(tmp_path, f'own = "{HIDDEN}"')
    assert HIDDEN not in str(error.value)
    with pytest.raises(SettingError, match=r"\[secrets\] 'Own': a line has the form mask = \"env:NAME\""):
        settings_with(tmp_path, 'Own = "env:A"')


def test_the_driver_reads_each_reference_and_its_tasks_carry_the_hidden_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", HIDDEN)
    resolved = resolve_tables(settings_with(tmp_path, 'own = "env:A"'))
    assert dict(resolved.secrets) == {"own": HIDDEN}
    assert HIDDEN not in repr(resolved)
    monkeypatch.delenv("A")
    offer_secrets(secret_readers(pickle.loads(pickle.dumps(resolved))))  # as a worker, which has no such variable
    assert hmac_sha256("x", "own") == hmac.new(HIDDEN.encode(), b"x", hashlib.sha256).hexdigest()
    with pytest.raises(SettingError, match=r"\[secrets\] own: the variable A is not set"):
        resolve_tables(settings_with(tmp_path, 'own = "env:A"'))
    monkeypatch.setenv("A", "")
    with pytest.raises(SettingError, match=r"\[secrets\] own: env:A is empty"):
        resolve_tables(settings_with(tmp_path, 'own = "env:A"'))


def test_a_worker_takes_the_secrets_of_the_settings_that_its_task_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", HIDDEN)
    settings = resolve_tables(settings_with(tmp_path, 'own = "env:A"'))
    for name in ("open_store", "KafkaOutbox", "open_registry"):
        monkeypatch.setattr(worker, name, lambda *_, **__: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(worker, "tune_garbage_collector", lambda: None)
    worker.clients(settings, None, None)
    worker.clients.cache_clear()
    assert hmac_sha256("x", "own") == hmac.new(HIDDEN.encode(), b"x", hashlib.sha256).hexdigest()


def test_a_new_name_is_another_version_of_the_product_and_of_its_keys() -> None:
    before, after = (requirements_of(definitions(text)) for text in (PRODUCT, PRODUCT.replace(":joined", ":joined_2")))
    assert before.products != after.products
    assert before.groups != after.groups


def test_a_plan_without_a_secret_of_its_own_is_refused_before_anything_is_published() -> None:
    plan = plan_alone(definitions(), 20)
    assert secrets_of(plan) == NAMES
    check_needs(plan, NAMES)
    with pytest.raises(PlanError, match=r'no `:joined`, `:own`: write `joined = "env:NAME"` in the table \[secrets\]'):
        check_needs(plan, ["shown"])
    trial = Trial(plan=plan, settings=Settings())  # without the check, the product stops at its first document
    trial.batch([Record(topic="person", partition=0, offset=0, key=None, value=b'{"id":1,"email":"a"}')])
    assert trial.published.messages == []
    assert "(SettingError)" in trial.stopped["p"]


def test_a_running_job_keeps_its_version_where_the_next_one_needs_a_secret_that_it_lacks() -> None:
    first = definitions("product: p\nroot: person\nfields: {id: id}\n")
    empty = Snapshot(version=0, slots=20, entities=(), products=(), assignments=(), joins=())
    stored = [edited(empty, apply(empty, requirements_of(first), frozenset()))]
    stored.append(edited(stored[0], apply(stored[0], requirements_of(definitions()), frozenset())))
    reported: list[Any] = []
    adopted: list[Any] = []
    driver: Any = SimpleNamespace(adopt=lambda plan, _: adopted.append(plan.version), report=reported.append)
    registry: Any = SimpleNamespace(snapshot=lambda: stored[0], applied=lambda *_: None)
    follower = RegistryFollower(
        driver=driver,
        registry=registry,
        lease=Lease(job="j", generation=1, owner="o", lanes=1),
        prepare=lambda _: None,
        check=lambda plan: check_needs(plan, {"own"}),
    )
    follower._adopt()
    registry.snapshot = lambda: stored[1]
    follower._adopt()
    assert (adopted, follower.refused) == ([stored[0].version], stored[1].version)
    assert "the settings have no `:joined`, `:shown`" in reported[-1].text


def test_no_stored_printed_or_broadcast_form_has_more_than_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", HIDDEN)
    offer_secrets(secret_readers(settings_with(tmp_path, "\n".join(f'{name} = "env:A"' for name in sorted(NAMES)))))
    made = definitions()
    (product,) = made.products.values()
    plan = plan_alone(made, 20)
    printed = product_sql(product, made.entities)
    assert "encode(hmac(t0.\"email\", :'shown', 'sha256'), 'hex')" in printed
    forms = (printed, repr(describe_product(product)), repr(plan), repr(requirements_of(made)))
    assert all(HIDDEN not in form for form in forms)
    assert HIDDEN.encode() not in pickle.dumps(plan)


def test_verify_by_sql_refuses_a_product_whose_secret_would_come_into_the_log_of_a_server() -> None:
    made = definitions()
    tables = Oracle(None, "s", made.entities)  # type: ignore[arg-type]
    with pytest.raises(OracleError, match=r"product p uses the secret `:joined`; .* verify the product without SQL"):
        tables._query(made.products["p"], None)


def test_tests_of_products_and_try_take_the_name_as_the_value_and_try_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mac = hmac.new(b"own", b"a@x", hashlib.sha256).hexdigest()
    (tmp_path / "entities.yaml").write_text(ENTITIES)
    (tmp_path / "p.yaml").write_text("product: p\nroot: person\nfields: {mac: mac}\n")
    (tmp_path / "tests").mkdir()
    case = f"- test: mac\n  given: {{person: [{{id: 1, email: A@x}}]}}\n  expect: {{'1': {{mac: {mac}}}}}\n"
    (tmp_path / "tests" / "p.yaml").write_text(case)
    assert main(["test", str(tmp_path)]) == 0
    records = tmp_path / "topics.jsonl"
    records.write_text('{"topic": "person", "key": {"id": 1}, "value": {"id": 1, "email": "A@x"}}\n')
    capsys.readouterr()
    assert main(["try", "--definitions", str(tmp_path), "--from", str(records)]) == 0
    printed = capsys.readouterr()
    assert mac in printed.out
    assert "the settings have no `:own`: its value is its name here" in printed.err
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[secrets]\nown = "file:{records}"\n')
    assert main(["try", "--definitions", str(tmp_path), "--from", str(records), "--settings", str(settings)]) == 0
    assert mac not in capsys.readouterr().out

"""Real Debezium on a real MariaDB: the rows that a cascade deleted, and those of a lost segment, are named and repaired."""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import time_ns

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.source.compared_table import ComparedTable, compare_with
from processor.tools.source.comparison import ComparedEntity, DigestFile, SourceComparison, repair_letter
from processor.tools.source.session import read_source_tables, source_session, table_of
from processor.values.dead_letters import DeadLetter
from processor.values.record import Rejected
from tests.capture.mariadb_captures import MariaDatabase
from tests.support.required import require_debezium

pytestmark = pytest.mark.slow
DEFINITIONS = {
    "entities.yaml": """
parent: {topic: app.shop.parent, key: [id], columns: {id: int, name: string}}
child: {topic: app.shop.child, key: [id], columns: {id: int, parent: int, price: "decimal(8,2)"}, decimals: bytes}
""",
    "p.yaml": "product: p\nroot: parent\nembed: {children: {many: child, on: {parent: id}, value: id}}\n",
}


def compare(trial: Trial, address: str) -> list[ComparedEntity]:
    with source_session(address) as session:
        known, made = read_source_tables(session), []
        for entity in trial.driver.plan.entities.values():
            table = table_of(entity.entity, known)
            assert table is not None
            compared = compare_with(entity, table, mysql=True)
            assert isinstance(compared, ComparedTable)
            made.append(compared)
        comparison = SourceComparison(
            session=session,
            store=trial.store,
            digests=DigestFile(None),
            passed=lambda: None,  # the engine has sent its last record
            report=lambda *_: None,
        )
        for one in made:
            comparison.scan(one)
        return [comparison.result(one) for one in made]


def test_cascades_and_lost_records_of_mariadb_are_named_and_repaired(mariadb_port: int) -> None:
    require_debezium()
    with TemporaryDirectory() as folder:
        database = MariaDatabase(mariadb_port, "cascades", Path(folder))
        database.run(
            "create table parent (id int primary key, name varchar(20))",
            "create table child (id int primary key, parent int, price decimal(8,2), "
            "foreign key (parent) references parent (id) on delete cascade)",
            *(f"insert into parent values ({n}, 'parent {n}')" for n in range(1, 6)),
            *(f"insert into child values ({n}, {1 + n % 5}, {n}.50)" for n in range(1, 21)),
        )
        with database.engine({"include.schema.changes": "false"}) as recording:
            database.run(
                "delete from parent where id = 2",
                "insert into parent values (7, 'lost')",
                "set session sql_log_bin = 0",
                "update child set price = 99.90 where id = 8",
                "set session sql_log_bin = 1",
            )
        arrived = [
            record
            for record in recording.records
            if record.topic in ("app.shop.parent", "app.shop.child") and b'"name":"lost"' not in (record.value or b"")
        ]
    trial = Trial(plan=plan_alone(load(DEFINITIONS), 3), settings=Settings())
    trial.batch(arrived)
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}/shop"
    found = compare(trial, address)
    named = {(one.entity, one.kind, one.sk, one.columns) for entity in found for one in entity.differences}
    assert named == {
        ("parent", "missing", "7", ()),
        ("child", "different", "8", ("price",)),
        *(("child", "orphaned", str(n), ()) for n in (1, 6, 11, 16)),
    }
    number = time_ns() // 1000
    letters: list[DeadLetter] = []
    for entity in found:
        for one in entity.differences:
            letter = repair_letter(one, entity.table, "a cascade", number + len(letters), {})
            assert isinstance(letter, Rejected)
            letters.append(DeadLetter(rejected=letter, kept_since=number / 1e6))
    assert {report.outcome for report in trial.driver.replay(letters)} == {"applied"}
    trial.finish()
    assert [entity.differences for entity in compare(trial, address)] == [(), ()]

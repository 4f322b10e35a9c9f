"""Real Debezium on a real Postgres: the documents of the job equal the SELECT over the application's own database."""

import subprocess

import pytest

from processor.environment.stores.kinds import KINDS
from tests.live.kills import RESTARTED
from tests.live.soak import soak
from tests.support.required import required_program
from tests.transactions.soak import Transactions, soak_transactions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("credentials")]


@pytest.mark.parametrize("flags", [[], ["--store", "dynamodb"]], ids=["postgres", "dynamodb"])
def test_the_live_demo_ends_with_equal_documents_and_shows_the_way_there(
    statestore: list[str], flags: list[str]
) -> None:
    done = subprocess.run([*statestore, "demo", "--live", *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " documents equal the SELECT, 0 dead letters (" in done.stdout
    lines = done.stderr.splitlines()
    for begin in ("sql  renames customer", "sql  gives article", 'doc    customer_card {"id":', "doc    article_sales"):
        assert any(line.startswith(begin) for line in lines), begin
    assert any(line.endswith(" is gone") for line in lines)


@pytest.mark.parametrize("store", KINDS)
def test_documents_equal_the_select_after_debezium_the_broker_and_the_job_were_killed(store: str) -> None:
    result = soak(seconds=40, seed=1, pause=2, store=store)
    assert result.wrong == []
    assert result.dead_letters == 0
    assert result.documents > 0
    assert result.killed.keys() == {*RESTARTED}


@pytest.mark.parametrize("source", ["postgres", "mariadb"])
def test_no_document_of_whole_transactions_shows_a_part_of_one(source: str) -> None:
    """Over MariaDB Debezium sends whole transactions again after a kill (docs/formats.md#gates)."""
    if source == "mariadb":
        required_program("mariadbd", "`apt-get install mariadb-server`")
    result = soak_transactions(Transactions(source=source, seed=1, calm=20, kills=40, writers=4, pause=0.5, keys=0))
    assert [result.report.describe(arrival) for arrival in result.report.torn()] == []
    assert result.wrong == []
    assert result.dead_letters == 0
    assert result.killed.keys() == {*RESTARTED}
    broken = {name: int(count) for name, _, _, count, *_ in list(result.report.table())[1:]}
    assert broken["order_plain"] > 0, "without a gate the same run must show parts of transactions"

"""The job's steps on the DynamoDB doorway, behind a proxy that throttles, fails, loses answers, leaves keys over, cuts pages and
shows its indexes late: the last documents are the SQL answer all the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from processor.cli.output import in_topics
from processor.definitions.load import load, read_directory
from processor.demo.github import history, load_events
from processor.demo.show import different
from processor.model import canonical_json
from processor.model.ledger import Run
from processor.model.open_changes import PARTITION, read_durable
from processor.oracle import oracle
from processor.planning import plan_alone
from processor.recorded import read_records
from processor.settings import Settings
from processor.trial import Trial, batches
from statestore.dynamodb import DynamoStore, Patience
from statestore.errors import Transient
from tests.faulty.faults import ALL, Faults
from tests.faulty.indexes import LateIndexes, Pages
from tests.faulty.proxy import proxy

EXAMPLE = Path(__file__).parents[3] / "examples" / "github"
EVENTS = 24
LAGS = (0.0, 0.0, 1.0, 4.0, 20.0)
"""How late an index may show a write, in virtual seconds: also much later than W, which is 5."""
W = Settings().wait_seconds


class Restarted:
    """A trial that starts anew where a fault outlasts the client's patience, as a job does: with its memory gone."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.starts = trial, 1

    def do(self, work: Callable[[Trial], object]) -> None:
        while True:
            try:
                work(self.trial)
                return
            except Transient:
                self._restart()

    def _restart(self) -> None:
        """Reloads what was left open, and waits W."""
        before, self.starts = self.trial, self.starts + 1
        self.trial = replace(before, now=before.now + before.settings.wait_seconds, run=Run(number=self.starts))
        self.trial.store = before.store
        items = None
        while items is None:
            try:
                items = before.store.partition(PARTITION)
                rows = before.store.get({entry.key for item in items for entry in read_durable(item)})
            except Transient:
                continue
        self.trial.fan_outs.reloaded(items)
        self.trial.open.reloaded(items, rows, self.trial.now)


def lags(random: Random) -> tuple[float, float]:
    """Two replicas, which differ by less than W."""
    lag = random.choice(LAGS)
    return lag, lag + random.random() * W


@pytest.mark.parametrize(
    ("api", "seed", "events"),
    [
        ("moto", 1, EVENTS),
        *(pytest.param("dynamodb_local", seed, 4 * EVENTS, marks=pytest.mark.slow) for seed in range(2, 6)),
    ],
)
@pytest.mark.usefixtures("credentials")
def test_the_last_documents_are_the_sql_answer(
    request: pytest.FixtureRequest, postgres_url: str, schema: str, tmp_path: Path, api: str, seed: int, events: int
) -> None:
    told = history(load_events(EXAMPLE / "events.ndjson.gz")[:events])
    recorded = tmp_path / "topics.jsonl"
    recorded.write_text("".join(canonical_json.dumps(line) + "\n" for line in told.records), encoding="utf-8")
    definitions, settings = load(read_directory(EXAMPLE)), Settings()
    job = Restarted(Trial(plan=plan_alone(definitions, settings.slots), settings=settings))
    faults, pages = Faults(seed, ALL, rate=0.2, late=0.4), Pages(seed)
    late = LateIndexes(seed, lags, clock=lambda: job.trial.now)

    address, place = request.getfixturevalue(api), {"table": f"faults-{seed}", "region": "eu-west-1"}
    direct = DynamoStore(**place, endpoint_url=address)
    direct.create_table(settings.slots)
    with proxy(address, faults, pages, late) as endpoint:
        store = DynamoStore(**place, endpoint_url=endpoint, patience=Patience(attempts=3, read_s=0.3))
        job.trial.store = store
        for chunk in batches(read_records(str(recorded)), 25):
            job.do(lambda trial, chunk=chunk: trial.batch(chunk))
            job.do(Trial.settle)
        job.do(Trial.finish)
        store.close()
    assert direct.partition(PARTITION) == []
    direct.close()

    with oracle(postgres_url, schema, definitions.entities) as tables:
        tables.load({name: rows.values() for name, rows in told.tables.items()})
        truth = tables.documents(definitions.products["user_profile"])
    assert different(in_topics(job.trial.published.messages), truth) == []
    assert len(truth) > 20
    assert job.starts > 1
    assert late.hidden > 0
    assert len(faults.given) == 8

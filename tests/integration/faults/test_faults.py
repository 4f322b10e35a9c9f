"""Runs the job's steps on a DynamoDB API behind a proxy. The proxy throttles, fails, loses answers, leaves keys unprocessed, cuts
pages, and shows its indexes late. The last documents equal the SQL answer."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from processor.cli.printing.output import to_records
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.segments import open_items
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.tools.demo.github import build_history, load_events
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.recorded_topics import read_records
from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.store import Transient
from tests.faulty.faults import ALL, Faults
from tests.faulty.indexes import LateIndexes, Pages
from tests.faulty.proxy import proxy

EXAMPLE = Path(__file__).parents[3] / "examples" / "github"
EVENTS = 24
LAGS = (0.0, 0.0, 1.0, 4.0, 20.0)
"""How late an index may show a write, in virtual seconds. The longest lag is four times W, which is 5."""
W = Settings().wait_seconds


class RestartedTrial:
    """A trial that starts again, as a job does, when a fault lasts longer than the client's retries. It then has no memory of
    the run before."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.starts = trial, 1

    def run(self, work: Callable[[Trial], object]) -> None:
        while True:
            try:
                work(self.trial)
                return
            except Transient:
                self._restart()

    def _restart(self) -> None:
        """Starts a new run over the same table, which reloads the open changes and waits W."""
        before = self.trial
        while True:
            self.starts += 1
            self.trial = Trial(
                plan=before.plan,
                settings=before.settings,
                run=self.starts,
                other_store=before.store,
                published=before.published,
                rejects=before.rejects,
                clock=before.clock,
            )
            try:
                self.trial.driver.start()
                return
            except Transient:
                continue


def draw_lags(random: Random) -> tuple[float, float]:
    """The lags of two replicas, which differ by less than W."""
    lag = random.choice(LAGS)
    return lag, lag + random.random() * W


@pytest.mark.rest
@pytest.mark.parametrize(
    ("api", "seed", "events"),
    [
        ("moto", 1, EVENTS),
        *(pytest.param("dynamodb_local", n, 2 * EVENTS, marks=pytest.mark.slow) for n in range(2, 6)),
    ],
)
@pytest.mark.usefixtures("credentials")
def test_the_last_documents_equal_the_sql_answer_despite_faults_and_late_indexes(
    request: pytest.FixtureRequest,
    postgres_url: str,
    schema: str,
    tmp_path: Path,
    api: str,
    seed: int,
    events: int,
) -> None:
    history = build_history(load_events(EXAMPLE / "events.ndjson.gz")[:events])
    recorded = tmp_path / "topics.jsonl"
    recorded.write_text("".join(canonical_json.dumps(line) + "\n" for line in history.records), encoding="utf-8")
    definitions, settings = load(read_directory(EXAMPLE)), Settings()
    clock = VirtualClock()
    faults, pages = Faults(seed, ALL, rate=0.2, late=0.6), Pages(seed)
    late = LateIndexes(seed, draw_lags, clock=clock.now)

    address = request.getfixturevalue(api)
    open_table = partial(DynamoStore, table=f"faults-{seed}", region="eu-west-1")
    direct = open_table(endpoint_url=address)
    direct.create(settings.slots)
    with proxy(address, faults, pages, late) as endpoint:
        store = open_table(endpoint_url=endpoint, patience=Patience(attempts=3, read_s=0.5))
        plan = plan_alone(definitions, settings.slots)
        job = RestartedTrial(Trial(plan=plan, settings=settings, other_store=store, clock=clock))
        for chunk in batches(read_records(str(recorded)), 25):
            job.run(partial(Trial.batch, records=chunk))
            job.run(Trial.background_work)
        job.run(Trial.finish)
        store.close()
    assert list(open_items(direct)) == []
    direct.close()

    with oracle(postgres_url, schema, definitions.entities) as tables:
        tables.load({name: rows.values() for name, rows in history.tables.items()})
        truth = tables.documents(definitions.products["user_profile"])
    assert differing_keys(to_records(job.trial.published.messages), truth) == []
    assert len(truth) > 20
    assert job.starts > 1
    assert late.hidden > 0
    assert len(faults.counts) == 9

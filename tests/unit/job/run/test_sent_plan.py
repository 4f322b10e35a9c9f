"""What the tasks of a round carry: Spark pickles it for each task, so a plan travels apart from it, once."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer

from benchmarks.definitions import generate_definitions
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.round import PublishSetup, Round, RoundRules, StageResult
from processor.environment.settings.settings import Settings
from processor.job.run.spark_executor import SparkExecutor
from processor.language.definitions.load import load
from registry.model import Lease

SERIALIZER: Any = CloudPickleSerializer()


class Context:
    """Spark's context: it notes what a caller sends, and runs nothing."""

    defaultParallelism = 2

    def __init__(self) -> None:
        self.sparkContext = self
        self.sent: list[Any] = []
        self.live: list[Any] = []
        self.tasks: list[int] = []

    def broadcast(self, value: Any) -> "Broadcast":
        self.sent.append(value)
        self.live.append(value)
        return Broadcast(self, value)

    def parallelize(self, rows: Any, n: int) -> "Context":
        return self

    def mapPartitions(self, task: Any) -> "Context":
        self.tasks.append(len(SERIALIZER.dumps(task)))
        return self

    def collect(self) -> list[StageResult]:
        return []


class Broadcast:
    """A broadcast: a task carries its number alone."""

    def __init__(self, context: Context, value: Any) -> None:
        self.context, self.value = context, value

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ()

    def destroy(self) -> None:
        self.context.live.remove(self.value)


@pytest.fixture
def context() -> Context:
    return Context()


def test_rounds_with_the_same_plan_send_it_once(context: Context) -> None:
    executor, plan = _executor(context), _plan(1)
    for number in range(3):
        executor.run_stage(_stage, [[1]], _round(plan, number))
    assert context.sent == [plan]


def test_an_edit_sends_the_new_plan_and_drops_the_old_one(context: Context) -> None:
    executor, plan = _executor(context), _plan(1)
    edited = replace(plan, version=2)
    executor.run_stage(_stage, [[1]], _round(plan, 0))
    executor.run_stage(_stage, [[1]], _round(edited, 1))
    assert context.live == [edited]


def test_a_task_is_as_small_with_a_hundred_products_as_with_one(context: Context) -> None:
    executor = _executor(context)
    for plan in (_plan(1), _plan(100)):
        executor.run_stage(_stage, [[1]], _round(plan, 0))
    with_one, with_a_hundred = context.tasks
    assert with_a_hundred == with_one


def _executor(context: Any) -> SparkExecutor:
    lease = Lease(job="profiles", generation=1, owner="first", lanes=4)
    return SparkExecutor(spark=context, settings=Settings(), lease=lease)


def _plan(products: int) -> Plan:
    return plan_alone(load(generate_definitions(products)), Settings().slots)


def _stage(*_: Any) -> StageResult:
    return StageResult()


def _round(plan: Plan, number: int) -> Round:
    return Round(
        plan=plan,
        run=Run(number=1),
        number=number,
        batch=1,
        setup=PublishSetup(),
        rules=RoundRules(expires_at=99, oldest=0.0, dead_letter_topic="rejects"),
    )

"""The whole job over each way to prove who a client is: its documents are those of `try`."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from processor.environment.programs.downloads import spark_kafka_jars
from processor.environment.settings.resolve import resolve_kafka
from processor.job.run.source import read_stream, spark_session
from tests.secured.broker import CANARY, SecuredBroker
from tests.support.sampled import sampled

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


@pytest.mark.parametrize("listener", sampled(["SCRAM", "TLS", "PLAIN", "OAUTH"], "SCRAM"))
def test_a_job_publishes_the_documents_of_try(
    broker: SecuredBroker, new_scene: Callable[..., Scene], rows: SimpleNamespace, listener: str
) -> None:
    scene = new_scene(bootstrap_servers=broker.open)
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"), rows.star("ada", "one"), rows.star("bob", "two"))
    secured = {"bootstrap_servers": broker.addresses[listener], "kafka": tuple(broker.table(listener).items())}
    assert scene.run(**secured).published == 2
    scene.produce(rows.star("ada", "three"), rows.user(2, "eve"), ("star", {"who": "x"}, b"broken"))
    assert scene.run(**secured).tally["dead letters"] == 1
    assert scene.documents() == scene.truth()
    assert len(scene.documents()) == 2


@pytest.mark.parametrize("listener", ["SCRAM", "TLS", "OAUTH"])
def test_spark_shows_no_secret_in_a_plan_or_a_setting(broker: SecuredBroker, scene: Scene, listener: str) -> None:
    settings = replace(scene.settings, kafka=resolve_kafka(broker.table(listener).items()))
    assert CANARY not in repr(settings)
    spark = spark_session(settings, sorted(spark_kafka_jars().glob("*.jar")))
    plan = read_stream(spark, settings, ["topic"], 10)._jdf.queryExecution()
    shown = plan.toString() + str(spark.sparkContext.getConf().getAll())
    key = (broker.folder / "client.key").read_text().splitlines()[1]
    assert [secret for secret in (CANARY, key) if secret in shown] == []

"""What the port of a landing shows."""

from threading import Event
from typing import Any, cast

from processor.engine.rounds.events import Troubles, no_report
from processor.job.kafka.reader import TopicPortion
from processor.job.landing.landing import LANDING_PAGES, Landing, landing_state
from processor.job.landing.target import LandedTopic, Target
from processor.values.record import Record


class Place:
    place = "table <p> at host"


def landing_of(**more: Any) -> Landing:
    return Landing(
        topic=LandedTopic("p", "t", "id"),
        target=cast(Target, Place()),
        look=cast(Any, None),
        ends=cast(Any, None),
        join=cast(Any, None),
        note=cast(Any, None),
        troubles=Troubles(no_report),
        report=no_report,
        stopping=Event(),
        goal={},
        once=False,
        **more,
    )


def test_the_page_and_the_metrics() -> None:
    landing = landing_of()
    landing.tally.update(landed=5, deleted=1, foreign=2)
    landing.behind = 7
    landing.troubles.begin("target", "it does not answer", "start it")
    state = landing_state(landing)()
    page = LANDING_PAGES.page(state.report, state.wrong, state.degraded)
    assert "landing of p in table &lt;p&gt; at host\n5 documents landed, 1 deleted" in page
    assert "degraded: target: it does not answer: start it" in page
    assert state.report is not None
    metrics = LANDING_PAGES.metrics(state.report).decode()
    assert 'statestore_landing_messages_total{outcome="landed"} 5.0' in metrics
    assert "statestore_landing_lag_messages 7.0" in metrics
    assert 'statestore_landing_troubles{part="target"} 1.0' in metrics
    assert "\nstatestore_landing_last_seconds " not in metrics
    landing.landed_at = 0.0
    assert "\nstatestore_landing_last_seconds " in LANDING_PAGES.metrics(landing_state(landing)().report or {}).decode()


def test_the_messages_of_the_other_products_of_a_topic_are_not_foreign() -> None:
    landing = landing_of(others=frozenset({"q"}))
    words = [(f"statestore.{name}", b"1") for name in ("product_version", "sequence")]
    records = [
        Record(
            topic="t", partition=0, offset=n, key=b'{"id":1}', value=b"{}", headers=(("statestore.product", of), *words)
        )
        for n, of in enumerate((b"p", b"q", b"r"))
    ]
    found = landing._messages(TopicPortion(records=records, ends={0: 3}))
    assert [message.offset for message in found] == [0]
    assert landing.tally == {"foreign": 1}

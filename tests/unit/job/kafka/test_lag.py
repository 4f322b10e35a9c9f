"""The lag of a job between two looks at the broker."""

import socket

import pytest

from processor.errors import KafkaError
from processor.job.kafka import lag as module
from processor.job.kafka.lag import UNKNOWN, LagWatch, TopicLag, Unread, read_unread

LONG_AGO = 5.0
USER, OTHER = ("user", 0), ("user", 1)


def test_a_topic_lacks_the_records_of_all_its_partitions_since_the_oldest() -> None:
    watch = LagWatch()
    watch.keep({USER: Unread(range(3, 10), 70.0), OTHER: Unread(range(1), 60.0)}, at=100.0)
    assert watch.lags(["user"], {USER: 3}) == {"user": TopicLag(8, 60.0)}


def test_records_that_the_job_has_read_since_the_look_are_no_lag() -> None:
    watch = LagWatch()
    watch.keep({USER: Unread(range(3, 10), LONG_AGO)}, at=100.0)
    assert watch.lags(["user"], {USER: 9}) == {"user": TopicLag(1, None)}, (
        "the broker has not shown the time of this record"
    )
    assert watch.lags(["user"], {USER: 10}) == {"user": TopicLag(0, None)}


def test_a_record_with_an_old_time_waits_only_since_the_job_had_read_all() -> None:
    watch = LagWatch()
    watch.keep({USER: Unread(range(10, 10), None)}, at=100.0)
    watch.lags(["user"], {USER: 10})
    for later in (110.0, 120.0):
        watch.keep({USER: Unread(range(10, 12), LONG_AGO)}, at=later)
        assert watch.lags(["user"], {USER: 10}) == {"user": TopicLag(2, 100.0)}
    assert watch.lags(["user"], {USER: 12}) == {"user": TopicLag(0, None)}
    watch.keep({USER: Unread(range(12, 13), LONG_AGO)}, at=130.0)
    assert watch.lags(["user"], {USER: 12}) == {"user": TopicLag(1, 120.0)}


def test_a_record_that_waits_since_the_start_of_the_job_has_the_time_of_kafka() -> None:
    watch = LagWatch()
    watch.keep({USER: Unread(range(12), 40.0), OTHER: Unread(range(5, 5), None)}, at=100.0)
    assert watch.lags(["user"], {OTHER: 5}) == {"user": TopicLag(12, 40.0)}


def test_a_topic_without_unread_records_waits_0_s_and_one_whose_time_nobody_knows_for_no_known_time() -> None:
    lags = (TopicLag(0, None), TopicLag(7, 60.0), TopicLag(7, None), TopicLag(1, 101.0), UNKNOWN)
    assert [lag.seconds(now=100.0) for lag in lags] == [0.0, 40.0, None, 0.0, None]


def test_the_lag_of_a_topic_that_the_last_look_did_not_find_is_unknown() -> None:
    watch = LagWatch()
    assert watch.lags(["user"], {}) == {"user": UNKNOWN}
    watch.keep({USER: Unread(range(10, 10), None)}, at=100.0)
    assert watch.lags(["user", "star"], {}) == {"user": TopicLag(0, None), "star": UNKNOWN}
    watch.keep({}, at=110.0)
    assert watch.lags(["user"], {USER: 10}) == {"user": UNKNOWN}


def test_a_broker_that_does_not_answer_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(KafkaError, match=rf"^cannot read topics at 127\.0\.0\.1:{port}: "):
            read_unread(f"127.0.0.1:{port}", {}, ["user", "star"], {})

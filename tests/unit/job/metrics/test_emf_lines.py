"""The lines for CloudWatch keep the rules of the embedded metric format."""

import json
from typing import Any

import jsonschema

from processor.job.metrics.metrics import METRICS, EmfWriter
from tests.unit.job.metrics.run_report import JOB, run_report

REPORT = run_report()
NAME = {"type": "string", "minLength": 1, "maxLength": 1024}
SCHEMA = {
    "type": "object",
    "required": ["_aws"],
    "properties": {
        "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "properties": {
                "Timestamp": {"type": "integer", "minimum": 0},
                "CloudWatchMetrics": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["Namespace", "Dimensions", "Metrics"],
                        "properties": {
                            "Namespace": {"type": "string", "minLength": 1, "maxLength": 1024},
                            "Dimensions": {
                                "type": "array",
                                "minItems": 1,
                                "items": {"type": "array", "maxItems": 30, "items": {**NAME, "maxLength": 250}},
                            },
                            "Metrics": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": 100,
                                "items": {
                                    "type": "object",
                                    "required": ["Name"],
                                    "additionalProperties": False,
                                    "properties": {"Name": NAME, "Unit": {"enum": ["Count", "Percent", "Seconds"]}},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The schema of AWS's page "Specification: Embedded metric format", in the parts that a line uses."""


def lines(*reports: dict[str, Any]) -> list[dict[str, Any]]:
    writer = EmfWriter("statestore/tests")
    return [json.loads(writer.line(report)) for report in reports]


def test_a_line_keeps_the_schema_and_its_targets_exist() -> None:
    (line,) = lines(REPORT)
    jsonschema.validate(line, SCHEMA)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"], line["job"]) == ("statestore/tests", [["job"]], JOB)
    assert line["_aws"]["Timestamp"] == 100_000
    names = [metric["Name"] for metric in directive["Metrics"]]
    assert set(names) == {metric.name for metric in METRICS} - {"statestore_job_info"}
    for name in names:
        values = line[name] if isinstance(line[name], list) else [line[name]]
        assert 1 <= len(values) <= 100
        assert all(isinstance(value, int | float) for value in values)


def test_a_line_holds_numbers_and_the_name_of_the_job_only() -> None:
    (line,) = lines(REPORT)
    del line["_aws"]
    assert {name for name, value in line.items() if not isinstance(value, int | float | list)} == {"job"}


def test_a_counter_is_the_count_since_the_line_before_and_a_gauge_is_as_it_is() -> None:
    more = REPORT["counts"] | {"published": REPORT["counts"]["published"] + 5}
    first, second, third = lines(REPORT, REPORT | {"counts": more}, REPORT | {"counts": more})
    name = "statestore_documents_total"
    assert (first[name], second[name], third[name]) == (REPORT["counts"]["published"] + 1, 5, 0)
    assert {line["statestore_lag_records"] for line in (first, second, third)} == {7}


def test_values_of_labels_add_up_and_of_ages_the_greatest_counts() -> None:
    topics = {"a": {"records": 5, "seconds": 2.5}, "b": {"records": 6, "seconds": 8.0}}
    (line,) = lines(REPORT | {"topics": topics})
    assert (line["statestore_lag_records"], line["statestore_lag_seconds"]) == (11, 8.0)


def test_a_histogram_gives_the_bounds_of_the_values_since_the_line_before() -> None:
    name = "statestore_document_latency_seconds"
    many = REPORT["counts"] | {"freshness <= 2 s": 1 + 990, "freshness <= 8 s": 1 + 10}
    first, second, third = lines(REPORT, REPORT | {"counts": many}, REPORT | {"counts": many})
    assert first[name] == [0.315, 2.0, 8.0, 630.0]
    assert second[name] == [2.0] * 99 + [8.0]
    assert name not in third


def test_a_value_that_nobody_knows_is_not_in_the_line() -> None:
    (line,) = lines(REPORT | {"topics": {}})
    assert not {"statestore_lag_records", "statestore_lag_seconds"} & line.keys()

"""The compose file for people with Docker: its parts, its pinned images, and its files."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.required import required_docker_compose

LOCAL = Path(__file__).parents[2] / "infra" / "local"
FILE = LOCAL / "compose.yaml"
PINNED = re.compile(r"[\w./-]+:v?\d+(\.\d+)+[\w.]*")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = YAML(typ="safe").load(FILE)["services"]
    return services


def test_the_parts_are_kafka_postgres_debezium_dynamodb_prometheus_and_grafana(services: dict[str, Any]) -> None:
    assert set(services) == {"kafka", "postgres", "connect", "dynamodb", "prometheus", "grafana"}
    assert "wal_level=logical" in services["postgres"]["command"]


def test_every_image_has_a_version(services: dict[str, Any]) -> None:
    assert [one["image"] for one in services.values() if not PINNED.fullmatch(one["image"])] == []


def test_every_port_is_open_to_this_machine_only(services: dict[str, Any]) -> None:
    ports = [port for one in services.values() for port in one["ports"]]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_every_file_that_a_part_gets_exists(services: dict[str, Any]) -> None:
    mounted = [volume.split(":")[0] for one in services.values() for volume in one.get("volumes", [])]
    files = [name for name in mounted if name.startswith(".")]
    assert len(files) == 5
    assert [name for name in files if not (LOCAL / name).exists()] == []


def test_prometheus_asks_the_job_outside_of_docker(services: dict[str, Any]) -> None:
    (scrape,) = YAML(typ="safe").load(LOCAL / "prometheus.yaml")["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["host.docker.internal:9464"]}]
    assert "host.docker.internal:host-gateway" in services["prometheus"]["extra_hosts"]


@pytest.mark.docker_compose
def test_the_client_of_docker_takes_the_file() -> None:
    docker = required_docker_compose()
    done = subprocess.run(
        [docker, "compose", "--file", str(FILE), "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

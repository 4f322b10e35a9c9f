"""`statestore doctor` over a real broker with ACLs, each time with one fault; and a whole set-up without one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from processor.job.kafka.admin import Admin
from processor.job.run.topics import check_topics

Scene = Any  # conftest's
pytestmark = pytest.mark.slow
DAY = 86_400_000
USER, PASSWORD = "etl", "canary-2206"
"""As in conftest."""


def ask(scene: Scene, request: Callable[[AdminClient], dict[Any, Any]]) -> None:
    """Asks the broker as its administrator, and waits for the answer."""
    admin = AdminClient({"bootstrap.servers": scene.administered})
    for future in request(admin).values():
        future.result(300)


def topics_of(scene: Scene) -> list[str]:
    return sorted(AdminClient({"bootstrap.servers": scene.administered}).list_topics(timeout=300).topics)


def configure(name: str, **config: str) -> Callable[[Scene], None]:
    """Changes settings of a topic; `_` in place of `.`."""

    def breaks(scene: Scene) -> None:
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, scene.topic(name), incremental_configs=entries)
        ask(scene, lambda admin: admin.incremental_alter_configs([resource]))

    return breaks


def remove(name: str) -> Callable[[Scene], None]:
    return lambda scene: ask(scene, lambda admin: admin.delete_topics([scene.topic(name)]))


def read_once(scene: Scene) -> None:
    """A job has read the topic of users: the registry records it."""
    admin, topic = Admin(scene.flags["bootstrap-servers"], {}), scene.topic("user")
    check_topics(scene.registry, admin, [(topic, 0), (topic, 1)], {topic: "user"})


def lose(scene: Scene) -> None:
    read_once(scene)
    remove("user")(scene)


def make_again(scene: Scene) -> None:
    lose(scene)
    Admin(scene.flags["bootstrap-servers"], {}).ensure([scene.topic("user")], partitions=2, compacted=True)


def flag(name: str, value: str) -> Callable[[Scene], None]:
    return lambda scene: scene.flags.update({name: value})


def test_a_whole_set_up_has_no_failure_and_the_verb_leaves_nothing(whole: Scene, capsys: Any) -> None:
    safe = {"cleanup_policy": "compact", "delete_retention_ms": str(7 * DAY), "max_message_bytes": "8388608"}
    for name in ("user", "star"):
        configure(name, **safe)(whole)
    status, findings = whole.examine(capsys)
    topics = topics_of(whole)
    assert whole.examine(capsys) == (status, findings)
    wrong = [(one["check"], one["state"]) for one in findings if one["state"] not in ("ok", "skipped")]
    assert (status, wrong) == (
        0,
        [("protection", "warning"), ("protection", "warning")],
    )
    assert topics_of(whole) == topics
    assert whole.api().scan(TableName=whole.name)["Items"] == []
    assert not Path(whole.flags["checkpoint"]).exists()


@pytest.mark.parametrize(
    ("breaks", "check", "state", "words", "cure"),
    [
        (remove("star"), "source topics", "warning", ".star: does not exist", "create it"),
        (lose, "source topics", "failure", "is gone, and entity user has read it", "statestore epoch"),
        (make_again, "source topics", "failure", "was deleted and created again", "statestore epoch"),
        (
            configure("user", cleanup_policy="delete", retention_ms=str(DAY)),
            "source topics",
            "warning",
            "keeps records for 1 day:",
            "retention.ms",
        ),
        (
            configure("user", cleanup_policy="compact"),
            "source topics",
            "warning",
            "misses deletes",
            "delete.retention.ms",
        ),
        (
            configure("user", cleanup_policy="delete", retention_ms="-1"),
            "source topics",
            "warning",
            "for ever, and delete markers live for 30 days",
            "cleanup.policy=compact",
        ),
        (
            configure("profile", cleanup_policy="delete", retention_ms=str(DAY)),
            "product topics",
            "failure",
            "deletes documents after 1 day",
            "cleanup.policy=compact",
        ),
        (
            configure("profile", cleanup_policy="compact", max_message_bytes="1000000"),
            "product topics",
            "warning",
            "1000000 bytes",
            "max.message.bytes",
        ),
        (configure("rejects", cleanup_policy="compact"), "dead letters", "failure", "is compacted", "retention.ms=-1"),
        (configure("rejects", max_message_bytes="2000"), "dead letters", "failure", "2000 bytes", "max.message.bytes"),
        (flag("transaction-seconds", "3600"), "transactions", "failure", "allows 900 s", "--transaction-seconds 900"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_topic_with_a_fault(
    whole: Scene, capsys: Any, breaks: Callable[[Scene], None], check: str, state: str, words: str, cure: str
) -> None:
    breaks(whole)
    whole.expect(capsys, check, state, words, cure)


@pytest.fixture
def limited(whole: Scene, broker: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The set-up of a user who may only describe the topic of users."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    acl = AclBinding(
        ResourceType.TOPIC,
        whole.topic("user"),
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    ask(whole, lambda admin: admin.create_acls([acl]))
    file = tmp_path / "settings.toml"
    file.write_text(
        '[kafka]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"\n'
        f'"sasl.username" = "{USER}"\n"sasl.password" = "env:KAFKA_PASSWORD"\n'
    )
    whole.flags["bootstrap-servers"], whole.settings = broker[1], str(file)
    return whole


def test_a_user_without_rights(limited: Scene, capsys: Any) -> None:
    limited.expect(capsys, "source topics", "failure", f"{limited.topic('user')}: this user lacks READ", "ACL")
    limited.expect(
        capsys, "source topics", "failure", f"{limited.topic('star')}: this user lacks READ, DESCRIBE", "ACL"
    )
    limited.expect(capsys, "product topics", "failure", "this user lacks WRITE, READ, DESCRIBE", "ACL")
    limited.expect(capsys, "transactions", "warning", "does not show transaction.max.timeout.ms", "DESCRIBE_CONFIGS")


def test_a_wrong_password_of_kafka(limited: Scene, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    limited.expect(capsys, "kafka login", "failure", "sasl.username, sasl.password", "docs/kafka.md")


def test_a_variable_that_is_missing(limited: Scene, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD")
    limited.expect(capsys, "kafka login", "failure", "KAFKA_PASSWORD is not set", "docs/kafka.md")


def test_a_protocol_that_the_listener_does_not_speak(limited: Scene, capsys: Any) -> None:
    Path(limited.settings).write_text('[kafka]\n"security.protocol" = "SSL"\n')
    limited.expect(capsys, "kafka login", "failure", "security.protocol", "docs/kafka.md")

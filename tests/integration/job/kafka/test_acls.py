"""The rights in Kafka that docs/security.md lists: a job needs them, and needs no others."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from processor.errors import StatestoreError
from processor.job.run.run_job import run_job
from tests.secured.broker import USER, SecuredBroker, secured_broker

Scene = Any  # conftest's
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""The listener without security is that of the administrator here."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("guarded"), AUTHORIZER) as started:
        yield started


Rights = dict[str, list[AclBinding]]


def rights(scene: Scene) -> tuple[Rights, Rights]:
    """The rows of the table in docs/security.md: those that each start needs, and those that a new product needs once."""
    topic, id_ = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED

    def allow(
        kind: ResourceType, name: str, pattern: ResourcePatternType, *operations: AclOperation
    ) -> list[AclBinding]:
        allowed = AclPermissionType.ALLOW
        return [AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, allowed) for operation in operations]

    sources = [allow(topic, scene.topic(name), literal, AclOperation.READ) for name in ("user", "star")]
    products = [plan.product.topic for plan in scene.plan.products.values()]
    always = {
        "read of sources": [acl for acls in sources for acl in acls],
        "write of products": [acl for name in products for acl in allow(topic, name, literal, AclOperation.WRITE)],
        "write of dead letters": allow(topic, scene.settings.dead_letter_topic, literal, AclOperation.WRITE),
        "transactional ids": allow(id_, f"{scene.settings.job}-", prefixed, AclOperation.WRITE, AclOperation.DESCRIBE),
    }
    first = {
        "group": allow(ResourceType.GROUP, "statestore-reader", literal, AclOperation.READ),
        "read of products": [acl for name in products for acl in allow(topic, name, literal, AclOperation.READ)],
    }
    return always, first


def secured(broker: SecuredBroker) -> dict[str, Any]:
    return {"bootstrap_servers": broker.addresses["SCRAM"], "kafka": tuple(broker.table("SCRAM").items())}


def test_a_job_runs_with_the_rights_of_the_page_and_not_without_one_of_them(
    guarded: SecuredBroker, new_scene: Callable[..., Scene], rows: SimpleNamespace
) -> None:
    scene = new_scene(bootstrap_servers=guarded.open)
    admin = AdminClient({"bootstrap.servers": guarded.open})
    scene.admin().ensure([plan.product.topic for plan in scene.plan.products.values()], partitions=2, compacted=True)
    scene.admin().ensure([scene.settings.dead_letter_topic], partitions=1, compacted=False)
    always, first = rights(scene)
    change(admin.create_acls, [acl for acls in always.values() for acl in acls])
    scene.produce(rows.user(1, "ada"), rows.star("ada", "one"), ("star", {"who": "x"}, b"broken"))
    for acls in first.values():
        assert fails(scene, guarded)
        change(admin.create_acls, acls)
    ran = scene.run(**secured(guarded))
    assert ran.tally["dead letters"] == 1
    assert scene.documents() == scene.truth()
    change(admin.delete_acls, [as_filter(acl) for acls in first.values() for acl in acls])
    failing = set()
    for name, acls in always.items():
        change(admin.delete_acls, [as_filter(acl) for acl in acls])
        scene.produce(rows.star("ada", name), ("star", {"who": "x"}, b"broken"))
        failing |= {name} if fails(scene, guarded) else set()
        change(admin.create_acls, acls)
    assert failing == always.keys()
    scene.run(**secured(guarded))
    assert scene.documents() == scene.truth()


def fails(scene: Scene, broker: SecuredBroker) -> bool:
    """Whether the job ends with an error, or a product of it stops."""
    try:
        with scene.opened(**secured(broker)) as job:
            run_job(job, once=True)
    except StatestoreError:
        return True
    return bool(job.driver.progress.backlog.stopped)


def as_filter(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type
    )


def change(request: Callable[..., dict[Any, Any]], acls: list[Any]) -> None:
    for future in request(acls).values():
        future.result(300)

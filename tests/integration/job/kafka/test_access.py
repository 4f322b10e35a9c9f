"""A wrong setting of [kafka] is one line that names the setting."""

import sys
from pathlib import Path
from time import time
from types import SimpleNamespace

import pytest

from processor.errors import KafkaError, StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox, TransactionalOutbox
from processor.job.kafka.reader import read_topic
from processor.values.record import Message
from tests.secured.broker import VARIABLE, Authority, SecuredBroker

Table = dict[str, str]


def error_of(bootstrap: str, table: Table) -> str:
    with pytest.raises(StatestoreError) as error:
        Admin(bootstrap, table)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("listener", "named"),
    [
        ("SCRAM", "sasl.username, sasl.password: "),
        ("PLAIN", "sasl.username, sasl.password: "),
        ("OAUTH", "sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret: "),
    ],
)
def test_a_wrong_secret(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch, listener: str, named: str) -> None:
    monkeypatch.setenv(VARIABLE, "wrong")
    assert error_of(broker.addresses[listener], broker.table(listener)).startswith(f"[kafka] {named}")


@pytest.mark.rest
def test_a_wrong_password_of_a_key(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "wrong")
    with pytest.raises(KafkaError, match=r"^Kafka's client refuses its settings: .*ssl\.key\.pem failed"):
        Admin(broker.addresses["TLS"], broker.table("TLS"))


def test_an_authority_that_did_not_sign_the_certificate_of_the_broker(broker: SecuredBroker, tmp_path: Path) -> None:
    other = Authority(folder=tmp_path, name="other")
    wrong = broker.table("SCRAM") | {"ssl.ca.pem": f"file:{other.file}"}
    text = error_of(broker.addresses["SCRAM"], wrong)
    assert text.startswith("[kafka] ssl.ca.pem: ")
    assert "ssl.ca.location" not in text


def test_a_certificate_of_another_authority(broker: SecuredBroker, tmp_path: Path) -> None:
    certificate, key = Authority(folder=tmp_path, name="other").issue("client")
    table = {name: value for name, value in broker.table("TLS").items() if name != "ssl.key.password"}
    table |= {"ssl.certificate.pem": f"file:{certificate}", "ssl.key.pem": f"file:{key}"}
    assert error_of(broker.addresses["TLS"], table).startswith("[kafka] ssl.certificate.pem, ssl.key.pem: ")


@pytest.mark.rest
@pytest.mark.parametrize("listener", ["SCRAM", "TLS", "PLAIN", "OAUTH"])
def test_a_client_without_security(broker: SecuredBroker, listener: str) -> None:
    text = error_of(broker.addresses[listener], {})
    assert text.startswith("[kafka] security.protocol: the broker at 127.0.0.1:")


@pytest.mark.parametrize("listener", ["SCRAM", "TLS", "PLAIN", "OAUTH"])
def test_a_broker_without_security(broker: SecuredBroker, listener: str) -> None:
    assert error_of(broker.open, broker.table(listener)).startswith("[kafka] security.protocol: ")


def test_a_mechanism_that_the_broker_does_not_offer(broker: SecuredBroker) -> None:
    wrong = broker.table("PLAIN") | {"sasl.mechanism": "SCRAM-SHA-256"}
    text = error_of(broker.addresses["PLAIN"], wrong)
    assert text.startswith("[kafka] sasl.mechanism: ")
    assert "supported mechanisms: PLAIN" in text


@pytest.mark.rest
def test_an_address_without_a_broker() -> None:
    text = error_of("127.0.0.1:1", {})
    assert text.startswith("no answer of a broker at 127.0.0.1:1 (")
    assert "Connection refused" in text


def test_each_client_takes_the_tokens_of_msk_iam_from_the_package_of_aws(
    broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A double of the package hands out tokens that the broker takes."""

    def sign(region: str) -> tuple[str, float]:
        return broker.endpoint.token() if region == "eu-west-1" else "", (time() + 600) * 1000

    signer = SimpleNamespace(MSKAuthTokenProvider=SimpleNamespace(generate_auth_token=sign))
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    address = broker.addresses["OAUTH"]
    table = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM", "aws.region": "eu-west-1"}
    Admin(address, table).ensure(["msk"], partitions=1, compacted=False)
    for outbox in (KafkaOutbox(address, table), TransactionalOutbox(address, table, "msk")):
        outbox.send(Message(topic="msk", key=b"k", value=b"v"))
        outbox.flush()
    assert [record.value for record in read_topic(address, table, "msk")] == [b"v", b"v"]


def test_msk_iam_without_the_package_of_aws(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    table = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM", "aws.region": "eu-west-1"}
    text = error_of(broker.addresses["OAUTH"], table)
    assert text.endswith("needs a package that is not installed: pip install 'statestore[msk]'")

"""References to AWS Secrets Manager: moto holds the secrets, and a server of the test refuses requests and counts them."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count

import boto3
import pytest

from processor.environment.settings.resolve import read_secret, resolve_kafka, resolve_reference, resolve_registry
from processor.environment.settings.settings import read_settings
from processor.errors import SettingError

REGION = "eu-central-1"
ARN = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:registry-AbCdEf"
HIDDEN = "hunter2"


@pytest.fixture(autouse=True)
def _no_secret_known() -> Iterator[None]:
    read_secret.cache_clear()
    yield
    read_secret.cache_clear()


Stored = Callable[[str | bytes], str]


@pytest.fixture(scope="module")
def stored(moto: str) -> Stored:
    """Stores a secret, and returns its ARN."""
    client, numbers = boto3.client("secretsmanager", region_name=REGION, endpoint_url=moto), count()

    def store(text: str | bytes) -> str:
        given = {"SecretString": text} if isinstance(text, str) else {"SecretBinary": text}
        return str(client.create_secret(Name=f"registry-{next(numbers)}", **given)["ARN"])

    return store


@pytest.fixture
def aurora(moto: str, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ARN of a secret like that of an Aurora cluster."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    return stored(json.dumps({"username": "statestore", "password": HIDDEN, "port": 5432}))


def test_the_secret_of_an_aurora_cluster_completes_the_address(aurora: str) -> None:
    given = {"registry": "postgresql://statestore@h/d", "registry_password": f"secret:{aurora}#password"}
    assert resolve_registry(read_settings(given, {})).registry == f"postgresql://statestore@h/d?password={HIDDEN}"


def test_a_setting_of_kafka_takes_the_whole_text_of_a_secret(aurora: str, stored: Stored) -> None:
    arn = stored(HIDDEN)
    assert resolve_kafka([("sasl.password", f"secret:{arn}")]) == (("sasl.password", HIDDEN),)


def test_two_fields_of_a_secret_are_one_request(aurora: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_reference("a", f"secret:{aurora}#username") == "statestore"
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://127.0.0.1:1")  # no second request could succeed
    assert resolve_reference("b", f"secret:{aurora}#password") == HIDDEN


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (None, "", "the secret {arn} cannot be read: ResourceNotFoundException: there is no such secret"),
        (json.dumps({"word": HIDDEN}), "#password", "the secret {arn} has no field password with a text"),
        ("[" * 5000 + HIDDEN, "#password", "the secret {arn} is no JSON object, so it has no field password"),
        (HIDDEN.encode(), "", "the secret {arn} holds bytes: store it as text"),
    ],
)
def test_a_secret_that_does_not_fit_is_an_error_with_its_arn(
    aurora: str, stored: Stored, text: str | bytes | None, field: str, message: str
) -> None:
    arn = ARN if text is None else stored(text)
    with pytest.raises(SettingError) as error:
        resolve_reference("registry_password", f"secret:{arn}{field}")
    assert str(error.value).startswith(f"registry_password: {message.format(arn=arn)}")
    assert HIDDEN not in str(error.value)


@pytest.mark.parametrize(
    ("status", "code", "requests", "message"),
    [
        (400, "AccessDeniedException", 1, "AccessDeniedException: allow secretsmanager:GetSecretValue on it, and kms:"),
        (400, "DecryptionFailure", 1, "DecryptionFailure: "),
        (500, "InternalServiceError", 3, "InternalServiceError: "),
    ],
)
def test_a_refusal_is_one_request_and_a_failure_three(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, requests: int, message: str
) -> None:
    asked: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.headers["X-Amz-Target"])
            body = json.dumps({"__type": code, "message": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(SettingError, match=f"^registry: the secret {ARN} cannot be read: {message}"):
            resolve_reference("registry", f"secret:{ARN}")
        server.shutdown()
    assert asked == ["secretsmanager.GetSecretValue"] * requests

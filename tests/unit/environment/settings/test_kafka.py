"""The table [kafka]: its names, its references, and what each client gets of it."""

from pathlib import Path

import pytest

from processor.environment.settings.kafka import Secret, for_java, for_librdkafka
from processor.environment.settings.resolve import resolve_kafka
from processor.environment.settings.settings import read_settings
from processor.errors import SettingError
from processor.job.kafka.client import settings as client_settings

MODULES = "org.apache.kafka.common.security"
SASL = '"security.protocol" = "SASL_SSL"\n"sasl.mechanism" = '
USER = '"sasl.username" = "me"\n"sasl.password" = "env:PASSWORD"\n'
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"


def read(folder: Path, text: str) -> dict[str, str]:
    """The resolved settings of a table [kafka]."""
    file = folder / "settings.toml"
    file.write_text(f"[kafka]\n{text}")
    return dict(resolve_kafka(read_settings({}, {}, str(file)).kafka))


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", 'a"b\\c')
    monkeypatch.setenv("CERTIFICATE", CERTIFICATE)


@pytest.mark.parametrize(
    ("mechanism", "login"),
    [
        ("PLAIN", f"{MODULES}.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", f"{MODULES}.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", f"{MODULES}.scram.ScramLoginModule"),
    ],
)
def test_a_user_with_a_password(tmp_path: Path, mechanism: str, login: str) -> None:
    kafka = read(tmp_path, f'{SASL}"{mechanism}"\n{USER}')
    shared = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
    assert for_librdkafka(kafka) == shared | {"sasl.username": "me", "sasl.password": 'a"b\\c'}
    jaas = f'{login} required username="me" password="a\\"b\\\\c";'
    assert for_java(kafka) == shared | {"sasl.jaas.config": jaas}


def test_certificates(tmp_path: Path) -> None:
    (tmp_path / "client.key").write_text(KEY + "\n")
    text = '"security.protocol" = "SSL"\n"ssl.ca.pem" = "env:CERTIFICATE"\n"ssl.certificate.pem" = "env:CERTIFICATE"\n'
    kafka = read(tmp_path, f'{text}"ssl.key.pem" = "file:{tmp_path}/client.key"\n"ssl.key.password" = "env:PASSWORD"')
    shared = {"security.protocol": "SSL", "ssl.key.password": 'a"b\\c'}
    pem = {"ssl.ca.pem": CERTIFICATE, "ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY}
    assert for_librdkafka(kafka) == shared | pem
    assert for_java(kafka) == shared | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": KEY,
    }


def test_client_credentials_of_oauth(tmp_path: Path) -> None:
    names = {
        "token.endpoint.url": "https://login/token",
        "client.id": "me",
        "client.secret": "env:PASSWORD",
        "scope": "k",
    }
    text = "".join(f'"sasl.oauthbearer.{name}" = "{value}"\n' for name, value in names.items())
    kafka = read(tmp_path, f'{SASL}"OAUTHBEARER"\n{text}')
    shared = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    own = {f"sasl.oauthbearer.{name}": value for name, value in names.items()}
    own["sasl.oauthbearer.client.secret"] = 'a"b\\c'
    assert for_librdkafka(kafka) == shared | own | {"sasl.oauthbearer.method": "oidc"}
    login = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
    assert for_java(kafka) == shared | {
        "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        "sasl.jaas.config": f'{login} required clientId="me" clientSecret="a\\"b\\\\c" scope="k";',
        "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
    }


def test_iam_of_msk(tmp_path: Path) -> None:
    kafka = read(tmp_path, f'{SASL}"AWS_MSK_IAM"\n"aws.region" = "eu-west-1"')
    assert for_librdkafka(kafka) == {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    assert for_java(kafka) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }


def test_a_client_gets_the_settings_of_its_own_table_as_they_are(tmp_path: Path) -> None:
    text = 'client.id = "me"\nlibrdkafka.socket.timeout.ms = 9\n[kafka.java]\n"request.timeout.ms" = 8'
    kafka = read(tmp_path, text)
    assert for_librdkafka(kafka) == {"client.id": "me", "socket.timeout.ms": "9"}
    assert for_java(kafka) == {"client.id": "me", "request.timeout.ms": "8"}


def test_a_secret_shows_its_text_to_a_client_only(tmp_path: Path) -> None:
    kafka = read(tmp_path, f'{SASL}"PLAIN"\n{USER}')
    assert 'a"b' not in repr(kafka)
    assert client_settings("h:1", kafka)["sasl.password"] == 'a"b\\c'
    assert resolve_kafka([("sasl.password", Secret("env:NOWHERE"))]) == (("sasl.password", "env:NOWHERE"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"ssl.ca.location" = "/ca.pem"', "there is no `ssl.ca.location`; the names are security.protocol, sasl.mechanism, "),
        ('"security.protocol" = "TLS"', "security.protocol: there is no 'TLS'; use PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ('"security.protocol" = "SASL_SSL"', "sasl.mechanism is missing; use PLAIN, SCRAM-SHA-256, "),
        (f'{SASL}"GSSAPI"', "sasl.mechanism: there is no 'GSSAPI'; use PLAIN, "),
        (f'{SASL}"PLAIN"\n"sasl.username" = "me"', "sasl.password is missing, and PLAIN needs it"),
        (USER, "sasl.username has no effect with security.protocol PLAINTEXT: "),
        (f'"security.protocol" = "SSL"\n{USER}', "sasl.username has no effect with security.protocol SSL: "),
        (f'{SASL}"PLAIN"\n{USER}"aws.region" = "x"', "aws.region has no effect with security.protocol SASL_SSL and "),
        ('"security.protocol" = "SSL"\n"ssl.key.pem" = "env:A"', "ssl.certificate.pem is missing, and ssl.key.pem needs it"),
        (f'{SASL}"PLAIN"\n"sasl.username" = "me"\n"sasl.password" = "hunter2"', "sasl.password holds its value: "),
        ('[kafka.java]\n"sasl.jaas.config" = "x password=hunter2"', "java.sasl.jaas.config holds its value: write "),
        ('"sasl.password" = ["hunter2"]', "'sasl.password': the value is not text; a line has the form "),
        ('"client.id" = "a\\nb"', "client.id: the value is not text in one line"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_one_line_that_names_the_setting(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingError, match=rf"settings.toml: \[kafka\] {message}") as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("reference", "content", "message"),
    [
        ("env:NOWHERE", b"", "the variable NOWHERE is not set"),
        ("file:{}/nothing", b"", "the file .*/nothing cannot be read: No such file or directory"),
        ("file:{}/key", b"\xff\xfe", "the file .*/key is not UTF-8 text"),
        (
            "file:{}/key",
            b"hunter2",
            "has no PEM text that begins with `BEGIN PRIVATE KEY` or `BEGIN ENCRYPTED PRIVATE KEY`",
        ),
        ("file:{}/key", KEY.replace("PRIVATE", "RSA PRIVATE").encode(), "convert the key with `openssl pkcs8 -topk8`"),
        ("file:{}/key", KEY.replace("AAAA", "A").encode(), "its lines are not base64"),
        (
            "file:{}/key",
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFLTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHA==\n-----END",
            "Java 17 cannot read the encryption of .* with `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES`",
        ),
    ],
)
def test_a_reference_that_leads_to_no_key(tmp_path: Path, reference: str, content: bytes, message: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(SettingError, match=rf"^\[kafka\] ssl.key.pem: .*{message}") as error:
        resolve_kafka([("ssl.key.pem", reference.format(tmp_path))])
    assert "\n" not in str(error.value)
    assert "hunter2" not in str(error.value)

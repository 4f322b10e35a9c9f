"""The table [schema_registry]: its names, and its references."""

from pathlib import Path

import pytest

from processor.environment.settings.resolve import resolve_tables
from processor.environment.settings.schema_registry import schema_registry_place
from processor.environment.settings.secrets import Secret
from processor.environment.settings.settings import Settings, read_settings
from processor.errors import SettingError
from processor.tools.doctor.checks import _secrets

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
ENCRYPTED = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMGAGCSqGSIb3DQEFDQ==\n-----END ENCRYPTED PRIVATE KEY-----"
URL = '"url" = "https://registry.example.org:8081/path"\n'


APICURIO = '"kind" = "apicurio"\n"url" = "https://registry.example.org/apis/registry/v3"\n'


def read(folder: Path, text: str) -> Settings:
    file = folder / "settings.toml"
    file.write_text(f"[schema_registry]\n{text}")
    return read_settings({}, {}, str(file))


def test_secrets_are_references_that_the_driver_resolves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "a:very:secret")
    monkeypatch.setenv("PEM", CERTIFICATE)
    (tmp_path / "key.pem").write_text(ENCRYPTED)
    settings = read(
        tmp_path,
        f'{URL}"username" = "me"\n"password" = "env:PASSWORD"\n"ssl.ca.pem" = "env:PEM"\n"ssl.certificate.pem" = "env:PEM"\n'
        f'"ssl.key.pem" = "file:{tmp_path}/key.pem"\n"ssl.key.password" = "env:PASSWORD"',
    )
    assert "a:very:secret" not in repr(settings)
    resolved = resolve_tables(settings)
    assert dict(resolved.schema_registry) == {
        "url": "https://registry.example.org:8081/path",
        "username": "me",
        "password": "a:very:secret",
        "ssl.ca.pem": CERTIFICATE,
        "ssl.certificate.pem": CERTIFICATE,
        "ssl.key.pem": ENCRYPTED,
        "ssl.key.password": "a:very:secret",
    }
    assert "a:very:secret" not in repr(resolved)
    assert Secret("a:very:secret") in set(_secrets(settings))


def test_without_the_table_there_is_no_registry(tmp_path: Path) -> None:
    assert read(tmp_path, "").schema_registry == ()
    assert read_settings({}, {}).schema_registry == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"username" = "me"', "password is missing, and username needs it"),
        ('"kind" = "apicuro"\n', "kind: there is no 'apicuro'; did you mean 'apicurio'?"),
        ('"kind" = "karapace"\n', "kind: there is no 'karapace'; use confluent, apicurio, glue"),
        (f'{APICURIO}"ids" = "content"', "ids: there is no 'content'; use contentId or globalId, as"),
        (APICURIO, 'ids is missing: write "ids" = "contentId", or "globalId"'),
        (
            f'"kind" = "apicurio"\n{URL}"ids" = "globalId"',
            "url: 'https://registry.example.org:8081/path' does not end in /apis/registry/v3 or /apis/registry/v2",
        ),
        (f'{URL}"ids" = "globalId"', "there is no setting 'ids'; the settings are kind, url"),
        ('"kind" = "glue"\n', 'region is missing: write "region" = "eu-central-1"'),
        ('"kind" = "glue"\n"region" = "Frankfurt"', "region: 'Frankfurt' is no region of AWS"),
        ('"kind" = "glue"\n"region" = "eu-west-1"\n"endpoint" = "vpc"', "endpoint: 'vpc' is no address"),
        (
            f'"kind" = "glue"\n"region" = "eu-west-1"\n{URL}',
            "there is no setting 'url' of kind glue; the settings",
        ),
        ('"url" = "registry:8081"', "url: 'registry:8081' is no address of a registry; write https://host:port"),
        ('"url" = "https://me:secret@registry"', "url: the address holds a user; give it as username"),
        ('"url" = "http://a,ftp://b"', "url: 'ftp://b' is no address of a registry"),
        ('"url" = "https://[bad"', "url: the address cannot be read"),
        (f'{URL}"password" = "secret1234"', "password holds its value: write"),
        (f'{URL}"ssl.ca.pem" = "AAAA"', "ssl.ca.pem holds its value: write"),
        (
            f'{URL}"token" = "env:T"',
            "there is no setting 'token'; the settings are kind, url, username, password, ssl.ca.pem",
        ),
        (f'{URL}"ssl.key.pem" = "env:K"', "ssl.certificate.pem is missing, and ssl.key.pem needs it"),
        ('"url" = "http://a"\n"ssl.ca.pem" = "env:K"', "ssl.ca.pem has no effect with http://a: write https://"),
        ('"ssl.ca.pem" = "env:K"', "url is missing"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_the_setting(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingError) as error:
        read(tmp_path, text)
    assert f"{tmp_path}/settings.toml: [schema_registry] {message}" in str(error.value)
    assert "secret1234" not in str(error.value)


def test_the_setting_must_be_a_table(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('schema_registry = "http://a"')
    with pytest.raises(SettingError, match=r"\[schema_registry\] is no table: write \[schema_registry\] in a line"):
        read_settings({}, {}, str(file))


def test_a_reference_to_nothing_names_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSWORD", raising=False)
    settings = read(tmp_path, f'{URL}"username" = "me"\n"password" = "env:PASSWORD"')
    with pytest.raises(SettingError, match=r"\[schema_registry\] password: the variable PASSWORD is not set"):
        resolve_tables(settings)


def test_each_kind_says_where_it_is(tmp_path: Path) -> None:
    for text, place in (
        (URL, "https://registry.example.org:8081/path"),
        (f'{APICURIO}"ids" = "contentId"', "https://registry.example.org/apis/registry/v3"),
        ('"kind" = "glue"\n"region" = "eu-west-1"', "AWS Glue in eu-west-1"),
        (
            '"kind" = "glue"\n"region" = "eu-west-1"\n"endpoint" = "https://vpce.example.org"',
            "https://vpce.example.org",
        ),
    ):
        assert schema_registry_place(dict(read(tmp_path, text).schema_registry)) == place
    assert schema_registry_place({}) == ""

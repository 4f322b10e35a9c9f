"""A secret is given by reference. No file, no flag, no error and no representation of the settings shows its value."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from processor.environment.settings.kafka import Secret
from processor.environment.settings.resolve import resolve_registry
from processor.environment.settings.settings import read_settings
from processor.errors import SettingError
from registry.repository.connection import Database

HIDDEN = "hunter2"
ADDRESS = "postgresql://me@h:5432/d"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{HIDDEN}@h/d",
        f"postgresql+psycopg://:{HIDDEN}@h/d",
        f"postgresql://me@h/d?password={HIDDEN}",
        f"postgresql://me@h/d?sslmode=require&sslpassword={HIDDEN}",
    ],
)
def test_a_file_and_a_flag_refuse_an_address_with_a_password(tmp_path: Path, address: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'registry = "{address}"')
    with pytest.raises(
        SettingError, match=r"settings.toml: registry: the address holds a password; leave it out"
    ) as error:
        read_settings({}, {}, str(file))
    assert HIDDEN not in str(error.value)
    with pytest.raises(SettingError, match="--registry: the address holds a password") as error:
        read_settings({"registry": address}, {})
    assert HIDDEN not in str(error.value)


def test_a_file_and_a_flag_refuse_the_password_itself(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'registry_password = "{HIDDEN}"')
    with pytest.raises(
        SettingError, match='registry_password holds the password itself: write "env:NAME" for'
    ) as error:
        read_settings({}, {}, str(file))
    assert HIDDEN not in str(error.value)
    with pytest.raises(SettingError, match="--registry-password holds the password itself"):
        read_settings({"registry_password": HIDDEN}, {})


def test_a_variable_may_hold_the_secret_and_no_representation_shows_it() -> None:
    named = {"STATESTORE_REGISTRY": ADDRESS, "STATESTORE_REGISTRY_PASSWORD": HIDDEN}
    whole = {"STATESTORE_REGISTRY": ADDRESS.replace("me@", f"me:{HIDDEN}@")}
    for environment, address in (
        (named, f"{ADDRESS}?password={HIDDEN}"),
        (whole, f"postgresql://me:{HIDDEN}@h:5432/d"),
    ):
        settings = read_settings({}, environment)
        assert HIDDEN not in repr(settings)
        assert resolve_registry(settings).registry == address
        assert HIDDEN not in repr(resolve_registry(settings))


def test_an_error_shows_no_part_of_a_secret_with_a_line_end() -> None:
    for name in ("REGISTRY", "REGISTRY_PASSWORD"):
        with pytest.raises(SettingError, match=f"STATESTORE_{name}: the value is not text in one line") as error:
            read_settings({}, {f"STATESTORE_{name}": f"{HIDDEN}\n"})
        assert HIDDEN not in str(error.value)


@pytest.mark.parametrize("address", [ADDRESS, f"{ADDRESS}?sslmode=disable", "postgresql://", "postgresql+psycopg://"])
def test_a_password_with_any_character_reaches_postgres_as_it_is(tmp_path: Path, address: str) -> None:
    password = "a@b:/?#&=%+ é'\"\\"
    (tmp_path / "password").write_text(f"{password}\n", encoding="utf-8")
    settings = read_settings({"registry": address, "registry_password": f"file:{tmp_path}/password"}, {})
    whole = resolve_registry(settings).registry
    assert Database(whole, "s").url.query["password"] == password
    assert conninfo_to_dict(whole.replace("+psycopg", ""))["password"] == password


def test_a_number_in_the_place_of_an_address_is_no_reference(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("registry = 5")
    assert read_settings({}, {}, str(file)).registry == "5"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_log_values_is_true_or_false(text: str, value: bool) -> None:
    assert read_settings({}, {"STATESTORE_LOG_VALUES": text}).log_values is value
    with pytest.raises(SettingError, match="--log-values: 'yes' is not true or false"):
        read_settings({"log_values": "yes"}, {})


def test_the_whole_address_may_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHOLE", f"postgresql://me:{HIDDEN}@h/d")
    settings = resolve_registry(read_settings({"registry": "env:WHOLE"}, {}))
    assert settings.registry == f"postgresql://me:{HIDDEN}@h/d"
    assert isinstance(settings.registry, Secret)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("env:NOWHERE", "the variable NOWHERE is not set"),
        ("file:/nowhere", "the file /nowhere cannot be read: No such file or directory"),
        ("secret:production", "'production' is no ARN of a secret: give arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"),
        ("secret:arn:aws:s3:eu-west-1:123456789012:secret:x", "'arn:aws:s3:eu-west-1:123456789012:secret:x' is no ARN"),
    ],
)  # fmt: skip
def test_a_reference_to_nothing_is_an_error_that_names_the_setting(reference: str, message: str) -> None:
    with pytest.raises(SettingError, match=f"^registry_password: {message}"):
        resolve_registry(read_settings({"registry_password": reference}, {}))

"""Settings come from flags, the environment and a file. A wrong one is an error that names it."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from processor.cli.main import parsed
from processor.environment.settings.resolve import resolve_registry
from processor.environment.settings.settings import Settings, read_settings
from processor.errors import SettingError
from processor.tools.inspect.prices import read_prices


@pytest.mark.parametrize("written", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("name", ["wait_seconds", "settle_seconds", "max_reject_share"])
def test_a_number_that_is_not_finite_is_refused(name: str, written: str) -> None:
    with pytest.raises(SettingError, match=f"STATESTORE_{name.upper()}: '{written}' is not a number"):
        read_settings({}, {f"STATESTORE_{name.upper()}": written})
    with pytest.raises(SettingError, match=f"--{name.replace('_', '-')}: nan is not a number"):
        read_settings({name: float("nan")}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"wait_seconds = nan", "wait_seconds: nan is not a number"),
        (b"slots = inf", "slots: inf is not a whole number"),
        (b"threads = 2.5", "threads: 2.5 is not a whole number"),
        (b"table = ['a']", r"table: \['a'\] is not text in one line"),
        (b'table = "a\\u0000"', r"table: 'a\\x00' is not text in one line"),
        (b"[kafka]\n'enable.x' = true", r"\[kafka\] there is no `enable.x`; the names are security.protocol, "),
        (b'job = "\xff"', "is not TOML: not UTF-8 at byte 8"),
        (b"slots = " + b"9" * 5_000, "is not TOML: "),
        (b"slots = " + b"[" * 5_000, "is not TOML: "),
    ],
)
def test_a_wrong_file_is_an_error_in_one_line(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(text)
    with pytest.raises(SettingError, match=message) as error:
        read_settings({}, {}, str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [b"\xff", b"write = 1e99999999999999999999", b"write = " + b"9" * 5_000])
def test_a_wrong_file_of_prices_is_an_error(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes(text)
    with pytest.raises(SettingError, match="not TOML"):
        read_prices(str(file))


@pytest.mark.parametrize("price", ["nan", "inf", "-1.0"])
def test_a_price_is_a_finite_amount(tmp_path: Path, price: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(f'region = "r"\ndate = "d"\nwrite = {price}\nread = 0.1\n')
    with pytest.raises(SettingError, match="dollars a million units"):
        read_prices(str(file))
    file.write_text(file.read_text().replace(price, "0.7"))
    assert read_prices(str(file)).write == Decimal("0.7")


def test_boto3_is_a_setting_and_another_client_is_refused() -> None:
    assert read_settings({}, {}).dynamodb_client == "lean"
    assert read_settings({}, {"STATESTORE_DYNAMODB_CLIENT": "boto3"}).dynamodb_client == "boto3"
    with pytest.raises(SettingError, match="dynamodb_client: there is no 'curl'; use lean or boto3"):
        read_settings({"dynamodb_client": "curl"}, {})


@pytest.mark.parametrize("name", ["AWS/DynamoDB", "a b", "é", "x" * 256])
def test_a_namespace_that_cloudwatch_refuses_is_an_error(name: str) -> None:
    assert read_settings({"cloudwatch_namespace": "team/statestore"}, {}).cloudwatch_namespace == "team/statestore"
    with pytest.raises(SettingError, match="cloudwatch_namespace: CloudWatch refuses"):
        read_settings({"cloudwatch_namespace": name}, {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"store": "mysql"}, "store: there is no 'mysql'; use dynamodb or postgres"),
        (
            {"store": "postgres", "table": "mine", "registry_schema": "state_mine"},
            "registry_schema: state_mine is the schema of the table; give another one",
        ),
        (
            {"store_url": "postgresql://a:hidden@b/c"},
            "--store-url: the address holds a password; leave it out, and for store_password write",
        ),
        ({"store_password": "hidden"}, "--store-password holds the password itself: write"),
    ],
)
def test_a_wrong_store_is_refused_without_its_password(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)) as refused:
        read_settings(given, {})
    assert "hidden" not in str(refused.value)


def test_the_address_of_the_store_gets_its_password_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_PASSWORD", "a/b")
    read = read_settings({"store_url": "postgresql://u@h/d", "store_password": "env:STATE_PASSWORD"}, {})
    resolved = resolve_registry(read)
    assert resolved.store_url == "postgresql://u@h/d?password=a%2Fb"
    assert "a%2Fb" not in repr(resolved)
    assert resolve_registry(Settings()).store_url == ""


@pytest.mark.parametrize("place", ["flag", "variable", "file"])
def test_the_former_name_of_a_setting_is_taken_and_both_names_are_refused(place: str, tmp_path: Path) -> None:
    def read(**named: str) -> str:
        file = tmp_path / "settings.toml"
        file.write_text("\n".join(f'{name} = "{value}"' for name, value in named.items() if place == "file"))
        environment = {f"STATESTORE_{name.upper()}": value for name, value in named.items() if place == "variable"}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in named.items() if place == "flag"]
        options = parsed(["slots", *words])
        return read_settings(vars(options), environment, file=str(file)).dead_letter_topic

    assert read() == "statestore.rejects"
    assert read(dead_letter_topic="new") == "new"
    assert read(rejects_topic="old") == "old"
    if place != "flag":
        with pytest.raises(SettingError, match=r"(?i)rejects_topic is the former name of .*dead_letter_topic"):
            read(rejects_topic="old", dead_letter_topic="new")

"""Where the console may listen, and who may reach it."""

from pathlib import Path

import pytest

from processor.cli import serve
from processor.cli.main import main, parsed

PROXY = ["--proxy", "10.0.0.5", "--identity-header", "X-User"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 is reachable from other machines: give --tokens REF, or --proxy"),
        (["--host", "0.0.0.0", "--proxy", "10.0.0.5"], "--identity-header and --proxy go together"),
        (["--identity-header", "X-User"], "--identity-header and --proxy go together"),
        (["--tokens", "ada=the-token-itself"], "--tokens holds the secret itself"),
        ([*PROXY, "--tokens", "env:T"], "--tokens and --proxy both say who a person is"),
        (["--operators", "ada"], "--operators names people, and only --tokens or --proxy say who"),
        ([*PROXY, "--operators", "group:on-call"], "--group-header, --proxy and a `group:NAME`"),
        ([*PROXY, "--group-header", "X-Groups"], "--group-header, --proxy and a `group:NAME`"),
        (["--public-host", "console.example.org"], "--public-host goes with --proxy"),
        (
            [*PROXY, "--public-host", "https://console.example.org"],
            "--public-host: https://console.example.org is no name",
        ),
        ([*PROXY, "--public-host", "a.example.org, b.example.org:443"], "--public-host: b.example.org:443 is no name"),
        (["--tokens", "env:T", "--operators", "group:on-call"], "--group-header, --proxy and a `group:NAME`"),
    ],
)
def test_a_console_that_others_reach_needs_to_know_them(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", *flags]) == 1
    assert capsys.readouterr().err.startswith(f"statestore console: {message}")


def test_only_the_owner_may_read_the_tokens_of_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens"
    file.write_text("ada=0123456789abcdef\n", encoding="utf-8")
    file.chmod(0o644)
    assert main(["console", "--tokens", f"file:{file}"]) == 1
    assert f"others may read {file}: give it to its owner alone (chmod 600 {file})" in capsys.readouterr().err


def names(*flags: str) -> set[str]:
    """The names of the Host of requests that a console takes; none for every name."""
    return set(serve.name_rules(parsed(["console", *flags])).names)


def test_the_host_of_a_request_is_checked_where_a_browser_could_state_a_person() -> None:
    local = {"localhost", "127.0.0.1", "::1"}
    assert names() == local
    assert names("--host", "127.0.0.9") == local | {"127.0.0.9"}
    assert names(*PROXY) == local
    assert names(*PROXY, "--host", "0.0.0.0", "--public-host", "Console.Example.org, b") == local | {
        "console.example.org",
        "b",
    }
    assert names(*PROXY, "--host", "10.0.0.1") == local | {"10.0.0.1"}
    assert names("--tokens", "env:T") == local
    assert names("--tokens", "env:T", "--host", "10.0.0.1") == set()


@pytest.mark.parametrize("verb", ["serve", "console"])
@pytest.mark.parametrize("port", ["0", "65536", "-1", "8280x", ""])
def test_a_port_that_there_is_not_is_wrong_usage(verb: str, port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--port", port])
    assert ended.value.code == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["run"], ["land", "profile", "--to", "postgresql://localhost/x"]])
@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_a_status_port_that_there_is_not_is_an_error(
    flags: list[str], port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main([*flags, f"--status-port={port}"])
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status in (1, 2)
    assert "status_port" in capsys.readouterr().err.replace("-", "_")

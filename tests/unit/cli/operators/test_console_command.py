"""Where the console may listen, and who may reach it."""

from pathlib import Path

import pytest

from processor.cli.main import main

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

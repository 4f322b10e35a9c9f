"""Where the console may listen."""

import pytest

from processor.cli.main import main


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 is reachable from other machines: give --token REF, or --proxy"),
        (["--host", "0.0.0.0", "--proxy", "10.0.0.5"], "--identity-header and --proxy go together"),
        (["--identity-header", "X-User"], "--identity-header and --proxy go together"),
        (["--token", "the-token-itself"], "--token holds the token itself"),
    ],
)
def test_a_console_that_others_reach_needs_to_know_them(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", *flags]) == 1
    assert capsys.readouterr().err.startswith(f"statestore console: {message}")

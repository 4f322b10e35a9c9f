"""The command itself: its help, its flags for all verbs, and how errors end it. Also `statestore local` without parts."""

import re
import subprocess
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from processor.cli import look
from processor.cli.main import FORMER, OF_AUTHORS_TOO, VERBS, main
from processor.cli.verb import GROUPS, KNOWN, OPERATORS
from processor.environment import embedded as parts
from processor.environment.embedded import Addresses
from registry.errors import RegistryUnreachable

ROOT = Path(__file__).parents[3]
ADDRESSES = Addresses(bootstrap_servers="b:1", registry_url="r", endpoints={"dynamodb": "e"})


def help_of(capsys: Any, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return str(capsys.readouterr().out)


def test_the_help_lists_each_verb_once_in_three_groups(capsys: Any) -> None:
    text = help_of(capsys, "--help-all")
    titles = [line for line in text.splitlines() if line.startswith("verbs of")]
    assert titles == ["verbs of an author of products:", "verbs of an operator:", "verbs of this machine:"]
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] not in " -"]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(VERBS)


def test_the_first_help_only_names_the_verbs_that_an_author_never_needs(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    text = help_of(capsys, "--help")
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] not in " -"}
    of_authors = {name for name in VERBS if KNOWN[name].group != OPERATORS}
    assert listed == of_authors | {*OF_AUTHORS_TOO}
    assert text.splitlines()[-1].endswith(f": {', '.join(name for name in VERBS if name not in listed)}.")


@pytest.mark.parametrize("words", [["check"], ["local", "up"], ["dead-letters", "list"], ["init"], ["history"]])
def test_each_verb_takes_help_all(words: list[str], capsys: Any) -> None:
    assert "--help-all" in help_of(capsys, *words, "--help-all")


def test_a_verb_that_lacks_spark_names_the_command_that_installs_it(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(_: object) -> int:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(look, "reachable_settings", lacks)
    assert main(["get", "p", "k"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "statestore get: this verb needs Spark, which is not installed: `make setup` in a checkout, else "
    )
    assert "MB to download" in said


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_is_declared_in_its_module_with_a_group_a_help_and_a_row_in_the_page(name: str) -> None:
    import_module(f"processor.cli.{VERBS[name]}")
    declared = KNOWN[name]
    assert declared.group in GROUPS
    functions = [one.run for one in declared.actions.values()] or [declared.run]
    assert all(one.help for one in (declared, *declared.actions.values()))
    assert {getattr(run, "__module__", "") for run in functions} == {f"processor.cli.{VERBS[name]}"}
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "verbs.md").read_text(), re.MULTILINE)
    documented = {word.partition(" ")[0] for row in rows for word in re.findall(r"`([^`]+)`", row)}
    assert name in documented


def test_no_verb_is_missing_in_the_table_of_verbs() -> None:
    for path in (ROOT / "processor" / "cli").glob("*.py"):
        import_module(f"processor.cli.{path.stem}")
    assert set(KNOWN) == set(VERBS)


def test_the_former_name_of_a_verb_does_the_same(capsys: Any) -> None:
    assert FORMER == {"rejects": "dead-letters"}
    new, old = (help_of(capsys, verb, "list", "--help") for verb in ("dead-letters", "rejects"))
    assert old == new


def test_the_help_of_a_verb_shows_the_settings_that_it_needs_and_help_all_the_others(capsys: Any) -> None:
    short, long = help_of(capsys, "get", "--help"), help_of(capsys, "get", "--help-all")
    assert "--registry, " in short
    assert "--bootstrap-servers" not in short
    assert "--registry X" in long
    assert "--bootstrap-servers X" in long


def test_the_help_of_a_verb_has_at_most_35_lines(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = {verb: len(help_of(capsys, verb, "--help").splitlines()) for verb in VERBS}
    assert {verb: count for verb, count in lines.items() if count > 35} == {}


def test_the_help_fits_the_terminal(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, help_of(capsys, "run", "--help").splitlines())) <= 60


def test_the_version_is_that_of_the_package(capsys: Any) -> None:
    assert help_of(capsys, "--version") == f"statestore {version('statestore')}\n"


@pytest.mark.parametrize("words", [["--vers"], ["try", "--def", "x", "--from", "y"], ["dead-letters", "list", "--eac"]])
def test_a_part_of_a_flag_is_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


@pytest.mark.parametrize("words", [["--debug", "schema"], ["schema", "--debug"]])
def test_debug_shows_where_an_error_comes_from(words: list[str], capsys: Any) -> None:
    assert main([*words, "p", "--definitions", "no such folder"]) == 1
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith("statestore schema: no such folder: the directory cannot be read")


def test_an_unexpected_error_is_one_line_with_a_status_of_its_own(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise TypeError("not a number\n\tat a.b.C")

    monkeypatch.setattr(look, "reachable_settings", fail)
    assert main(["get", "p", "k"]) == 3
    assert capsys.readouterr().err == (
        "statestore get: unexpected TypeError: not a number (--debug shows where; please report it)\n"
    )


@pytest.mark.parametrize("running", [True, False])
def test_missing_addresses_are_named_with_the_embedded_parts_and_those_that_run(
    running: bool, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parts.PartsStatus(addresses=ADDRESSES, alive={"kafka": True}) if running else None
    monkeypatch.setattr(parts, "status", lambda _: found)
    cure = (
        f"or add --embedded, which takes the parts of `local up`: they run ({tmp_path})"
        if running
        else "or add --embedded, which starts Kafka and Postgres on this machine"
    )
    for name in ("BOOTSTRAP_SERVERS", "CHECKPOINT", "REGISTRY"):
        monkeypatch.delenv(f"STATESTORE_{name}", raising=False)
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    assert main(["run", "--local-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "statestore run: --bootstrap-servers and --checkpoint are missing: give them, or set STATESTORE_BOOTSTRAP_SERVERS "
        f"and STATESTORE_CHECKPOINT; {cure}\n"
    )

    def unreachable(_: object) -> None:
        raise RegistryUnreachable("no connection to the registry")

    monkeypatch.setattr(look, "requested_document", lambda *_: unreachable(_))
    assert main(["get", "p", "k", "--local-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"statestore get: no connection to the registry; {cure}\n"
    assert main(["get", "p", "k", "--registry", "postgresql://h/d"]) == 1
    assert capsys.readouterr().err == "statestore get: no connection to the registry\n"


def complete(script: str, *words: str) -> set[str]:
    """The words that bash offers after these."""
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}; _statestore; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_verbs_flags_and_actions(capsys: Any) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert complete(script, "statestore", "rem") == {"remove"}
    assert complete(script, "statestore", "re") >= {"republish", "resume", "retire", "rejects", "rebuild-registry"}
    assert complete(script, "statestore", "dead") == {"dead-letters"}
    assert complete(script, "statestore", "try", "--fr") == {"--from"}
    assert complete(script, "statestore", "get", "p", "--bootstrap") == {"--bootstrap-servers"}
    assert complete(script, "statestore", "dead-letters", "re") == {"replay"}
    assert complete(script, "statestore", "dead-letters", "list", "--ea") == {"--each"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["statsu"], "there is no 'statsu'; did you mean 'status'?"),
        (["publish"], "there is no 'publish'; did you mean 'republish'?"),
        (["prices"], "there is no 'prices'; the nearest are "),
        (["local", "upp"], "there is no 'upp'; did you mean 'up'?"),
        (["status", "--jsno"], "statestore status: there is no flag --jsno; did you mean --json?"),
        (["run", "--tabel=x"], "statestore run: there is no flag --tabel; did you mean --table?"),
        (["status", "extra"], "unrecognized arguments: extra"),
        (["zzzzzz"], "there is no 'zzzzzz'; `statestore --help` lists all"),
    ],
)
def test_a_wrong_word_gets_the_nearest_right_one(words: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


NUMBERS = [
    ("try", "--batch"),
    ("run", "--batch"),
    ("verify", "--sample"),
    ("statistics", "--sample"),
    ("history", "--limit"),
    ("undo", "VERSION"),
    ("add-slots", "N"),
    ("dead-letters list", "--partition"),
    ("try", "--lag"),
]


@pytest.mark.parametrize(("verb", "flag"), NUMBERS)
def test_a_number_that_no_machine_counts_to_is_wrong_usage(verb: str, flag: str, capsys: Any) -> None:
    needed = {"try": ["--definitions", ".", "--from", "-"]}.get(verb, [])
    given = [flag, "9" * 23] if flag.startswith("-") else ["9" * 23]
    with pytest.raises(SystemExit) as ended:
        main([*verb.split(), *needed, *given])
    assert ended.value.code == 2
    assert "must be" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["get", "rows", "keys", "tour"])
def test_the_help_of_a_short_verb_fits_a_screen(verb: str, capsys: Any) -> None:
    assert len(help_of(capsys, verb, "--help").splitlines()) <= 35


def test_produce_without_parts_names_the_command_that_starts_them(tmp_path: Path, capsys: Any) -> None:
    assert main(["local", "produce", "topics.jsonl", "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "Kafka does not run; start it with `statestore local up`\n"


@pytest.mark.parametrize(
    "words", [["plan", "--offline", "--no-price"], ["test"], ["check"]], ids=lambda words: words[0]
)
def test_a_verb_takes_its_definitions_as_an_argument_or_by_name(words: list[str], capsys: Any) -> None:
    example = "examples/person"
    for given in ([*words, example], [words[0], example, *words[1:]], [*words, "--definitions", example]):
        assert main(given) == 0
    for given, mistake in (
        (words, "one of the arguments DIR --definitions is required"),
        ([*words, example, "--definitions", example], "not allowed with argument"),
    ):
        with pytest.raises(SystemExit) as error:
            main(given)
        assert error.value.code == 2
        assert mistake in capsys.readouterr().err

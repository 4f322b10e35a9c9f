"""Mutated inputs of operators: settings, and commands."""

import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random

from processor.cli.main import main
from processor.environment.settings.settings import read_settings
from processor.values.recorded_topics import to_line
from tests.fuzz.examples import NAMES, definitions_of, records_of, texts_of
from tests.fuzz.finding import Finding, readable_errors
from tests.fuzz.mutations import WORDS, mutate_bytes, mutate_text


def settings(random: Random) -> None:
    """The settings file, and the environment."""
    text = 'job = "a"\nslots = 20\nwait_seconds = 5.0\nmax_reject_share = 0.5\nregistry_schema = "s"\n'
    text += '[kafka]\n"security.protocol" = "SSL"\n'
    environment = {"STATESTORE_WAIT_SECONDS": random.choice(WORDS)} if random.random() < 0.3 else {}
    words = [
        *WORDS,
        "nan",
        "inf",
        "-inf",
        "1979-05-27",
        "[[kafka]]",
        "[kafka.x]",
        '"""',
        "1e999",
        "lanes",
        "threads = 2.5",
    ]
    changed = mutate_text(text, random, words)
    data = (
        changed.encode(errors="replace")
        if random.random() < 0.9
        else mutate_bytes(changed.encode(errors="replace"), random)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "settings.toml"
        file.write_bytes(data)
        with readable_errors(data):
            read = read_settings({}, environment, str(file))
            if not (0 <= read.wait_seconds < 1e300 and 0 <= read.max_reject_share <= 1):
                raise Finding(f"{read} of {data!r}")


def command_lines(random: Random) -> None:
    """Commands over a directory of mutated files, and with mutated options."""
    name = random.choice(NAMES)
    with tempfile.TemporaryDirectory() as folder:
        for file, text in texts_of(name).items():
            data = mutate_bytes(text.encode(), random) if random.random() < 0.2 else text.encode()
            (Path(folder) / file).write_bytes(data)
        topics = Path(folder) / "topics.jsonl"
        topics.write_text("\n".join(map(to_line, records_of(name)[:5])))
        product = random.choice(list(definitions_of(name).products))
        command = random.choice((
            ["try", "--definitions", folder, "--from", str(topics), "--to", f"{folder}/out.jsonl"],
            ["explain", product, "--definitions", folder], ["explain", product, "--sql", "--definitions", folder],
            ["explain", product, "--mermaid", "--definitions", folder],
            ["schema", product, "--definitions", folder], ["plan", "--offline", "--no-price", "--definitions", folder],
            ["plan", "--diff", "--offline", "--no-price", "--definitions", folder, "--from", str(topics)],
            ["test", folder],
        ))  # fmt: skip
        if random.random() < 0.5:
            command[random.randrange(1, len(command))] = random.choice(
                [
                    "",
                    folder,
                    f"{folder}/no/out",
                    "/dev/full",
                    "\udcff",
                    product,
                    str(topics),
                    "--json",
                    "--lag=nan",
                    "--batch=9e9",
                    "é" * 300,
                ]
            )
        endless = "/dev/full" in command and command[command.index("/dev/full") - 1] == "--from"
        if "-" not in command and not endless:
            _run(command)


def _run(command: list[str]) -> None:
    out, errors = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            status = main(command)
        except SystemExit as ended:
            status = 2 if ended.code is None else int(ended.code)  # wrong usage
        except BaseException as error:
            raise Finding(f"{type(error).__name__}: {error}, of {command}") from error
    said = errors.getvalue() + (
        out.getvalue() if "--json" in command else ""
    )  # `plan --json` has its errors in the object
    if status not in (0, 1, 2) or (status == 1 and command[0] != "test" and not said.strip()):
        raise Finding(f"status {status} of {command}: {errors.getvalue()}")

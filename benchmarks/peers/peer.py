"""Each peer: how it is installed, started and read, and what survives a crash of its run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.documents import Messages, read_flink, read_pathway, read_statestore
from benchmarks.steps import BATCH, EXAMPLE

PROGRAMS = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one run, in `directory`."""

    directory: Path

    @property
    def history(self) -> Path:
        """The events as recorded topics."""
        return self.directory / "history.jsonl"

    @property
    def changes(self) -> Path:
        """The same events as Debezium envelopes, with the row before."""
        return self.directory / "changes.jsonl"

    @property
    def documents(self) -> Path:
        """The messages of the peer."""
        return self.directory / "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A system and its settings. `group`: the name that a person gives; `requirement`: for pip, None for statestore itself;
    `arguments`: of its Python; `prints`: the messages are its standard output; `ordered`: its lists have the product's order;
    `durable`: what survives a crash of the run."""

    group: str
    title: str
    requirement: str | None
    arguments: Callable[[Files], list[str]]
    read: Callable[[Path], Messages]
    ordered: bool = True
    prints: bool = False
    durable: str

    @property
    def package(self) -> str:
        """The name of the package that has the peer's version."""
        return (self.requirement or "statestore").partition(">")[0]


def _try(files: Files) -> list[str]:
    command = "import sys; from processor.cli.main import main; sys.exit(main())"
    paths = ["--definitions", str(EXAMPLE), "--from", str(files.history), "--to", str(files.documents)]
    return ["-c", command, "try", *paths, "--batch", str(BATCH)]


def _pathway(files: Files) -> list[str]:
    return [str(PROGRAMS / "pathway_program.py"), str(files.history), str(files.documents), str(BATCH)]


def _flink(files: Files) -> list[str]:
    return [str(PROGRAMS / "flink_program.py"), str(files.changes)]


def _flink_mini_batch(files: Files) -> list[str]:
    return [*_flink(files), "--mini-batch", str(BATCH)]


def _flink_durable(files: Files) -> list[str]:
    return [*_flink_mini_batch(files), "--checkpoints", str(files.directory / "checkpoints")]


def _flink_peer(title: str, arguments: Callable[[Files], list[str]], durable: str) -> Peer:
    return Peer(
        group="flink",
        title=title,
        requirement="apache-flink>=2.3,<2.4",
        arguments=arguments,
        read=read_flink,
        ordered=False,
        prints=True,
        durable=durable,
    )


PEERS = (
    Peer(
        group="try",
        title="`statestore try`",
        requirement=None,
        arguments=_try,
        read=read_statestore,
        durable="nothing",
    ),
    Peer(
        group="pathway",
        title="Pathway",
        requirement="pathway>=0.33,<0.34",
        arguments=_pathway,
        read=read_pathway,
        durable="nothing",
    ),
    _flink_peer("Flink SQL", _flink, "nothing"),
    _flink_peer("Flink SQL, mini-batch", _flink_mini_batch, "nothing"),
    _flink_peer("Flink SQL, mini-batch, checkpoints", _flink_durable, "state and place in the source"),
)
JOB = "job"
"""The group of statestore's own job, which needs Kafka, Postgres and DynamoDB Local."""
GROUPS = tuple(dict.fromkeys([*(peer.group for peer in PEERS), JOB]))

"""The command `land`, with a registry: what a user gives, and what the command prints."""

import json
import re
from pathlib import Path

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load
from registry.repository import Registry
from tests.integration.landing.conftest import PRODUCT, SearchScene

pytestmark = [pytest.mark.rest, pytest.mark.filterwarnings("ignore::ResourceWarning")]
ENTITIES = "person: {key: [id], columns: {id: int, n: int, name: string, at: timestamp, more: json}}"


@pytest.fixture
def flags(search: SearchScene, registry: Registry, postgres_url: str, schema: str, tmp_path: Path) -> list[str]:
    """The settings of commands, with a registry whose product publishes to the scene's topic."""
    product = f"{{product: {PRODUCT}, root: person, topic: {search.topic.name}}}"
    registry.apply(requirements_of(load({"entities.yaml": ENTITIES, "p.yaml": product})), who="a test", why="a test")
    (tmp_path / "registry").write_text(str(postgres_url))
    addresses = ["--bootstrap-servers", search.broker, "--registry", f"file:{tmp_path / 'registry'}"]
    search.version = 1
    return [*addresses, "--registry-schema", schema]


def test_a_user_lands_compares_and_looks(
    search: SearchScene, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"id": 1, "n": 5, "name": "Ada", "at": "1815-12-10T00:00:00.123456Z", "more": [1, {"a": None}]}
    search.publish(1, document)
    search.publish(2, {"id": 2, "n": None, "name": None, "at": None, "more": "text"})
    land = ["land", PRODUCT, "--to", search.url, *flags]
    assert main([*land, "--once"]) == 0
    said = capsys.readouterr().err
    assert f"index {PRODUCT}-v1 at " in said
    assert "2 documents landed, 0 deleted" in said
    (found,) = search.find({"range": {"at": {"lt": "1900-01-01"}}})
    assert {name: value for name, value in found.items() if name != "statestore"} == document
    assert main([*land, "--verify"]) == 0
    assert capsys.readouterr().out.startswith("equal 2, on the way 0,")
    assert main(["status", *flags]) == 0
    line = rf"landing of {PRODUCT} in index {PRODUCT}-v1 at \S+ of .+: does not run, 0 messages behind, the last landed at 20"
    assert re.search(line, capsys.readouterr().out)
    main(["status", "--json", *flags])
    (landing,) = (one for one in json.loads(capsys.readouterr().out)["landings"] if one["topic"] == search.topic.name)
    assert (landing["behind"], landing["processes"]) == (0, 0)


def test_a_refused_document_is_an_exit_status(
    search: SearchScene, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    search.publish(1, {"id": 1, "n": 2**70, "name": "Ada", "at": None, "more": None})
    land = ["land", PRODUCT, "--to", search.url, *flags]
    assert main([*land, "--once"]) == 1
    assert "refuses 1 documents, and keeps their earlier ones: --verify names them" in capsys.readouterr().err
    assert main([*land, "--verify"]) == 1
    assert 'refused: {"id":1}, sequence 1: mapper_parsing_exception' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "https://h:1", "--index", "n"], "--index is for Postgres"),
        (["--to", "https://h:1", "--into", "People"], "--into 'People' cannot name an index: give small letters"),
        (["--to", "https://u:secret@h:x"], "--to is no address of OpenSearch"),
        (["--to", "mysql://u:secret@h"], "--to is no address of Postgres"),
        (["--to", "https://u:secret@h:1"], "--to: the address holds a password"),
        (["--to", "https://h:1", "--remove", "x"], "the registry knows no such landing of person"),
        ([], "--to is missing"),
    ],
)
def test_a_wrong_flag(flags: list[str], words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["land", PRODUCT, *words, *flags]) != 0
    said = capsys.readouterr().err
    assert says in said
    assert "secret" not in said

"""Tests what README alone has, its length and its make targets; and the event that the page about the architecture follows.

`test_docs` runs its blocks and follows its links, as it does for every page; `test_figures` has its figures.
"""

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.tools.demo.tour import SAMPLE
from processor.values.recorded_topics import read_records
from registry.model import SlotPath
from tests.acceptance.pages import ROOT, blocks_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
EVENT = ROOT / "docs" / "architecture.md"
TARGETS = ("demo", "test", "check", "bench", "soak")


def test_the_page_has_at_most_a_hundred_and_thirty_lines() -> None:
    assert len(README.splitlines()) <= 130


def test_the_event_and_the_query_of_the_page_are_those_of_the_tour() -> None:
    lines = (SAMPLE / "topics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (change,) = blocks_of(EVENT, "json")
    assert change.text == lines[4]
    plan = plan_alone(load(read_directory(SAMPLE)), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    trial.batch(read_records(str(SAMPLE / "topics.jsonl")))
    read = next(node.down for node in plan.products["user_profile"].nodes if node.join.name == "starred_repos")
    assert isinstance(read, SlotPath)
    query = plan.query("star", read, "octocat")
    assert query.entity is None
    assert f"{query.slot} = '{query.value}'\n" in [block.text for block in blocks_of(EVENT, "text")]
    assert {item["PK"] for item in trial.store.query(query)} == {"TABLE#user", "TABLE#star", "TABLE#pull_request"}


def test_the_page_names_every_target_that_a_reader_needs() -> None:
    assert [target for target in TARGETS if f"| `make {target}`" not in README] == []

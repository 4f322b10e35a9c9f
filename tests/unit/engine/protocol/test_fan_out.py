"""A change with many documents above it: the job publishes them page by page, loses none, and sends none twice."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.pending import PAGES_PER_ROUND, FanOut, FanOuts, FoundRoots, ResumedFanOut
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.values.record import Record
from statestore.keys import Key
from statestore.store import Delete

USERS = 45
EXAMPLE = read_directory(Path(__file__).parents[4] / "examples" / "github")
PLAN = plan_alone(load(EXAMPLE), Settings().slots)
STRONG = plan_alone(
    load(
        {name: text.replace("repo: {one: repo,", "repo: {one: repo, strong: true,") for name, text in EXAMPLE.items()}
    ),
    Settings().slots,
)
REPO = {"owner": "netflix", "name": "ice", "description": "first"}


class Source:
    """Records at rising offsets of one partition a topic."""

    def __init__(self) -> None:
        self._offsets: Counter[str] = Counter()

    def record(self, topic: str, key: dict[str, Any], row: dict[str, Any] | None) -> Record:
        self._offsets[topic] += 1
        value = None if row is None else json.dumps(row).encode()
        return Record(topic=topic, partition=0, offset=self._offsets[topic], key=json.dumps(key).encode(), value=value)

    def repo(self, description: str) -> Record:
        return self.record("repo", {"owner": "netflix", "name": "ice"}, {**REPO, "description": description})

    def stars(self) -> Iterable[Record]:
        for n in range(USERS):
            user = {"id": n, "email": f"u{n}@example.org", "username": f"u{n}"}
            star = {"username": f"u{n}", "repo_name": "ice", "repo_owner": "netflix"}
            yield self.record("user", {"email": user["email"]}, user)
            yield self.record("star", star, star)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture(params=[PLAN, STRONG], ids=["by an index", "by edges"])
def trial(source: Source, request: pytest.FixtureRequest) -> Trial:
    trial = Trial(plan=request.param, settings=replace(Settings(), fan_out_page=2))
    trial.batch([source.repo("first"), *source.stars()])
    trial.finish()
    trial.published.messages.clear()
    return trial


def descriptions(trial: Trial) -> list[str]:
    """The description of the repository in each message, in the order of publication."""
    return [json.loads(m.value or b"")["starred_repos"][0]["description"] for m in trial.published.messages]


def test_a_batch_publishes_the_first_page_and_each_later_round_some_pages(trial: Trial, source: Source) -> None:
    trial.batch([source.repo("second")])
    assert len(descriptions(trial)) == 2
    trial.background_work()
    assert len(descriptions(trial)) == 2 + 2
    trial.finish()
    assert descriptions(trial) == ["second"] * USERS
    assert len({m.key for m in trial.published.messages}) == USERS


def test_other_changes_are_published_meanwhile(trial: Trial, source: Source) -> None:
    trial.batch([source.repo("second")])
    trial.batch([source.record("user", {"email": "new@example.org"}, {"id": 99, "email": "new@example.org"})])
    assert trial.published.messages[-1].key == b'{"email":"new@example.org"}'


def test_a_change_meanwhile_reaches_every_document_once(trial: Trial, source: Source) -> None:
    trial.batch([source.repo("second")])
    trial.background_work()
    trial.batch([source.repo("third")])
    trial.finish()
    last = {m.key: json.loads(m.value or b"") for m in trial.published.messages}
    assert [d["starred_repos"][0]["description"] for d in last.values()] == ["third"] * USERS
    shown = Counter((m.key, m.value) for m in trial.published.messages)
    assert set(shown.values()) == {1}


def test_a_start_reloads_the_fan_outs_of_earlier_runs() -> None:
    products = PLAN.products
    before = FanOuts(products=products, run=1)
    (repo,) = (n for n, node in enumerate(products["user_profile"].nodes) if node.join.entity == "repo")
    written = before.add(FanOut("user_profile", repo, "netflix#ice", Key("TABLE#star", "u1#ice#netflix")))
    again = before.add(FanOut("user_profile", repo, "netflix#ice", Key("TABLE#star", "u0")))
    assert again.set["again"]

    after = FanOuts(products=products, run=2)
    item = {"PK": written.key.pk, "SK": written.key.sk, **written.set}
    assert after.reload([item]) == []
    assert after.next() == [[FanOut("user_profile", repo, "netflix#ice", Key("TABLE#star", "u1#ice#netflix"))]]
    assert after.reload([{**item, **again.set}]) == []
    assert after.next() == before.next()
    (gone,) = after.reload([{**item, "path": ["no", "more"]}])
    assert gone.key == written.key


def test_two_changes_publish_each_document_once_after_the_second(trial: Trial, source: Source) -> None:
    """The second change finds the first one in the middle, so its other pass ends there."""
    trial.batch([source.repo("second")])
    for _ in range(4):
        trial.background_work()
    trial.batch([source.repo("third")])
    before = trial.tally.copy()
    trial.finish()
    assert Counter(descriptions(trial)) == {"second": 10, "third": USERS}
    assert (trial.tally - before)["unchanged"] == 0


def fan_outs_at(*rows: str) -> tuple[FanOuts, FanOut]:
    """The fan-outs after changes of one key that publish the rows up to these."""
    fan_outs = FanOuts(products=PLAN.products, run=1)
    (repo,) = (n for n, node in enumerate(PLAN.products["user_profile"].nodes) if node.join.entity == "repo")
    for row in rows:
        fan_outs.add(FanOut("user_profile", repo, "netflix#ice", Key("TABLE#star", row)))
    return fan_outs, next(iter(fan_outs.waiting.values()))


def test_a_change_before_the_cursor_asks_for_a_pass_up_to_the_cursor() -> None:
    fan_outs, waiting = fan_outs_at("m", "c")
    assert (waiting.after, waiting.next_after, waiting.next_end) == tuple(Key("TABLE#star", row) for row in "mcm")
    nothing = FoundRoots(frozenset(), ())
    fan_outs.advance(ResumedFanOut(waiting, None, nothing))
    (waiting,) = fan_outs.waiting.values()
    assert (waiting.after, waiting.end, waiting.again) == (Key("TABLE#star", "c"), Key("TABLE#star", "m"), False)
    fan_outs.advance(ResumedFanOut(waiting, Key("TABLE#star", "h"), nothing))
    assert isinstance(fan_outs.advance(ResumedFanOut(waiting, Key("TABLE#star", "m"), nothing)), Delete)
    assert not fan_outs.waiting


def test_a_change_during_the_other_pass_lets_it_go_to_the_last_row() -> None:
    fan_outs, waiting = fan_outs_at("m", "c")
    fan_outs.advance(ResumedFanOut(waiting, None, FoundRoots(frozenset(), ())))
    assert fan_outs.add(waiting._replace(after=Key("TABLE#star", "b"), again=False)).set["again"]
    (waiting,) = fan_outs.waiting.values()
    assert waiting.end is None
    assert (waiting.after, waiting.next_after, waiting.next_end) == tuple(Key("TABLE#star", row) for row in "cbc")


def test_a_change_at_or_behind_the_cursor_needs_no_other_pass() -> None:
    for last in "mz":
        _, waiting = fan_outs_at("m", last)
        assert (waiting.after, waiting.again) == (Key("TABLE#star", last), False)


def test_products_that_ask_for_one_page_are_in_one_task() -> None:
    plan = plan_alone(
        load(
            {
                **EXAMPLE,
                "other.yaml": EXAMPLE["user_profile.yaml"].replace(
                    "product: user_profile", "product: other\ntopic: other"
                ),
            }
        ),
        Settings().slots,
    )
    source = Source()
    trial = Trial(plan=plan, settings=replace(Settings(), fan_out_page=2))
    trial.batch([source.repo("first"), *source.stars()])
    trial.finish()
    trial.batch([source.repo("second")])
    fan_outs = trial.driver.progress.fan_outs
    assert [[one.product for one in page] for page in fan_outs.next()] == [sorted(plan.products)]
    before = trial.tally.copy()
    trial.finish()
    tally = trial.tally - before
    assert tally["published"] == 2 * (USERS - 2)
    assert tally["request Query"] == 2 * (USERS - 2) + -(-(USERS - 2) // 2)  # two for each user, and the pages


def test_a_round_continues_a_few_fan_outs_of_many() -> None:
    fan_outs = FanOuts(products=PLAN.products, run=1)
    for n in range(10):
        fan_outs.add(FanOut("user_profile", 0, f"key{n}", Key("TABLE#user", "a")))
    assert len(fan_outs.next()) == PAGES_PER_ROUND

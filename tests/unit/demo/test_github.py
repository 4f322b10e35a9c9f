"""The demo's history: every beat of the story is in it, and its tables are what its records say."""

import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from processor.demo.github import History, history

Row = dict[str, Any]
Story = list[Any]
"""Steps (conftest.py): at, table, key, old, new, transaction."""

TABLES = {"user", "repo", "pull_request", "star", "payment_info"}


def changed(step: Any) -> set[str]:
    """The columns that an update changed."""
    return {column for column in step.new if step.new[column] != step.old[column]}


def updates(story: Story, table: str) -> Story:
    return [step for step in story if step.table == table and step.old is not None and step.new is not None]


def inserts(story: Story, table: str) -> Story:
    return [step for step in story if step.table == table and step.old is None and step.new is not None]


def deletes(story: Story, table: str) -> Story:
    return [step for step in story if step.table == table and step.old is not None and step.new is None]


def test_the_tables_are_what_the_records_fold_to(told: History, story: Story) -> None:
    folded: dict[str, dict[tuple[Any, ...], Row]] = {table: {} for table in TABLES}
    for step in story:
        if step.new is None:
            folded[step.table].pop(step.key, None)
        else:
            folded[step.table][step.key] = step.new
    assert told.tables == folded


def test_the_same_events_make_the_same_history(events: list[Row], told: History) -> None:
    assert history(events) == told


def test_every_record_has_the_recorded_form_and_is_json(told: History) -> None:
    for record in told.records:
        assert list(record) == ["topic", "partition", "key", "value", "timestamp"]
        assert json.loads(json.dumps(record)) == record
    times = [record["timestamp"] for record in told.records]
    assert times == sorted(times)


def test_a_key_stays_in_one_of_two_partitions_and_both_are_used(told: History) -> None:
    partitions = defaultdict(set)
    topics = defaultdict(set)
    for record in told.records:
        partitions[record["topic"], json.dumps(record["key"])].add(record["partition"])
        topics[record["topic"]].add(record["partition"])
    assert {len(used) for used in partitions.values()} == {1}
    assert all(topics[table] == {0, 1} for table in TABLES)


def test_rows_delete_markers_and_ledger_stay_below_two_thousand_items(story: Story) -> None:
    rows = {(step.table, step.key) for step in story}
    documents = {step.key for step in story if step.table == "user"}
    assert 1_300 < len(rows) + len(documents) < 1_600


def test_the_history_is_small_enough_for_the_demo(told: History) -> None:
    assert 1_700 < len(told.records) < 2_100


def test_envelopes_are_those_of_debezium(told: History) -> None:
    values = [record["value"] for record in told.records if record["topic"] == "repo" and record["value"]]
    assert {value["op"] for value in values} == {"r", "c", "u", "d"}
    for value in values[:-1]:
        key_only = value["before"] and {column for column, cell in value["before"].items() if cell is not None}
        assert key_only == ({"owner", "name"} if value["op"] == "d" else None)
        assert (value["after"] is None) == (value["op"] == "d")


def test_a_tombstone_follows_every_deleting_envelope(told: History) -> None:
    by_key = defaultdict(list)
    for record in told.records:
        if record["topic"] in {"user", "repo", "pull_request"}:
            by_key[record["topic"], json.dumps(record["key"])].append(record["value"])
    for values in by_key.values():
        ends = [isinstance(value, dict) and value["op"] == "d" for value in values]
        assert ends[:-1] == [value is None for value in values[1:]]


def test_payments_are_flattened_and_stars_plain(told: History) -> None:
    payments = [record["value"] for record in told.records if record["topic"] == "payment_info"]
    stars = [record["value"] for record in told.records if record["topic"] == "star"]
    assert Counter(value["__deleted"] for value in payments)["true"] == 8
    assert None in stars
    assert all("op" not in value for value in stars if value)


def test_transactions_and_heartbeats_are_told_on_topics_of_no_table(told: History) -> None:
    others = Counter(record["topic"] for record in told.records if record["topic"] not in TABLES)
    assert set(others) == {"github.transaction", "__debezium-heartbeat.github"}
    bounds = [record["value"] for record in told.records if record["topic"] == "github.transaction"]
    assert [bound["status"] for bound in bounds] == ["BEGIN", "END"] * (len(bounds) // 2)
    assert all(bound["event_count"] >= 1 for bound in bounds if bound["status"] == "END")


def test_dead_letters_are_of_several_kinds_and_few(dead_letters: list[Row], told: History) -> None:
    assert [record["topic"] for record in dead_letters] == [
        *("user", "star", "payment_info", "repo", "user", "payment_info", "pull_request")
    ]
    rows = {key for table in told.tables.values() for key in table}
    assert ("octocat@users.noreply.example",) not in rows


def test_repositories_are_updated_in_ways_that_matter_and_in_ways_that_do_not(story: Story) -> None:
    kinds = [changed(step) for step in updates(story, "repo")]
    assert sum("description" in kind for kind in kinds) > 15
    assert sum(kind == {"star_count"} for kind in kinds) > 50


def test_pull_requests_are_opened_merged_closed_reopened_and_drafted(story: Story) -> None:
    moves = Counter((step.old["status"], step.new["status"]) for step in updates(story, "pull_request"))
    for move in [("open", "merged"), ("open", "closed"), ("draft", "open"), ("draft", "merged"), ("closed", "open")]:
        assert moves[move] > 1, move
    first = Counter(step.new["status"] for step in inserts(story, "pull_request"))
    assert min(first["merged"] + first["closed"], first["draft"], first["open"]) > 5


def test_pull_requests_change_their_author_and_lose_it(story: Story) -> None:
    lone = [step for step in updates(story, "pull_request") if "author" in changed(step) and not step.transaction]
    assert sum(step.new["author"] is not None for step in lone) >= 3
    assert sum(step.new["author"] is None for step in lone) >= 2


@pytest.mark.parametrize(("table", "referred"), [("user", "username"), ("repo", "repo_name")])
def test_rows_arrive_after_stars_that_refer_to_them(story: Story, table: str, referred: str) -> None:
    starred: set[str] = set()
    late = 0
    for step in story:
        if step.table == "star":
            starred.add(step.key[0 if referred == "username" else 1])
        if step.table == table and step.old is None and step.new is not None:
            late += step.new["username" if table == "user" else "name"] in starred
    assert late >= 5


def test_stars_are_taken_back_and_some_given_again(story: Story) -> None:
    gone = {step.key for step in deletes(story, "star") if not _moved(story, step)}
    assert len(gone) > 20
    again = [step for step in inserts(story, "star") if step.key in gone]
    assert len(again) - len({step.key for step in again}) >= 5


def _moved(story: Story, star: Any) -> bool:
    """Whether the star was deleted because its user was renamed: the next step puts it back under the new name."""
    following = next((step for step in story if step.at > star.at), None)
    return following is not None and following.table == "star" and following.key[1:] == star.key[1:]


def test_users_are_renamed_and_some_of_their_rows_follow_and_some_stay_behind(story: Story) -> None:
    renamed = [step for step in updates(story, "user") if changed(step) == {"username"}]
    assert len(renamed) > 20
    assert sum(_moved(story, step) for step in deletes(story, "star")) > 10
    assert any(step.transaction and changed(step) == {"author"} for step in updates(story, "pull_request"))
    last = {step.key: step.new for step in story if step.table == "star"}
    kept = {row["username"] for row in last.values() if row}
    assert sum(step.old["username"] in kept for step in renamed) >= 5


def test_a_name_that_was_given_up_is_taken_by_somebody_else(story: Story) -> None:
    given_up: set[str] = set()
    taken = 0
    for step in updates(story, "user"):
        if "username" in changed(step):
            taken += step.new["username"] in given_up
            given_up.add(step.old["username"])
    assert taken >= 2


def test_no_two_users_have_one_name(told: History) -> None:
    names = [row["username"] for row in told.tables["user"].values()]
    assert len(names) == len(set(names))


def test_people_who_were_renamed_go_on_under_the_new_name(story: Story) -> None:
    names = {step.new["username"]: step.at for step in updates(story, "user") if "username" in changed(step)}
    moved = {step.at + 1 for step in deletes(story, "star") if _moved(story, step)}
    given = [step for step in inserts(story, "star") if step.at not in moved]
    assert sum(step.key[0] in names and step.at > names[step.key[0]] for step in given) > 10


def test_users_are_deleted_with_stars_of_theirs_left_and_some_are_created_again(story: Story) -> None:
    gone = {step.key: step.old["username"] for step in deletes(story, "user")}
    back = {step.key for step in inserts(story, "user") if step.key in gone}
    created = Counter(step.key for step in inserts(story, "user"))
    assert len(gone) >= 8
    assert 1 <= sum(created[key] == 2 for key in back) < len(gone)
    assert set(gone.values()) & {step.key[0] for step in story if step.table == "star"}


def test_payments_are_verified_doubted_moved_orphaned_and_deleted(story: Story) -> None:
    moves = updates(story, "payment_info")
    flips = Counter(step.new["verified"] for step in moves if changed(step) == {"verified"})
    owners = [step.new["user_id"] for step in moves if changed(step) == {"user_id"}]
    assert flips[True] > 20
    assert flips[False] > 5
    assert len([owner for owner in owners if owner is not None]) >= 5
    assert None in owners
    assert len(deletes(story, "payment_info")) >= 5


def test_some_users_have_no_payment_and_some_have_two(told: History) -> None:
    owners = Counter(row["user_id"] for row in told.tables["payment_info"].values() if row["user_id"])
    users = {row["id"] for row in told.tables["user"].values()}
    assert users - owners.keys()
    assert 2 in owners.values()


def test_identical_updates_are_repeated(story: Story) -> None:
    same = Counter(step.table for step in story if step.old is not None and step.old == step.new)
    assert same["user"] > 5
    assert same["repo"] > 5


def test_most_starred_repositories_have_no_row_but_many_have(told: History) -> None:
    stars = told.tables["star"]
    with_row = sum((key[2], key[1]) in told.tables["repo"] for key in stars)
    assert len(stars) / 4 < with_row < len(stars) / 2


def test_the_beats_are_spread_over_the_whole_history(told: History, story: Story) -> None:
    quarter = len(told.records) / 4
    for table in TABLES:
        assert {int(step.at / quarter) for step in updates(story, table) + deletes(story, table)} == {0, 1, 2, 3}, table

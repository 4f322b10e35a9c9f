"""The demo's history has every kind of scripted change, and its tables agree with its records."""

import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from processor.tools.demo.github import History, build_history

Row = dict[str, Any]
Changes = list[Any]
"""A list of RowChange (conftest.py): line_number, table, key, old, new, transaction."""

TABLES = {"user", "repo", "pull_request", "star", "payment_info"}


def changed_columns(change: Any) -> set[str]:
    """The columns that an update changed."""
    return {column for column in change.new if change.new[column] != change.old[column]}


def updates(changes: Changes, table: str) -> Changes:
    return [change for change in changes if change.table == table and change.old is not None and change.new is not None]


def inserts(changes: Changes, table: str) -> Changes:
    return [change for change in changes if change.table == table and change.old is None and change.new is not None]


def deletes(changes: Changes, table: str) -> Changes:
    return [change for change in changes if change.table == table and change.old is not None and change.new is None]


def test_the_records_applied_in_order_give_the_tables(demo_history: History, changes: Changes) -> None:
    applied: dict[str, dict[tuple[Any, ...], Row]] = {table: {} for table in TABLES}
    for change in changes:
        if change.new is None:
            applied[change.table].pop(change.key, None)
        else:
            applied[change.table][change.key] = change.new
    assert demo_history.tables == applied


def test_the_same_events_make_the_same_history(events: list[Row], demo_history: History) -> None:
    assert build_history(events) == demo_history


def test_every_record_has_the_recorded_form_and_is_json(demo_history: History) -> None:
    for record in demo_history.records:
        assert list(record) == ["topic", "partition", "key", "value", "timestamp"]
        assert json.loads(json.dumps(record)) == record
    times = [record["timestamp"] for record in demo_history.records]
    assert times == sorted(times)


def test_a_key_stays_in_one_of_two_partitions_and_both_are_used(demo_history: History) -> None:
    partitions = defaultdict(set)
    topics = defaultdict(set)
    for record in demo_history.records:
        partitions[record["topic"], json.dumps(record["key"])].add(record["partition"])
        topics[record["topic"]].add(record["partition"])
    assert {len(used) for used in partitions.values()} == {1}
    assert all(topics[table] == {0, 1} for table in TABLES)


def test_rows_delete_markers_and_ledger_stay_below_two_thousand_items(changes: Changes) -> None:
    rows = {(change.table, change.key) for change in changes}
    documents = {change.key for change in changes if change.table == "user"}
    assert 1_300 < len(rows) + len(documents) < 1_600


def test_the_history_is_small_enough_for_the_demo(demo_history: History) -> None:
    assert 1_700 < len(demo_history.records) < 2_100


def test_envelopes_are_those_of_debezium(demo_history: History) -> None:
    values = [record["value"] for record in demo_history.records if record["topic"] == "repo" and record["value"]]
    assert {value["op"] for value in values} == {"r", "c", "u", "d"}
    for value in values[:-1]:
        key_only = value["before"] and {column for column, cell in value["before"].items() if cell is not None}
        assert key_only == ({"owner", "name"} if value["op"] == "d" else None)
        assert (value["after"] is None) == (value["op"] == "d")


def test_a_tombstone_follows_every_deleting_envelope(demo_history: History) -> None:
    by_key = defaultdict(list)
    for record in demo_history.records:
        if record["topic"] in {"user", "repo", "pull_request"}:
            by_key[record["topic"], json.dumps(record["key"])].append(record["value"])
    for values in by_key.values():
        ends = [isinstance(value, dict) and value["op"] == "d" for value in values]
        assert ends[:-1] == [value is None for value in values[1:]]


def test_payments_are_flattened_and_stars_plain(demo_history: History) -> None:
    payments = [record["value"] for record in demo_history.records if record["topic"] == "payment_info"]
    stars = [record["value"] for record in demo_history.records if record["topic"] == "star"]
    assert Counter(value["__deleted"] for value in payments)["true"] == 8
    assert None in stars
    assert all("op" not in value for value in stars if value)


def test_transactions_and_heartbeats_have_topics_of_their_own(demo_history: History) -> None:
    others = Counter(record["topic"] for record in demo_history.records if record["topic"] not in TABLES)
    assert set(others) == {"github.transaction", "__debezium-heartbeat.github"}
    bounds = [record["value"] for record in demo_history.records if record["topic"] == "github.transaction"]
    assert [bound["status"] for bound in bounds] == ["BEGIN", "END"] * (len(bounds) // 2)
    assert all(bound["event_count"] >= 1 for bound in bounds if bound["status"] == "END")


def test_the_seven_broken_records_make_no_user_row(broken_records: list[Row], demo_history: History) -> None:
    assert [record["topic"] for record in broken_records] == [
        *("user", "star", "payment_info", "repo", "user", "payment_info", "pull_request")
    ]
    rows = {key for table in demo_history.tables.values() for key in table}
    assert ("octocat@users.noreply.example",) not in rows


def test_repositories_are_updated_in_ways_that_matter_and_in_ways_that_do_not(changes: Changes) -> None:
    kinds = [changed_columns(change) for change in updates(changes, "repo")]
    assert sum("description" in kind for kind in kinds) > 15
    assert sum(kind == {"star_count"} for kind in kinds) > 50


def test_pull_requests_are_opened_merged_closed_reopened_and_drafted(changes: Changes) -> None:
    moves = Counter((change.old["status"], change.new["status"]) for change in updates(changes, "pull_request"))
    for move in [("open", "merged"), ("open", "closed"), ("draft", "open"), ("draft", "merged"), ("closed", "open")]:
        assert moves[move] > 1, move
    first = Counter(change.new["status"] for change in inserts(changes, "pull_request"))
    assert min(first["merged"] + first["closed"], first["draft"], first["open"]) > 5


def test_pull_requests_change_their_author_and_lose_it(changes: Changes) -> None:
    outside = [
        change
        for change in updates(changes, "pull_request")
        if "author" in changed_columns(change) and not change.transaction
    ]
    assert sum(change.new["author"] is not None for change in outside) >= 3
    assert sum(change.new["author"] is None for change in outside) >= 2


@pytest.mark.parametrize(("table", "referred"), [("user", "username"), ("repo", "repo_name")])
def test_rows_arrive_after_stars_that_refer_to_them(changes: Changes, table: str, referred: str) -> None:
    starred: set[str] = set()
    late = 0
    for change in changes:
        if change.table == "star":
            starred.add(change.key[0 if referred == "username" else 1])
        if change.table == table and change.old is None and change.new is not None:
            late += change.new["username" if table == "user" else "name"] in starred
    assert late >= 5


def test_stars_are_removed_and_some_are_added_again(changes: Changes) -> None:
    gone = {change.key for change in deletes(changes, "star") if not _moved(changes, change)}
    assert len(gone) > 20
    again = [change for change in inserts(changes, "star") if change.key in gone]
    assert len(again) - len({change.key for change in again}) >= 5


def _moved(changes: Changes, star: Any) -> bool:
    """Whether the rename of its user deleted the star: then the next change inserts it under the new name."""
    following = next((change for change in changes if change.line_number > star.line_number), None)
    return following is not None and following.table == "star" and following.key[1:] == star.key[1:]


def test_a_rename_changes_the_rows_of_some_users_and_not_of_others(changes: Changes) -> None:
    renamed = [change for change in updates(changes, "user") if changed_columns(change) == {"username"}]
    assert len(renamed) > 20
    assert sum(_moved(changes, change) for change in deletes(changes, "star")) > 10
    assert any(
        change.transaction and changed_columns(change) == {"author"} for change in updates(changes, "pull_request")
    )
    last = {change.key: change.new for change in changes if change.table == "star"}
    starring = {row["username"] for row in last.values() if row}
    assert sum(change.old["username"] in starring for change in renamed) >= 5


def test_some_users_take_the_former_name_of_another(changes: Changes) -> None:
    free_names: set[str] = set()
    taken = 0
    for change in updates(changes, "user"):
        if "username" in changed_columns(change):
            taken += change.new["username"] in free_names
            free_names.add(change.old["username"])
    assert taken >= 2


def test_no_two_users_have_one_name(demo_history: History) -> None:
    names = [row["username"] for row in demo_history.tables["user"].values()]
    assert len(names) == len(set(names))


def test_renamed_users_use_their_new_name(changes: Changes) -> None:
    names = {
        change.new["username"]: change.line_number
        for change in updates(changes, "user")
        if "username" in changed_columns(change)
    }
    moved = {change.line_number + 1 for change in deletes(changes, "star") if _moved(changes, change)}
    inserted = [change for change in inserts(changes, "star") if change.line_number not in moved]
    assert sum(change.key[0] in names and change.line_number > names[change.key[0]] for change in inserted) > 10


def test_users_with_stars_are_deleted_and_some_are_created_again(changes: Changes) -> None:
    gone = {change.key: change.old["username"] for change in deletes(changes, "user")}
    back = {change.key for change in inserts(changes, "user") if change.key in gone}
    created = Counter(change.key for change in inserts(changes, "user"))
    assert len(gone) >= 8
    assert 1 <= sum(created[key] == 2 for key in back) < len(gone)
    assert set(gone.values()) & {change.key[0] for change in changes if change.table == "star"}


def test_payments_change_verified_and_user_and_some_are_deleted(changes: Changes) -> None:
    moves = updates(changes, "payment_info")
    flips = Counter(change.new["verified"] for change in moves if changed_columns(change) == {"verified"})
    owners = [change.new["user_id"] for change in moves if changed_columns(change) == {"user_id"}]
    assert flips[True] > 20
    assert flips[False] > 5
    assert len([owner for owner in owners if owner is not None]) >= 5
    assert None in owners
    assert len(deletes(changes, "payment_info")) >= 5


def test_some_users_have_no_payment_and_some_have_two(demo_history: History) -> None:
    owners = Counter(row["user_id"] for row in demo_history.tables["payment_info"].values() if row["user_id"])
    users = {row["id"] for row in demo_history.tables["user"].values()}
    assert users - owners.keys()
    assert 2 in owners.values()


def test_some_updates_change_nothing(changes: Changes) -> None:
    same = Counter(change.table for change in changes if change.old is not None and change.old == change.new)
    assert same["user"] > 5
    assert same["repo"] > 5


def test_between_a_quarter_and_a_half_of_the_stars_have_a_repository_row(demo_history: History) -> None:
    stars = demo_history.tables["star"]
    with_row = sum((key[2], key[1]) in demo_history.tables["repo"] for key in stars)
    assert len(stars) / 4 < with_row < len(stars) / 2


def test_every_quarter_of_the_history_changes_every_table(demo_history: History, changes: Changes) -> None:
    quarter = len(demo_history.records) / 4
    for table in TABLES:
        quarters = {int(change.line_number / quarter) for change in updates(changes, table) + deletes(changes, table)}
        assert quarters == {0, 1, 2, 3}, table

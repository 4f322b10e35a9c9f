"""The registry keeps the release of the time zones that a product names, and no job makes its documents by another one."""

from collections.abc import Callable, Iterator

import pytest

from processor.engine.plan.plan import check_needs
from processor.engine.plan.planning import check_after, plan_alone, plan_of, requirements_of
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.expressions import zones
from processor.language.product.product import Definitions
from processor.values.record import Record
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.edits.operations import completed, remove
from registry.model import Snapshot

ENTITIES = """\
visit: {key: [id], columns: {id: int, at: timestamp, day: {type: date, as: "(at at time zone 'Asia/Tokyo')::date"}}}
day: {key: [id], columns: {id: date}}
"""
SHOWN = "product: p\nroot: visit\nfields: {day: day}\n"
JOINED = "product: p\nroot: day\nembed: {visits: {many: visit, on: {day: id}, fields: [id]}}\n"
EMPTY = Snapshot(version=0, slots=20, entities=(), products=(), assignments=(), joins=())
RUN = frozenset({"visit", "day"})
Install = Callable[[str], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A function that lets another release be the installed one."""

    def installed(release: str) -> None:
        monkeypatch.setattr("tzdata.IANA_VERSION", release)
        forget()

    def forget() -> None:
        zones.installed.cache_clear()
        zones.zone.cache_clear()

    yield installed
    monkeypatch.undo()
    forget()


def definitions(product: str = SHOWN) -> Definitions:
    return load({"entities.yaml": ENTITIES, "p.yaml": product})


def after(stored: Snapshot, given: Definitions) -> Snapshot:
    """The registry after an apply, which the check of `apply` lets pass."""
    found = edited(stored, apply(stored, requirements_of(given), RUN if stored.products else frozenset()))
    check_after(given, "dead")(stored, found)
    return found


def test_the_definition_of_a_product_that_names_a_zone_has_the_release(install: Install) -> None:
    install("2025b")
    stored = after(EMPTY, definitions())
    assert stored.products[0].definition["tzdata"] == "2025b"
    plain = after(EMPTY, definitions("product: p\nroot: visit\nfields: {at: \"(at at time zone 'UTC')::text\"}\n"))
    assert "tzdata" not in plain.products[0].definition


def test_a_start_with_another_release_is_refused_with_both_and_the_cure(install: Install) -> None:
    install("2025b")
    stored = after(EMPTY, definitions())
    check_needs(plan_of(stored), [])
    install("2026f")
    with pytest.raises(PlanError) as refused:
        check_needs(plan_of(stored), [])
    assert str(refused.value) == (
        "p: `at time zone` by the rules of tzdata 2025b, and tzdata 2026f is installed: pip install tzdata==2025.2, or "
        "`statestore apply` them again with the installed one, which publishes their documents again"
    )


def test_an_apply_with_another_release_is_a_new_version_that_publishes_again(install: Install) -> None:
    install("2025b")
    stored = after(EMPTY, definitions())
    install("2026f")
    changed = after(stored, definitions())
    (waiting,) = changed.waiting
    assert (waiting.version, waiting.definition["tzdata"]) == (2, "2026f")
    check_needs(plan_of(changed), [])  # the job makes the documents of both versions by its own rules
    assert plan_of(completed(changed)).products["p"].product.tzdata == "2026f"
    assert after(completed(changed), definitions()) == completed(changed)


def test_an_apply_that_leaves_a_product_with_the_former_release_is_refused(install: Install) -> None:
    install("2025b")
    stored = after(EMPTY, definitions())
    install("2026f")
    with pytest.raises(PlanError, match=r"^p: .* tzdata 2025b, and tzdata 2026f is installed"):
        after(stored, definitions(SHOWN.replace("product: p", "product: q")))


def test_a_live_product_that_joins_by_a_local_day_keeps_its_release_until_it_is_removed(install: Install) -> None:
    install("2025b")
    stored = after(EMPTY, definitions(JOINED))
    install("2026f")
    with pytest.raises(PlanError, match=r"^p: .*, or `statestore remove` and `statestore apply` them"):
        after(stored, definitions(JOINED))
    gone = completed(edited(stored, remove(stored, "p", tombstones=False)))
    check_needs(plan_of(completed(after(gone, definitions(JOINED)))), [])


def test_no_expression_asks_the_rules_of_another_release(install: Install) -> None:
    install("2025b")
    plan = plan_alone(definitions(), 20)
    install("2026f")
    trial = Trial(plan=plan, settings=Settings())
    trial.batch([Record(topic="visit", partition=0, offset=0, key=None, value=b'{"id":1,"at":"2026-01-01T20:00:00Z"}')])
    assert trial.published.messages == []
    assert "(OtherRelease)" in trial.stopped["p"]


def test_a_product_pins_the_release_that_is_installed_alone(install: Install) -> None:
    install("2025b")
    assert definitions(f"{SHOWN}tzdata: 2025b\n") == definitions()
    with pytest.raises(
        DefinitionError, match=r"`tzdata` is 2026f, and 2025b is installed; pip install tzdata==2026\.6"
    ):
        definitions(f"{SHOWN}tzdata: 2026f\n")

"""`statestore catalogue`: writes definitions as a static site, with a page for each product and each entity."""

import argparse
from pathlib import Path

from processor.cli.choices import PRICES, chosen_prices, empty_registry
from processor.cli.options import REGISTRY, load_settings, reachable_settings
from processor.cli.verb import AUTHORS, WITH_TESTS, flag, verb
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import files_below, load_directory, read_tests
from processor.language.definitions.product_tests import read_cases
from processor.text import visible_line
from processor.tools.inspect.preview import planned_state, preview
from processor.tools.web.answers import open_templates
from processor.tools.web.catalogue.product import product_versions
from processor.tools.web.catalogue.site import Catalogue, example_of, site_files, write_site
from registry.model import HistoryEntry, Snapshot


@verb(
    "catalogue",
    AUTHORS,
    WITH_TESTS,
    flag("--to", "directory of the site", "SITE", type=Path, required=True),
    flag("--title", "title of the site (default: the name of DIR)", "TEXT"),
    *PRICES,
    settings=REGISTRY,
)
def catalogue(options: argparse.Namespace) -> int:
    """Write a static site of the definitions: schemas, examples, lineage, slots, prices."""
    render = open_templates()
    tune_garbage_collector()
    directory: Path = options.definitions
    made = _catalogue(options, directory)
    write_site(site_files(made, render), options.to)
    definitions, examples = made.definitions, made.examples
    products = f"{len(definitions.products)} products ({len(examples)} with an example)"
    print(visible_line(f"{options.to / 'index.html'}: {products}, {len(definitions.entities)} entities"))
    return 0


def _catalogue(options: argparse.Namespace, directory: Path) -> Catalogue:
    definitions = load_directory(directory)
    with files_below(directory):
        cases = read_cases(read_tests(directory), definitions)
    settings, stored, has_run, history = _registry(options)
    found = preview(definitions, stored, has_run, None if options.no_price else settings)
    alone = plan_alone(definitions, settings.slots)  # as `test` runs them: nothing of it is paused
    examples = {name: example_of(name, cases, alone, settings) for name in definitions.products}
    return Catalogue(
        title=options.title or directory.resolve().name,
        definitions=definitions,
        plan=planned_state(definitions, stored, has_run).plan,
        found=found,
        prices=chosen_prices(options),
        examples={name: example for name, example in examples.items() if example},
        versions=None if history is None else product_versions(stored, found.entries, history, definitions.products),
    )


def _registry(
    options: argparse.Namespace,
) -> tuple[Settings, Snapshot, frozenset[str], tuple[HistoryEntry, ...] | None]:
    """The settings, and the registry that they name with its history. An empty one, and no history, where they name none."""
    settings = load_settings(options)
    named = options.registry or settings.registry != Settings().registry or options.embedded
    if not named:
        return settings, empty_registry(settings), frozenset(), None
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return settings, *registry.snapshot_for_apply(), registry.history()

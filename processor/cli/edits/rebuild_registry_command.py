"""`statestore rebuild-registry`: a new registry, made from definitions, takes over the table of a lost one."""

import argparse
from contextlib import closing

from processor.cli.options import (
    KAFKA,
    REGISTRY,
    TABLE,
    add_definitions,
    add_settings,
    load_definitions,
    print_progress,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.edit_report import print_applied, user_name
from processor.engine.plan.planning import check_after
from processor.environment.settings.resolve import open_registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "rebuild-registry", help="make a new registry from definitions take over the table of a registry that is lost"
    )
    add_definitions(parser)
    parser.add_argument(
        "--registry-is-lost",
        action="store_true",
        required=True,
        help="no job of the lost registry runs any more: the verb takes the table away from it",
    )
    add_settings(parser, *REGISTRY, *TABLE, *KAFKA)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.environment.stores.kinds import open_store
    from processor.tools.operate.rebuild_registry import rebuild_registry

    definitions = load_definitions(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        require_settings(settings, "bootstrap_servers")
        with closing(open_store(settings)) as store:
            applied = rebuild_registry(
                settings,
                definitions,
                registry,
                store,
                who=user_name(),
                check=check_after(definitions, settings.rejects_topic),
                report=print_progress,
            )
        print_applied(applied, registry)
    return 0

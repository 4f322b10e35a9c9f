"""`statestore roles`: creates the roles of the registry in Postgres. An administrator then grants them to users."""

import argparse

from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.environment.settings.resolve import open_registry

RIGHTS = {
    "reader": "reads the registry",
    "job": "runs the job: reads, reports, and takes the steps of edits",
    "operator": "edits: apply, move, retire, add-slots, pause, republish, remove, undo",
    "lander": "lands documents: reads, and notes its landings",
}


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "roles", help="create the roles of the registry in Postgres, for an administrator to grant"
    )
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        registry.create_roles()
        for role, rights in RIGHTS.items():
            print(f"{settings.registry_schema}_{role}  {rights}")
    return 0

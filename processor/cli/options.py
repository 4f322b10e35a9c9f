"""Flags that several verbs share, and what they make."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from processor.definitions.load import load, read_directory
from processor.errors import PartError
from processor.model.product import Definitions
from processor.settings import Settings, flags, read_settings

if TYPE_CHECKING:
    from processor.local.parts import Addresses

LOCAL_DIR = Path(".statestore/local")


def add_definitions(parser: argparse.ArgumentParser, *, required: bool = True, otherwise: str = "") -> None:
    """`--definitions DIR`; `otherwise`: what counts without it."""
    help = "entities.yaml and products" + (f" (default: {otherwise})" if otherwise else "")
    parser.add_argument("--definitions", metavar="DIR", type=Path, required=required, help=help)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """A flag for each setting, `--settings FILE`, and `--embedded`."""
    group = parser.add_argument_group(
        "settings", "each also as STATESTORE_<NAME>, or in the file given by --settings (TOML)"
    )
    group.add_argument("--settings", metavar="FILE", help="settings file")
    for name, text in flags():
        group.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="X", help=text)
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="Kafka, Postgres and the DynamoDB API on this machine: those of `local up`, else its own",
    )
    parser.add_argument(
        "--local-dir", metavar="DIR", type=Path, default=LOCAL_DIR, help=f"where `local up` keeps them ({LOCAL_DIR})"
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that the flags, the environment and the file make."""
    given = {name: getattr(options, name, None) for name, _ in flags()}
    return read_settings(given, file=getattr(options, "settings", None))


def definitions_of(options: argparse.Namespace) -> Definitions:
    return load(read_directory(options.definitions))


@contextmanager
def addressed(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings with their addresses: those given, or with `--embedded` those of the parts that are up, else of fresh ones."""
    settings = settings_of(options)
    if not options.embedded:
        yield settings
        return
    from processor.local import parts, standing

    embedded_credentials()
    running = standing.status(options.local_dir)
    if running is not None:
        dead = [name for name, alive in running.alive.items() if not alive]
        if dead:
            raise PartError(", ".join(dead), "died since `local up`", "start it again with `statestore local up`")
        yield with_addresses(settings, running.addresses)
    else:
        with parts.embedded(progress=say) as addresses:
            yield with_addresses(settings, addresses)


def with_addresses(settings: Settings, addresses: "Addresses") -> Settings:
    """The settings with the addresses of the embedded parts."""
    return replace(
        settings,
        bootstrap_servers=addresses.bootstrap_servers,
        registry=addresses.registry_url,
        endpoint=addresses.dynamodb_endpoint,
        region=settings.region or "us-east-1",
    )


def embedded_credentials() -> None:
    """The embedded DynamoDB API takes any credentials, but the client wants some."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "embedded")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "embedded")


def say(text: str) -> None:
    """Progress, for a person."""
    print(text, file=sys.stderr, flush=True)

"""Flags that several verbs share, and the values that verbs make of them."""

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
from processor.local.state import LOCAL_DIR
from processor.product.product import Definitions
from processor.settings import Settings, read_settings, setting_flags

if TYPE_CHECKING:
    from processor.local.parts import Addresses


def add_definitions(parser: argparse.ArgumentParser, *, required: bool = True, otherwise: str = "") -> None:
    """Adds `--definitions DIR`. `otherwise`: the default, for the help text."""
    help = "directory with entities.yaml and products" + (f" (default: {otherwise})" if otherwise else "")
    parser.add_argument("--definitions", metavar="DIR", type=Path, required=required, help=help)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds a flag for each setting, `--settings FILE`, and the flags of the embedded parts."""
    group = parser.add_argument_group(
        "settings", "each also as the variable STATESTORE_<NAME>, or in the file of --settings (TOML)"
    )
    group.add_argument("--settings", metavar="FILE", help="settings file")
    for name, text in setting_flags():
        group.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="X", help=text)
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="use Kafka, Postgres and the DynamoDB API on this machine: the parts of `local up` if they run, else new ones",
    )
    parser.add_argument(
        "--local-dir",
        metavar="DIR",
        type=Path,
        default=LOCAL_DIR,
        help=f"where `local up` keeps its parts ({LOCAL_DIR})",
    )


def load_settings(options: argparse.Namespace) -> Settings:
    """The settings of the flags, the environment and the settings file."""
    given = {name: getattr(options, name, None) for name, _ in setting_flags()}
    return read_settings(given, file=getattr(options, "settings", None))


def load_definitions(options: argparse.Namespace) -> Definitions:
    """The definitions of the directory that `--definitions` names."""
    return load(read_directory(options.definitions))


@contextmanager
def reachable_settings(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings of the flags. With `--embedded` their addresses are those of the parts of `local up` if these run, else of new
    parts, which end with the block. Raises PartError if a part of `local up` died."""
    settings = load_settings(options)
    if not options.embedded:
        yield settings
        return
    from processor.local import parts, shared_parts

    set_embedded_credentials()
    running = shared_parts.status(options.local_dir)
    if running is not None:
        dead = [name for name, alive in running.alive.items() if not alive]
        if dead:
            raise PartError(", ".join(dead), "died since `local up`", "start it again with `statestore local up`")
        yield with_addresses(settings, running.addresses)
    else:
        with parts.embedded_parts(progress=print_progress) as addresses:
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


def set_embedded_credentials() -> None:
    """Sets AWS credentials if there are none: the embedded DynamoDB API accepts any, but the client requires some."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "embedded")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "embedded")


def print_progress(text: str) -> None:
    """Prints a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)

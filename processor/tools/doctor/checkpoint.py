"""The checkpoint, as far as this machine sees it without Spark; and whether registry, table and checkpoint belong together."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from processor.engine.protocol.identity import IDENTITY, IDENTITY_FILE, TRACES, check_binding, identity_in, is_restored
from processor.finding import Checks, Finding, NothingToCheck, failure, ok, warning
from processor.tools.doctor.machine import is_cluster
from processor.tools.doctor.registry import existing_registry
from processor.tools.doctor.surroundings import Surroundings
from registry.model import Binding

CHECKS = Checks()
BEGAN = "sources/0/0"
FORMAT_LINE = "v1"
"""The first line of Spark's files in `offsets` and `commits`."""


@CHECKS.check("checkpoint", "the folder of the checkpoint", cure="give another --checkpoint")
def check_checkpoint(around: Surroundings) -> Iterator[Finding]:
    """Whether the job can make the checkpoint, or write into it."""
    if not around.settings.checkpoint:
        if around.embedded:
            raise NothingToCheck("an embedded job without --checkpoint takes a new folder")
        yield failure("the settings name no checkpoint", "--checkpoint DIR, or STATESTORE_CHECKPOINT")
        return
    folder = _folder(around)
    if is_cluster(around):
        text = f"{folder} is a local folder, and Spark is {around.settings.spark_master}: other machines do not see it"
        yield warning(text, "give a path that all machines see, such as s3://BUCKET/PATH")
    present = next(place for place in (folder, *folder.parents) if place.exists())
    if not present.is_dir():
        yield failure(f"{present} is a file", "give another --checkpoint")
    elif not os.access(present, os.W_OK | os.X_OK):
        yield failure(
            f"this user may not write in {present}", "let this user write there, or give another --checkpoint"
        )
    elif wrong := _unknown_format(folder):
        yield failure(
            f"{wrong} is not of Spark's format {FORMAT_LINE}", "give a new --checkpoint: the job reads all topics"
        )
    elif not is_cluster(around):
        yield ok(f"{folder} {'is there' if folder.exists() else 'does not exist yet, and can be made'}")


@CHECKS.check(
    "identity",
    "whether registry, table and checkpoint belong together",
    cure="correct --job, --table, --registry-schema or --checkpoint",
    needs=("registry", "permissions"),
)
def check_identities(around: Surroundings) -> Iterator[Finding]:
    """Whether the job's name, the table and the checkpoint belong to the registry."""
    existing_registry(around)
    settings, store = around.settings, around.store
    state = around.table_state
    item = store.get([IDENTITY]).get(IDENTITY) if state else None
    traces = state and any(store.page(pk, None, 1).items for pk in TRACES)
    bound = around.registry.binding()
    check_binding(
        bound,
        Binding(identity="", job=settings.job, table=settings.place),
        table=identity_in(item) if state else None,
        used=bool(traces),
        restored=is_restored(item, state.created if state else None),
        checkpoint=_identity(around),
        path=settings.checkpoint,
    )
    yield ok(
        "the table and the checkpoint belong to the registry" if bound.table else "no job has run by this registry"
    )


def _folder(around: Surroundings) -> Path:
    """The folder of a local checkpoint."""
    scheme, _, path, *_ = urlsplit(around.settings.checkpoint)
    if scheme not in ("", "file"):
        text = (
            f"only Spark can look at {around.settings.checkpoint}: the start of the job says if it cannot write there"
        )
        raise NothingToCheck(text)
    return Path(unquote(path) if scheme else around.settings.checkpoint).absolute()


def _unknown_format(folder: Path) -> Path | None:
    """A file of the checkpoint that Spark does not read."""
    for name in ("offsets", "commits"):
        for file in sorted((folder / name).glob("[0-9]*")):
            if file.read_text(encoding="utf-8", errors="replace").partition("\n")[0] != FORMAT_LINE:
                return file
    return None


def _identity(around: Surroundings) -> str | None:
    """The id in the checkpoint; empty for a checkpoint without one, None where no stream has begun, or only Spark sees it."""
    try:
        folder = _folder(around)
    except NothingToCheck:
        return None
    if not around.settings.checkpoint or not (folder / BEGAN).exists():
        return None
    file = folder / IDENTITY_FILE
    return str(json.loads(file.read_text(encoding="utf-8"))["id"]) if file.exists() else ""

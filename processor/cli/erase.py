"""`statestore erase`: removes a row, its documents and its dead letters for good, and prints a certificate."""

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from processor.cli.choices import chosen_entity, stored_state, typed_key
from processor.cli.options import JOB, reachable_settings, require_settings, user_name
from processor.cli.printing.output import JobLog, warn
from processor.cli.process import StopSignals, open_operator_run
from processor.cli.stored_letters import positions
from processor.cli.verb import ENTITY, LOG, OPERATORS, TAKE_OVER, flag, verb
from processor.engine.plan.row_image import declared_columns
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.resolve import open_registry
from processor.errors import SettingError
from processor.text import visible_line, visible_lines
from processor.tools.inspect.rows import Reference, references
from processor.tools.inspect.verification import with_open_changes
from processor.tools.operate.erasure import ErasureContext, certificate_lines, make_certificate
from processor.values import canonical_json
from processor.values.record import Value
from statestore import keys

if TYPE_CHECKING:
    from processor.environment.settings.settings import Settings
    from processor.tools.operate.erase import ErasureReport, LetterPlace


@verb(
    "erase",
    OPERATORS,
    ENTITY,
    flag("key", "its key: a JSON object, or the value of one column", "KEY"),
    flag("--json", "print the certificate as one JSON object"),
    flag("--without-key", "leave the key out of the certificate: its hash is there"),
    flag(
        "--referring", "erase nothing: print the commands that erase the rows of other entities that join with this row"
    ),
    flag(
        "--letter",
        "erase this dead letter (as user/0/17), whose key is unreadable: it is of this row",
        "P",
        action="append",
        default=[],
    ),
    flag(
        "--other-letter",
        "leave this dead letter, whose key is unreadable: it is of another row",
        "P",
        action="append",
        default=[],
    ),
    TAKE_OVER,
    *LOG,
    settings=JOB,
)
def erase(options: argparse.Namespace) -> int:
    """Remove a row, its documents and its dead letters for good."""
    own, others = (frozenset(map(_place, texts)) for texts in (options.letter, options.other_letter))
    with reachable_settings(options) as settings:
        with stored_state(settings) as (plan, store):
            entity = chosen_entity(plan, options.entity)
            key = typed_key(entity.entity, options.key)
            sk = keys.encode(key) or ""
            runner = with_open_changes(StepRunner(store=store))
            item = store.get([entity.key(sk)]).get(entity.key(sk))
            columns = declared_columns(item, entity) if item is not None else None
            found = runner.run([references(plan, entity.name, columns)])[0] if columns is not None else ()
        if options.referring:
            return _print_commands(found, known=columns is not None)
        report = _erase(options, settings, entity.name, key, (own, others))
    occasion = ErasureContext(
        settings=settings,
        plan=plan,
        entity=entity,
        key=dict(zip(entity.entity.key, key, strict=True)),
        by=user_name(),
        at=datetime.now(UTC),
        references=found,
        shows_key=not options.without_key,
    )
    certificate = make_certificate(occasion, report)
    if options.json:
        print(visible_line(canonical_json.dumps(certificate)))
    else:
        print(visible_lines(certificate_lines(certificate)))
    warn(*(f"the erasure is not complete, so run it again later: {reason}" for reason in report.left))
    return 1 if report.left else 0


def _erase(
    options: argparse.Namespace,
    settings: "Settings",
    entity: str,
    key: tuple[Value, ...],
    chosen: "tuple[frozenset[LetterPlace], frozenset[LetterPlace]]",
) -> "ErasureReport":
    from processor.tools.operate.erase import LetterChoice, run_erase

    log = JobLog(form=options.log, quiet=options.quiet)
    with open_registry(settings) as registry, StopSignals(log).handled() as signals:
        require_settings(settings, "bootstrap_servers")
        job = open_operator_run(replace(settings, checkpoint=""), registry, signals, take_over=options.take_over)
        return run_erase(job, entity, key, LetterChoice(own=chosen[0], others=chosen[1]))


def _place(text: str) -> "LetterPlace":
    """The place of one letter. Raises SettingError for a text that is no position, or more than one."""
    found = positions([text])
    if len(found) != 1:
        raise SettingError(f"{text!r} is not a position: give TOPIC/PARTITION/OFFSET, such as user/0/17")
    return found[0][:3]


def _print_commands(found: tuple[Reference, ...], *, known: bool) -> int:
    """Prints the commands that erase the rows of other entities. Status 1 where they are unknown, because the row is gone."""
    if not known:
        warn("the table has no row with this key, so its joins are not known")
        return 1
    for reference in found:
        for key in reference.keys:
            print(visible_line(erase_command(reference.entity, key)))
    return 0


def erase_command(entity: str, key: Mapping[str, Any]) -> str:
    """The command that erases a row."""
    return f"statestore erase {shlex.quote(entity)} {shlex.quote(canonical_json.dumps(dict(key)))}"

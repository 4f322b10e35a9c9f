"""`statestore land PRODUCT --to URL`: keeps the product's documents in Postgres or OpenSearch, or compares both.

The registry knows each landing: the verb notes it there before its first document. `--remove` takes out one that ended for good.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING

from processor.cli.choices import stored_plan
from processor.cli.options import KAFKA, REGISTRY, load_definitions, reachable_settings, require_settings
from processor.cli.printing.output import JobLog
from processor.cli.process import end_signals, served_page
from processor.cli.verb import LOG, OPERATORS, PRODUCT, STORED_DEFINITIONS, flag, verb
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, product_of
from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.settings.kafka import is_reference
from processor.environment.settings.resolve import open_registry, resolve_reference
from processor.environment.settings.settings import PASSWORD, Settings
from processor.errors import PartError, SettingError, StatestoreError
from processor.job.landing.sinks import SINKS, EmbeddedSink, open_target, sink_of
from processor.text import visible_line

if TYPE_CHECKING:
    from processor.job.kafka.admin import Admin
    from processor.job.landing.target import LandedTopic, Target
    from registry.repository import Registry


@verb(
    "land",
    OPERATORS,
    PRODUCT,
    flag(
        "--to",
        f"{', '.join(kind.form for kind in SINKS)}, or a reference: env:NAME, file:PATH, secret:NAME (with --embedded its "
        f"Postgres, or {', '.join(f'`{kind.embedded.part}`' for kind in SINKS if kind.embedded)})",
        "URL",
    ),
    flag("--into", "table or alias (default: the product's name)", "NAME"),
    flag("--index", "a member that gets an index in Postgres; repeatable", "MEMBER", action="append", default=[]),
    flag("--once", "land what the topic holds now, then end"),
    flag("--verify", "land nothing: compare target and topic; 1 if they differ"),
    flag("--new-id", "the target is a copy of another landing's: give it an id of its own", rare=True),
    flag(
        "--remove",
        "land nothing: take the landing with this id, as `status` shows it, out of the registry; its target stays",
        "ID",
        rare=True,
    ),
    STORED_DEFINITIONS,
    *LOG,
    settings=(*KAFKA, *REGISTRY, "status_port", "status_host"),
)
def land(options: argparse.Namespace) -> int:
    """Keep the documents of a product in a database or a search engine."""
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        if options.remove:
            return _remove(options, settings)
        plan = plan_alone(load_definitions(options), settings.slots) if options.definitions else stored_plan(settings)
        with closing(_target(options, settings, plan)) as target:
            if options.verify:
                return _verify(settings, _topic(options, settings, plan), target)
            with open_registry(settings) as registry:
                return _land(options, settings, registry, plan, target)


def _target(options: argparse.Namespace, settings: Settings, plan: Plan) -> "Target":
    if not (options.to or options.embedded):
        raise SettingError(
            f"--to is missing: give the address of a {' or an '.join(kind.name for kind in SINKS)}, or --embedded for `local up`"
        )
    embedded = next((kind.embedded for kind in SINKS if kind.embedded and kind.embedded.part == options.to), None)
    if options.embedded and embedded:
        url = _embedded_address(options, embedded)
    else:
        url = resolve_reference("--to", options.to) if options.to else settings.registry
    into = options.into or options.product
    target = open_target(url, into, plan, options.product, options.index, versions=not options.definitions)
    if options.to and not is_reference(options.to) and PASSWORD.search(options.to):
        raise SettingError(
            "--to: the address holds a password, which other users of this machine can see: put the whole address into a "
            f"variable or a file, and give --to env:NAME or --to file:PATH{sink_of(url).password_cure}"
        )
    return target


def _embedded_address(options: argparse.Namespace, sink: "EmbeddedSink") -> str:
    """The address of an embedded sink."""
    from processor.environment import embedded as parts

    running = parts.status(options.local_dir)
    if running is None or sink.part not in running.addresses.endpoints:
        raise PartError(
            sink.title, f"it does not run in {options.local_dir}", f"`statestore local up --land {sink.part}`"
        )
    return running.addresses.endpoints[sink.part]


def _topic(options: argparse.Namespace, settings: Settings, plan: Plan) -> "LandedTopic":
    from processor.job.kafka.admin import Admin
    from processor.job.landing.target import LandedTopic

    product = product_of(plan, options.product).product
    if product.format != "json":
        raise StatestoreError(
            f"product {product.name} publishes {product.format}, and `land` reads JSON: give it `format: json`"
        )
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    found = admin.topics([product.topic])
    if product.topic not in found:
        raise StatestoreError(
            f"there is no topic {product.topic} at {settings.bootstrap_servers}: a job creates it when it starts"
        )
    return LandedTopic(product.name, product.topic, found[product.topic].id, admin.cluster())


def _look(admin: "Admin", before: "LandedTopic") -> "LandedTopic | None":
    """The topic of this name as it is at the broker now."""
    found = admin.topics([before.name]).get(before.name)
    if found is None or found.id == before.id:
        return None if found is None else before
    return before._replace(id=found.id, cluster=admin.cluster())


def _land(options: argparse.Namespace, settings: Settings, registry: "Registry", plan: Plan, target: "Target") -> int:
    from processor.job.kafka.admin import Admin
    from processor.job.kafka.reader import GroupReader
    from processor.job.landing.landing import LANDING_PAGES, Landing, group_of, landed_text, landing_state

    log, kafka = JobLog(form=options.log, quiet=options.quiet), dict(settings.kafka)
    admin, topic = Admin(settings.bootstrap_servers, kafka), _topic(options, settings, plan)
    others = frozenset(one.product.name for one in plan.sharing(plan.products[topic.product]))
    opened = target.open(topic, new_id=options.new_id)
    group = group_of(topic.product, opened.id)

    def note() -> None:
        registry.landings.note(opened.id, product=topic.product, topic=topic.name, place=target.place)

    _first_note(note, settings)
    log(JobEvent(what="landing", text=f"topic {topic.name} lands in {target.place}, id {opened.id}"))
    if others:
        text = f"passes over the messages of {', '.join(sorted(others))} in topic {topic.name}"
        log(JobEvent(what="landing", text=text))
    landing = Landing(
        topic=topic,
        target=target,
        look=lambda: _look(admin, topic),
        ends=lambda: admin.stable_ends(topic.name),
        join=lambda offsets: GroupReader(settings.bootstrap_servers, kafka, topic.name, group, offsets),
        note=note,
        troubles=Troubles(log),
        report=log,
        stopping=Event(),
        goal=admin.stable_ends(topic.name),
        once=options.once,
        others=others,
        earlier=opened.earlier,
    )
    page = served_page(settings, log, landing_state(landing), LANDING_PAGES)
    with end_signals(lambda *_: landing.stopping.set()), page:  # the landing ends after its batch
        landing.run()
    landing.say_foreign()
    log(JobEvent(what="ended", text=landed_text(landing.tally), fields=landing.tally))
    refused = target.refused()
    if refused:
        text = f"{target.place} refuses {refused:,} documents, and keeps their earlier ones: --verify names them"
        log(JobEvent(what="refused", text=text, level="warning"))
    return 1 if options.once and (refused or not landing.shown) else 0


def _first_note(note: Callable[[], None], settings: Settings) -> None:
    """Notes the landing before its first document. Raises StatestoreError where the user of the registry may not."""
    from registry.errors import RegistryError

    try:
        note()
    except RegistryError as error:
        if "permission denied" not in str(error):
            raise
        role = f"{settings.registry_schema}_lander"
        raise StatestoreError(
            f"the registry must know this landing, and its user may not note it: GRANT {role} TO this user "
            f"(`statestore roles` makes the role): {error}"
        ) from error


def _remove(options: argparse.Namespace, settings: Settings) -> int:
    """Takes a landing out of the registry, and its group out of Kafka. Its target may be gone."""
    from processor.job.kafka.admin import delete_group
    from processor.job.landing.landing import group_of, landing_states

    with open_registry(settings) as registry:
        states = landing_states(registry.landings.all(), settings.bootstrap_servers, dict(settings.kafka))
        found = next((one for one in states if (one.product, one.id) == (options.product, options.remove)), None)
        if found is None:
            known = ", ".join(one.id for one in states if one.product == options.product and one.id)
            raise SettingError(
                f"--remove {options.remove}: the registry knows no such landing of {options.product}; it knows "
                + (known or "none")
            )
        if found.processes:
            raise StatestoreError(f"{found.processes} processes of landing {found.id} run: stop them first")
        delete_group(settings.bootstrap_servers, dict(settings.kafka), group_of(found.product, found.id))
        registry.landings.remove(found.id)
    print(visible_line(f"landing {found.id} of {found.product} is gone; {found.place} keeps what it holds"))
    return 0


def _verify(settings: Settings, topic: "LandedTopic", target: "Target") -> int:
    from processor.job.kafka.admin import Admin, group_states
    from processor.job.kafka.reader import read_topic
    from processor.job.landing.landing import group_of
    from processor.job.landing.target import compare_landing, missed_partitions, read_messages

    kafka, group = dict(settings.kafka), group_of(topic.product, target.check(topic))
    ends = Admin(settings.bootstrap_servers, kafka).stable_ends(topic.name)
    moment = target.moment()
    records = read_topic(settings.bootstrap_servers, kafka, topic.name)
    result = compare_landing(moment, read_messages(records, topic.product))
    groups = [one for one in group_states(settings.bootstrap_servers, kafka, group) if one.name == group]
    runs = any(one.members for one in groups)
    result.missed = missed_partitions(ends, moment.offsets, target.offsets, runs=runs, sleep=time.sleep)
    for line in result.lines():
        print(line)
    return 0 if result.right else 1

"""`statestore land PRODUCT --to URL`: keeps the product's documents in Postgres or OpenSearch, or compares both."""

import argparse
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import TYPE_CHECKING

from processor.cli.chosen_plan import stored_plan
from processor.cli.operators.driver_page import served_page
from processor.cli.options import (
    KAFKA,
    REGISTRY,
    add_definitions,
    add_settings,
    load_definitions,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.job_log import JobLog, add_log_flags
from processor.embedded.parts import OPENSEARCH
from processor.errors import PartError, SettingError, StatestoreError
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone, product_of
from processor.rounds.job_event import JobEvent
from processor.rounds.troubles import Troubles
from processor.settings.resolve_secrets import resolve_reference
from processor.settings.settings import Settings

if TYPE_CHECKING:
    from processor.landing.target import LandedTopic, Target


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("land", help="keep the documents of a product in Postgres or in OpenSearch")
    parser.add_argument("product", metavar="PRODUCT")
    parser.add_argument(
        "--to",
        metavar="URL",
        help="postgresql://user@host:port/database, https://user@host:9200, or a reference: env:NAME, file:PATH, secret:NAME "
        "(with --embedded its Postgres, or `opensearch`)",
    )
    parser.add_argument("--into", metavar="NAME", help="table or alias (default: the product's name)")
    parser.add_argument(
        "--index",
        metavar="MEMBER",
        action="append",
        default=[],
        help="a member that gets an index in Postgres; repeatable",
    )
    parser.add_argument("--once", action="store_true", help="land what the topic holds now, then end")
    parser.add_argument(
        "--verify", action="store_true", help="land nothing: compare target and topic; 1 if they differ"
    )
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    add_log_flags(parser)
    add_settings(parser, *KAFKA, *REGISTRY, "status_port", "status_host")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        plan = plan_alone(load_definitions(options), settings.slots) if options.definitions else stored_plan(settings)
        with closing(_target(options, settings, plan)) as target:
            topic = _topic(options, settings, plan)
            return _verify(settings, topic, target) if options.verify else _land(options, settings, topic, target)


def _target(options: argparse.Namespace, settings: Settings, plan: Plan) -> "Target":
    from processor.landing.open_target import open_target

    if not (options.to or options.embedded):
        raise SettingError(
            "--to is missing: give the address of a Postgres or an OpenSearch, or --embedded for `local up`"
        )
    if options.embedded and options.to == OPENSEARCH:
        url = _embedded_search(options)
    else:
        url = resolve_reference("--to", options.to or settings.registry)
    if options.definitions and url.startswith("http"):
        raise SettingError("--definitions has no version of the product, which names the index: leave the flag out")
    return open_target(url, options.into or options.product, plan, options.product, options.index)


def _embedded_search(options: argparse.Namespace) -> str:
    """The address of the embedded OpenSearch."""
    from processor.embedded import shared_parts

    running = shared_parts.status(options.local_dir)
    if running is None or OPENSEARCH not in running.addresses.endpoints:
        raise PartError(
            "OpenSearch", f"it does not run in {options.local_dir}", "`statestore local up --land opensearch`"
        )
    return running.addresses.endpoints[OPENSEARCH]


def _topic(options: argparse.Namespace, settings: Settings, plan: Plan) -> "LandedTopic":
    from processor.kafka.admin import Admin
    from processor.landing.target import LandedTopic

    product = product_of(plan, options.product).product
    if product.format != "json":
        raise StatestoreError(
            f"product {product.name} publishes {product.format}, and `land` reads JSON: give it `format: json`"
        )
    found = Admin(settings.bootstrap_servers, dict(settings.kafka)).topics([product.topic])
    if product.topic not in found:
        raise StatestoreError(
            f"there is no topic {product.topic} at {settings.bootstrap_servers}: a job creates it when it starts"
        )
    return LandedTopic(product.name, product.topic, found[product.topic].id)


def _land(options: argparse.Namespace, settings: Settings, topic: "LandedTopic", target: "Target") -> int:
    from processor.kafka.admin import Admin
    from processor.kafka.group_reader import GroupReader
    from processor.landing.landing import Landing, landed_text
    from processor.landing.landing_page import LANDING_PAGES, landing_state
    from processor.landing.landing_states import group_of

    log, kafka = JobLog(form=options.log, quiet=options.quiet), dict(settings.kafka)
    target.open(topic)
    log(JobEvent(what="landing", text=f"topic {topic.name} lands in {target.place}"))
    landing = Landing(
        product=topic.product,
        target=target,
        join=lambda offsets: GroupReader(
            settings.bootstrap_servers, kafka, topic.name, group_of(topic.product, target.place), offsets
        ),
        troubles=Troubles(log),
        report=log,
        stopping=Event(),
        goal=Admin(settings.bootstrap_servers, kafka).stable_ends(topic.name),
        once=options.once,
    )
    page = served_page(settings, log, landing_state(landing), LANDING_PAGES)
    with _stopped_by_signals(landing.stopping), page:
        landing.run()
    log(JobEvent(what="ended", text=landed_text(landing.tally), fields=landing.tally))
    refused = target.refused()
    if refused:
        text = f"{target.place} refuses {refused:,} documents, and keeps their earlier ones: --verify names them"
        log(JobEvent(what="refused", text=text, level="warning"))
    return 1 if options.once and (refused or not landing.shown) else 0


def _verify(settings: Settings, topic: "LandedTopic", target: "Target") -> int:
    from processor.kafka.reader import read_topic
    from processor.landing.compare_landing import compare_landing
    from processor.landing.landed_message import read_message

    target.check(topic)
    moment = target.moment()
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), topic.name)
    result = compare_landing(moment, filter(None, (read_message(record, topic.product) for record in records)))
    for line in result.lines():
        print(line)
    return 0 if result.right else 1


@contextmanager
def _stopped_by_signals(stopping: Event) -> Iterator[None]:
    """Sets the event at SIGTERM and at Ctrl-C: the landing ends after its batch."""
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

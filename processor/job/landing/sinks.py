"""All kinds of sink, in which `land` keeps documents. No other room tells them apart.

A new kind is a row here, and a file that has its target; tests/integration/landing/test_each_sink.py tests it with the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import product_of
from processor.job.landing.target import LandingPlace, Target


class EmbeddedSink(NamedTuple):
    """The sink on this machine."""

    part: str
    """The name of the embedded part, as `--to` takes it."""
    title: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One kind of sink."""

    name: str
    """For people."""
    schemes: tuple[str, ...]
    """Of its URLs."""
    form: str
    """A URL of this kind, for `--help`."""
    open: Callable[[LandingPlace], Target]
    """The target at a place. Imports the client only when somebody calls it. Raises SettingError, LandingError."""
    embedded: EmbeddedSink | None = None
    """None where the registry's Postgres is the sink on this machine."""
    password_cure: str = ""
    """Where else a password can be than in the URL, for the message of one that others can see."""


def _open_postgres(place: LandingPlace) -> Target:
    from processor.job.landing.postgres import open_table

    return open_table(place)


def _open_search(place: LandingPlace) -> Target:
    from processor.job.landing.search import open_index

    return open_index(place)


POSTGRES = SinkKind(
    name="Postgres",
    schemes=("postgresql", "postgres", "postgresql+psycopg"),
    form="postgresql://user@host:port/database",
    open=_open_postgres,
    password_cure=", or leave the password out and set PGPASSWORD, or use ~/.pgpass",
)
SEARCH = SinkKind(
    name="OpenSearch",
    schemes=("https", "http"),
    form="https://user@host:9200",
    open=_open_search,
    embedded=EmbeddedSink("opensearch", "OpenSearch"),
)
SINKS = (POSTGRES, SEARCH)
"""The first is the default: it explains an address that is of no kind."""


def sink_of(url: str) -> SinkKind:
    """The kind of sink at an address."""
    scheme, _, rest = url.partition("://")
    return next((kind for kind in SINKS if rest and scheme.lower() in kind.schemes), SINKS[0])


def open_target(
    url: str, name: str, plan: Plan, product: str, indexes: Sequence[str], *, versions: bool = True
) -> Target:
    """The target of a product of the plan. `indexes`: members that get a column and an index in Postgres. `versions`: whether the
    plan knows the version of its products. Raises SettingError, LandingError."""
    planned = product_of(plan, product)
    place = LandingPlace(
        url=url,
        name=name,
        product=planned.product,
        entities=plan.declared_entities,
        version=planned.version if versions else 0,
        indexes=indexes,
    )
    return sink_of(url).open(place)

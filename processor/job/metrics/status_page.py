"""The page of the driver and its server: `/` for a person, `/metrics` for Prometheus, `/status.json`, and `/health`, whose status
is 200 while all is well or the job waits for a part outside of it, and 503 when a person must act.

The page is the report of the job as one HTML page, which fetches itself again every 5 s. It is whole in itself; its content
policy lets it load nothing but itself. All that comes from outside is escaped: names of topics and products, reasons, records.
It is readable on a phone, in light and in dark.

The server answers from the last report of the monitor, so no request reaches the job, the table or Kafka. It holds up neither
the job nor its end: at most MOST_CONNECTIONS at once, each for at most CONNECTION_SECONDS, however slow the client is. A new
client takes the place of the oldest, so unfinished requests keep no probe out. It answers only GET. On a loopback address it
answers only requests for this machine, so that no site in a browser can read it under a name of its own. Does not: encrypt, or
ask who reads.

The metrics are in the text form of Prometheus. This is the doorway to prometheus-client.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from processor.engine.rounds.round_counts import read_freshness
from processor.environment.listeners import (
    LOCAL_NAMES,
    ConnectionLimits,
    ConnectionTable,
    is_loopback,
    is_named,
    listen,
    plain_name,
)
from processor.job.metrics.metrics import METRICS, Histogram, Metric, Values, read_metrics
from processor.job.metrics.status import document_age, gate_lines, letters_text, missing_text, oldest_text, topic_text

STYLE = """
:root { color-scheme: light dark; --back: #fff; --tile: #f3f4f6; --text: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --good: #116329; --bad: #a40e26; --bad-back: #ffebe9; --fair: #7d4e00; --fair-back: #fff8c5 }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --tile: #161b22; --text: #e6edf3; --soft: #9198a1;
  --line: #30363d; --good: #56d364; --bad: #ff938a; --bad-back: #3a1114;
  --fair: #e3b341; --fair-back: #2e2a1f } }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: 1rem; margin: 1.5rem 0 .4rem }
p { margin: .3rem 0 } .soft { color: var(--soft) } .good { color: var(--good) }
.wrong, .silent { color: var(--bad); background: var(--bad-back); padding: .6rem .8rem; border-radius: .4rem }
.degraded { color: var(--fair); background: var(--fair-back); padding: .6rem .8rem; border-radius: .4rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .5rem; margin-top: 1rem }
.tiles div { background: var(--tile); border-radius: .4rem; padding: .5rem .7rem }
.tiles div { color: var(--soft); font-size: .85rem }
.tiles b { color: var(--text); display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; white-space: nowrap }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums }
th:first-child, td:first-child { text-align: left } th { color: var(--soft); font-weight: 500 }
.silent { display: none } .lost .silent { display: block }
""".strip()
SCRIPT = """
setInterval(async () => {
  try {
    const answer = await fetch(location.pathname, {cache: "no-store"});
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.title = page.title;
    document.body.classList.remove("lost");
  } catch { document.body.classList.add("lost"); }
}, 5000);
""".strip()
LOST = "No answer: the job has ended, or this machine cannot reach it. Below is its last state."


def _hashes(*texts: str) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)


CONTENT_POLICY = (
    f"default-src 'none'; style-src {_hashes(STYLE)}; script-src {_hashes(SCRIPT)}; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_CONNECTIONS = 32
MOST_OF_ONE = 8
"""Connections of an address."""
CONNECTION_SECONDS = 10.0
POLL_SECONDS = 0.1
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TEXT = "text/plain; charset=utf-8"


class RunState(NamedTuple):
    """The state that the server shows. `report`: of the monitor, None before the first; `wrong`: what a person must repair;
    `degraded`: what the job waits for."""

    report: Mapping[str, Any] | None
    wrong: tuple[str, ...]
    degraded: tuple[str, ...] = ()

    @property
    def health(self) -> tuple[HTTPStatus, str]:
        """The answer to a probe. A job that waits is well: a probe that ends it would only make its work begin again."""
        well = "starts" if self.report is None else "ok"
        lines = [*self.wrong, *(f"degraded: {line}" for line in self.degraded)] or [well]
        if self.report is not None and (letters := self.report.get("letters_waiting")):
            lines.append(letters_text(letters, self.report["at"]))
        return HTTPStatus.SERVICE_UNAVAILABLE if self.wrong else HTTPStatus.OK, "\n".join(lines)


class Pages(NamedTuple):
    """The texts that the server makes of a state: HTML for a person, and the metrics."""

    page: Callable[[Mapping[str, Any] | None, Sequence[str], Sequence[str]], str]
    metrics: Callable[[Mapping[str, Any]], bytes]


def status_page(report: Mapping[str, Any] | None, wrong: Collection[str], degraded: Collection[str] = ()) -> str:
    """The page. `report`: None before the first; `wrong`: what a person must repair; `degraded`: what the job waits for."""
    state = "a person must act" if wrong else "degraded" if degraded or report is None else report["doing"]
    title = "statestore" if report is None else f"{report['job']}: {state}"
    waits = "".join(f'<p class="degraded">degraded: {escape(line)}</p>' for line in degraded)
    repair = "".join(f'<p class="wrong">{escape(line)}</p>' for line in wrong)
    start = f"<h1>statestore</h1><p>The job starts.</p>{repair}{waits}"
    body = start if report is None else "".join(_parts(report, repair, waits))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head>"
        f'<body><p class="silent">{LOST}</p><main>{body}</main><script>{SCRIPT}</script></body></html>\n'
    )


def _parts(report: Mapping[str, Any], repair: str, waits: str) -> Iterable[str]:
    values = read_metrics(report)
    yield f"<h1>job {escape(report['job'])}: {escape(report['doing'])}</h1>"
    yield _line(
        f"statestore {report['statestore']} on {report['host']}, process {report['pid']}, registry version "
        f"{report['registry_version']}; reported {_moment(report['at'])}"
    )
    yield f"{repair}{waits}"
    yield "" if repair else '<p class="good">Nothing needs a person.</p>'
    yield _tiles(report)
    yield _topics(report, values)
    yield "<h2>Open</h2>"
    yield _line(
        f"{report['open_changes']:,} open changes ({report['settle_due']:,} due), {report['fan_outs']:,} fan-outs, "
        f"{report['backlog']:,} roots in the backlog"
    )
    yield from map(_line, _notes(report))
    yield _requests(values)
    stages = _of(values, "stage_seconds_total")
    rows = [
        ("batches", _of(values, "batch_seconds_total")[()]),
        *((f"tasks: {name}", s) for (name,), s in stages.items()),
    ]
    yield _table("Time", ("of", "seconds"), [(name, f"{seconds:,.1f}") for name, seconds in rows])
    yield '<p class="soft"><a href="metrics">metrics</a> · <a href="status.json">JSON</a> · <a href="health">health</a></p>'


def _tiles(report: Mapping[str, Any]) -> str:
    batch = report["last_batch"]
    tiles = {
        "events/s": f"{report['events_per_second']:g}",
        "documents/s": f"{report['documents_per_second']:g}",
        "latency p50, p99": _latency(report["counts"]),
        "oldest unpublished": oldest_text(report),
        "dead letters that wait": _letters(report),
        "last batch": f"{batch['records']:,} → {batch['documents']:,}" if batch else "none",
    }
    return (
        '<div class="tiles">' + "".join(f"<div>{name}<b>{value}</b></div>" for name, value in tiles.items()) + "</div>"
    )


def _letters(report: Mapping[str, Any]) -> str:
    groups = report.get("letters_waiting")
    return "unknown" if groups is None else f"{sum(one['letters'] for one in groups):,}"


def _latency(counts: Mapping[str, int]) -> str:
    found = read_freshness(counts)
    return ", ".join(document_age(found, share) for share in (0.5, 0.99)) if found.count else "none"


def _topics(report: Mapping[str, Any], values: Mapping[str, Values | Histogram]) -> str:
    events, rows = _of(values, "events_total"), []
    outcomes = ("applied", "superseded", "ignored", "dead_letter")
    for topic in sorted({topic for topic, _ in events}):
        behind = topic_text(report, topic) if topic in report["topics"] else "not read"
        rows.append((topic, behind, *(f"{events[topic, outcome]:,.0f}" for outcome in outcomes)))
    heads = ("topic", "behind", "applied", "superseded", "ignored", "dead letters")
    return _table("Topics", heads, rows)


def _requests(values: Mapping[str, Values | Histogram]) -> str:
    units = {**_of(values, "write_units_total"), **_of(values, "read_units_total")}
    retries, throttles = _of(values, "retries_total"), _of(values, "throttles_total")
    rows = [
        (key[0], f"{n:,.0f}", f"{units[key]:,.1f}", f"{throttles[key]:,.0f}", f"{retries[key]:,.0f}")
        for key, n in _of(values, "requests_total").items()
    ]
    return _table("Requests to the table", ("request", "sent", "units", "throttles", "retries"), rows)


def _notes(report: Mapping[str, Any]) -> Iterable[str]:
    """Lines that only some jobs need."""
    named = {"walks": "walks", "waiting_products": "waiting products", "paused_topics": "paused topics"}
    for name, title in named.items():
        if report[name]:
            yield f"{title}: {', '.join(report[name])}"
    yield from gate_lines(report)
    for topic in report["missing_topics"]:
        yield f"topic {topic}: {missing_text(report, topic)}"
    if report["last_dead_letter"]:
        yield f"the last dead letter of this run: {report['last_dead_letter']}"
    if report.get("letters_waiting"):
        yield letters_text(report["letters_waiting"], report["at"])


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<h2>{title}</h2><div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _line(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def _of(values: Mapping[str, Values | Histogram], name: str) -> Values:
    found = values[f"statestore_{name}"]
    assert not isinstance(found, Histogram)
    return found


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


CONTENT_TYPE = CONTENT_TYPE_LATEST


def prometheus_text(report: Mapping[str, Any]) -> bytes:
    """All metrics of a job's report."""
    return metrics_text(METRICS, read_metrics(report))


def metrics_text(metrics: Sequence[Metric], values: Mapping[str, Values | Histogram]) -> bytes:
    """The metrics with their values, by name."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Values([_family(metric, values[metric.name]) for metric in metrics]))
    return generate_latest(registry)


class _Values(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        return iter(self._families)


def _family(metric: Metric, values: Values | Histogram) -> Family:
    if isinstance(values, Histogram):
        histogram = HistogramMetricFamily(metric.name, metric.meaning)
        ends = [f"{bound:g}" for bound in values.bounds] + ["+Inf"]
        histogram.add_metric([], list(zip(ends, values.cumulative, strict=True)), values.total)
        return histogram
    made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = made(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


JOB_PAGES = Pages(status_page, prometheus_text)


@contextmanager
def status_server(host: str, port: int, read: Callable[[], RunState], pages: Pages = JOB_PAGES) -> Iterator[int]:
    """Serves the page within the block; yields the port. Raises SettingError if it cannot listen there."""
    limits = ConnectionLimits(most=MOST_CONNECTIONS, most_of_one=MOST_OF_ONE, seconds=CONNECTION_SECONDS)
    server = _Server(host, port, read, pages, ConnectionTable(limits))
    thread = Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="status page", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, host: str, port: int, read: Callable[[], RunState], pages: Pages, connections: ConnectionTable
    ) -> None:
        self.read, self.pages, self._connections = read, pages, connections
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, *others = listen(("status_host", "status_port"), host, port, connections)
        for other in others:
            other.close()
        self.server_address = self.socket.getsockname()
        address = str(self.server_address[0])
        self.names = {*LOCAL_NAMES, plain_name(address)} if is_loopback(address) else None

    def service_actions(self) -> None:
        """Ends the connections that last too long. The server calls this after each poll."""
        self._connections.end_overdue()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the job."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CONNECTION_SECONDS

    def do_GET(self) -> None:
        if self.server.names is not None and not is_named(self.headers.get("Host", ""), self.server.names):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, TEXT, b"the Host of the request is not this machine\n")
            return
        state = self.server.read()
        match self.path.partition("?")[0]:
            case "/":
                page = self.server.pages.page(state.report, state.wrong, state.degraded)
                self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode())
            case "/health":
                status, text = state.health
                self._answer(status, TEXT, f"{text}\n".encode())
            case "/status.json":
                self._answer(HTTPStatus.OK, "application/json", json.dumps(state.report).encode())
            case "/metrics" if state.report is not None:
                self._answer(HTTPStatus.OK, CONTENT_TYPE, self.server.pages.metrics(state.report))
            case "/metrics":
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"the job has yet to report\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, TEXT, b"paths: / /metrics /status.json /health\n")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a request that is none, or another one than GET, without repeating any of it."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        self._answer(HTTPStatus(code), TEXT, b"")

    def version_string(self) -> str:
        return "statestore"

    def log_message(self, format: str, *_: Any) -> None:
        """Logs nothing: the log belongs to the job."""

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

"""The page of the driver, for a person: the report of the job as one HTML page, which fetches itself again every 5 s.

Promises: the page is whole in itself; its content policy lets it load nothing but itself. All that comes from outside is escaped:
names of topics and products, reasons, records. It is readable on a phone, in light and in dark.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any

from processor.metrics.freshness_text import age_text
from processor.metrics.gate_text import gate_lines
from processor.metrics.lag_text import lag_text, missing_text, oldest_text
from processor.metrics.metrics import Histogram, Values, read_metrics
from processor.rounds.freshness import read_freshness

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


def _policy(*texts: str) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)


CONTENT_POLICY = (
    f"default-src 'none'; style-src {_policy(STYLE)}; script-src {_policy(SCRIPT)}; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def status_page(report: Mapping[str, Any] | None, wrong: Collection[str], degraded: Collection[str] = ()) -> str:
    """The page. `report`: None before the first; `wrong`: what a person must repair; `degraded`: what the job waits for."""
    state = "a person must act" if wrong else "degraded" if degraded or report is None else report["doing"]
    title = "statestore" if report is None else f"{report['job']}: {state}"
    waits = "".join(f'<p class="degraded">degraded: {escape(line)}</p>' for line in degraded)
    start = f"<h1>statestore</h1><p>The job starts.</p>{waits}"
    body = start if report is None else "".join(_parts(report, wrong, waits))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head>"
        f'<body><p class="silent">{LOST}</p><main>{body}</main><script>{SCRIPT}</script></body></html>\n'
    )


def _parts(report: Mapping[str, Any], wrong: Collection[str], waits: str) -> Iterable[str]:
    values = read_metrics(report)
    yield f"<h1>job {escape(report['job'])}: {escape(report['doing'])}</h1>"
    yield _line(
        f"statestore {report['statestore']} on {report['host']}, process {report['pid']}, registry version "
        f"{report['registry_version']}; reported {_moment(report['at'])}"
    )
    yield from (f'<p class="wrong">{escape(line)}</p>' for line in wrong)
    yield waits
    yield "" if wrong else '<p class="good">Nothing needs a person.</p>'
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
        "dead letters": f"{report['dead_letters']:,}",
        "last batch": f"{batch['records']:,} → {batch['documents']:,}" if batch else "none",
    }
    return (
        '<div class="tiles">' + "".join(f"<div>{name}<b>{value}</b></div>" for name, value in tiles.items()) + "</div>"
    )


def _latency(counts: Mapping[str, int]) -> str:
    found = read_freshness(counts)
    return ", ".join(age_text(found, share) for share in (0.5, 0.99)) if found.count else "none"


def _topics(report: Mapping[str, Any], values: Mapping[str, Values | Histogram]) -> str:
    events, rows = _of(values, "events_total"), []
    outcomes = ("applied", "superseded", "ignored", "dead_letter")
    for topic in sorted({topic for topic, _ in events}):
        behind = lag_text(report, topic) if topic in report["topics"] else "not read"
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
    named = {
        "walks": "walks",
        "waiting_products": "waiting products",
        "paused_topics": "paused topics",
    }
    for name, title in named.items():
        if report[name]:
            yield f"{title}: {', '.join(report[name])}"
    yield from gate_lines(report)
    for topic in report["missing_topics"]:
        yield f"topic {topic}: {missing_text(report, topic)}"
    if report["last_dead_letter"]:
        yield f"the last dead letter: {report['last_dead_letter']}"


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

"""The five voices of a job: the verb `status`, the health endpoint, the overview of the console, the alerts of Prometheus,
and the log. Each reading has a colour and the words that a person would see.

green   nothing is to be done
amber   something lasts or waits: a person may look
red     a person must act
silent  the voice gives no answer, and so calms nobody
"""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Literal

from infra.metric_files import RULES
from processor.environment.programs.program import LOOPBACK, free_port
from tests.night.night_job import Night, wait_until
from tests.outages.watched_job import STATESTORE

Colour = Literal["green", "amber", "red", "silent"]
VOICES = ("status", "health", "console", "alerts", "log")
RULES_FILE = Path(__file__).parents[2] / RULES
READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a voice says. `words`: those that a person sees first; `text`: all of them."""

    colour: Colour
    words: str
    text: str = ""

    @property
    def whole(self) -> str:
        return self.text or self.words


def read_status(night: Night) -> Reading:
    """Gives the verb."""
    done = night.run_verb("status", seconds=READ_SECONDS)
    lines = [line.strip() for line in done.stdout.splitlines()]
    for mark, colour in STATUS_MARKS:
        if found := [line for line in lines if re.match(mark, line)]:
            return Reading(colour=colour, words="; ".join(found), text=done.stdout)
    if done.returncode:
        return Reading(colour="silent", words=done.stderr.strip(), text=done.stdout + done.stderr)
    paused = [line for line in lines if "paused" in line]
    return Reading(colour="green", words="; ".join([*lines[:1], *paused]), text=done.stdout)


STATUS_MARKS: tuple[tuple[str, Colour], ...] = (
    ("wrong:", "red"),
    ("degraded:", "amber"),
    (r"[\d,]+ dead letters? waits?", "amber"),
)
"""How a line of `status` begins, and its colour: the first that is found decides."""


def read_health(night: Night) -> Reading:
    """Asks the health endpoint of the job."""
    status, text = fetch(f"http://{LOOPBACK}:{night.job.port}/health")
    if not status:
        return Reading(colour="silent", words="no answer", text=text)
    colour: Colour = "red" if status >= 500 else "green" if text.strip() == "ok" else "amber"
    return Reading(colour=colour, words=f"{status} {text.strip()}")


def read_console(address: str) -> Reading:
    """Opens the overview as a new visitor does."""
    return read_page(*fetch(address))


def read_page(status: int, page: str) -> Reading:
    """Reads a page by its worst line. Status 0: no answer came."""
    if not status:
        return Reading(colour="silent", words=f"no answer: {page}")
    lines = {name: _lines_of(page, name) for name, _ in PAGE_COLOURS}
    text = plain_text(page)
    if status >= 500:
        return Reading(colour="silent", words=f"{status} {'; '.join(lines['wrong'])}", text=text)
    for name, colour in PAGE_COLOURS:
        if lines[name]:
            return Reading(colour=colour, words="; ".join(lines[name]), text=text)
    return Reading(colour="amber", words=text[:200], text=text)


PAGE_COLOURS: tuple[tuple[str, Colour], ...] = (
    *(("wrong", "red"), ("look-bad", "red")),
    *(("fair", "amber"), ("good", "green"), ("look-fair", "amber")),
)
"""The classes of the console's lines and tiles, with their colours: the first that is found decides."""


def _lines_of(page: str, name: str) -> list[str]:
    """The texts of the lines and tiles of a class."""
    mark = rf'<(p|li|div|span|a)\b[^>]*class="(?:[^"]*\s)?{name}(?:\s[^"]*)?"[^>]*>(.*?)</\1>'
    found = re.findall(mark, page, re.DOTALL)
    return [plain_text(text) for _, text in found]


def plain_text(page: str) -> str:
    """The text of a page, without its marks."""
    body = re.sub(r"<(script|style|head)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def read_log(night: Night, since: float) -> Reading:
    """Reads the log since this moment. A failure is red, a warning is amber, and so is a part that is away since before."""
    lines = [line for line in list(night.job.lines) if line.at >= since]
    text = "\n".join(line.text for line in lines)
    last = next((line for line in reversed(lines) if line.event not in ("status", "batch")), None)
    if not night.job.alive():
        if last and (last.level == "error" or (night.job.statuses and night.job.statuses[-1] > 0)):
            said = [line.text for line in lines if line.level in ("error", "text")]
            return Reading(colour="red", words=" ".join(said[-3:]) or last.text, text=text)
        return Reading(colour="silent", words=f"its last line: {last.text}" if last else "no line", text=text)
    open_: dict[str, str] = {}
    for line in list(night.job.lines):
        if line.event == "start":
            open_ = {name: said for name, said in open_.items() if not name.startswith("degraded")}
        elif line.event == "recovered":
            open_.pop(f"degraded {line.part}", None)
        elif line.event == "degraded":
            open_[f"degraded {line.part}"] = line.text
        elif line.level in ("error", "warning") and line.at >= since:
            open_["error" if line.level == "error" else line.event] = line.text
    if open_:
        return Reading(colour="red" if "error" in open_ else "amber", words="; ".join(open_.values()), text=text)
    return Reading(colour="green", words=lines[-1].text if lines else "no line", text=text)


def fetch(address: str) -> tuple[int, str]:
    """The status and the text of an answer; 0 where none came."""
    try:
        with urllib.request.urlopen(address, timeout=READ_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


SCALE = 10
"""The windows and limits of the rules in seconds are this much shorter than those that ship."""
RESTART_SCALE = 3
"""That of the windows which count restarts: a start of the job takes as long as in a real night."""


def scaled_rules() -> str:
    """The rules that ship, with shorter times."""
    text = RULES_FILE.read_text(encoding="utf-8")

    def shorter(found: re.Match[str]) -> str:
        minutes, factor = int(found[2]), RESTART_SCALE if found[2] == "10" else SCALE
        return f"{found[1]}{minutes * 60 // factor}s"

    text = re.sub(r"(\[|for: |offset )(\d+)m", shorter, text)
    limits = r"((?:seconds\)|seconds\[\d+s\]\)\)) > )(\d+)"
    return re.sub(limits, lambda found: f"{found[1]}{max(2 * 6, int(found[2]) // SCALE)}", text)


class Prometheus:
    """A Prometheus that reads the metrics of a job every second. `api`: its address."""

    def __init__(self, api: str, targets: Path) -> None:
        self.api, self._targets = api, targets

    def aim(self, port: int) -> None:
        """Makes it read the metrics at this port only."""
        self._targets.write_text(json.dumps([{"targets": [f"{LOOPBACK}:{port}"]}]))

    def read(self) -> Reading:
        """The alerts. One that waits for its time is amber."""
        status, text = fetch(f"{self.api}/alerts")
        if status != 200:
            return Reading(colour="silent", words=f"no answer: {text}")
        alerts = json.loads(text)["data"]["alerts"]
        said = [_alert_text(one) for one in alerts]
        firing = {one["labels"]["severity"] for one in alerts if one["state"] == "firing"}
        colour: Colour = "red" if "critical" in firing else "amber" if said else "green"
        return Reading(colour=colour, words="; ".join(sorted(said)) or "no alert")


def _alert_text(alert: Any) -> str:
    return f"{alert['labels']['alertname']} ({alert['labels']['severity']}, {alert['state']})"


@contextmanager
def prometheus(program: str, folder: Path) -> Iterator[Prometheus]:
    """Runs a Prometheus with the shorter rules, in a new folder."""
    folder.mkdir()
    rules, targets, port = folder / "alerts.yaml", folder / "targets.json", free_port()
    rules.write_text(scaled_rules(), encoding="utf-8")
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "statestore-night", "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}
        ],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    flags = {"config.file": folder / "prometheus.yaml", "storage.tsdb.path": folder / "data"}
    words = [program, *(f"--{name}={value}" for name, value in flags.items())]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*words, f"--web.listen-address={LOOPBACK}:{port}"], stderr=log)
    try:
        found = Prometheus(f"http://{LOOPBACK}:{port}/api/v1", targets)
        wait_until(lambda: fetch(f"{found.api}/alerts")[0] == 200, 60, f"Prometheus does not answer: {folder / 'log'}")
        yield found
    finally:
        process.kill()
        process.wait()


@contextmanager
def console(night: Night) -> Iterator[str]:
    """Runs the console of a job. Yields the address of its overview."""
    port = free_port()
    words = [STATESTORE, "console", "--settings", str(night.file), "--port", str(port)]
    with (night.folder / "console.log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    address = f"http://{LOOPBACK}:{port}/"
    try:
        wait_until(lambda: fetch(address)[0] != 0, 60, f"the console does not answer: {night.folder / 'console.log'}")
        yield address
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


class OpenPage:
    """The overview in a browser, open since the begin of the event: it asks again by itself."""

    def __init__(self, page: Any, address: str) -> None:
        self._page = page
        page.goto(address)

    def read(self) -> Reading:
        """What the page shows now."""
        found = self._page.evaluate(SHOWN, [name for name, _ in PAGE_COLOURS])
        if found["lost"]:
            return Reading(colour="silent", words=found["lost"])
        for name, colour in PAGE_COLOURS:
            if texts := found["texts"][name]:
                return Reading(colour=colour, words="; ".join(texts))
        return Reading(colour="amber", words="")


SHOWN = """(names) => {
  const texts = (name) => [...document.querySelectorAll(`main .${name}, #live .${name}`)].map((one) => one.innerText);
  const lost = document.getElementById("lost");
  return {texts: Object.fromEntries(names.map((name) => [name, texts(name)])), lost: lost && !lost.hidden ? lost.innerText : ""};
}"""


def shown_to_people(visited: Reading, open_page: Reading) -> Reading:
    """The console's reading: that of a new visit, unless a page that is open since before still calms or alarms."""
    if open_page.colour in ("silent", "amber", visited.colour):
        return visited
    return Reading(colour=open_page.colour, words=f"a page that is open: {open_page.words}", text=visited.whole)

"""The events of the night. Each is one small function: it causes the event, and yields its moments with the verdict that a person
needs. It ends with the job well again.

`act` of a moment says whether a person must act then. `words` name the cure: the voices that speak in words must have them.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep, time
from typing import Literal

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from processor.environment.programs.program import free_port
from tests.night.night_job import START_SECONDS, JobProcess, Night, wait_until
from tests.outages.outage_parts import Server

Act = Literal["yes", "no", "well"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment. `act`: yes, no voice may be green; no, no voice may be red; well, all voices are green. `lasts`: the voices are
    read until it is false, and each reading counts; without it they are read until they agree, for `within` seconds at most."""

    name: str
    act: Act
    words: tuple[str, ...] = ()
    within: float = 120.0
    lasts: Callable[[], bool] | None = None


Moments = Iterator[Moment]
WELL = Moment(name="well again", act="well", within=240.0)


class Lacking(Exception):
    """This machine lacks what the event needs. The text names the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightEvent:
    """An event. `play`: causes it, and yields its moments; `prepare`: what must be so before the job starts; `scaled`: what is
    shorter than in its name."""

    play: Callable[[Night], Moments]
    prepare: Callable[[Night], None] = lambda _: None
    scaled: str = ""


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Whether less than these seconds have passed since now."""
    end = monotonic() + seconds
    return lambda: monotonic() < end


# Parts that do not answer


def _away(server: Callable[[Night], Server], seconds: float) -> Callable[[Night], Moments]:
    """A server that dies, and starts again before a person should act."""

    def play(night: Night) -> Moments:
        server(night).fail("crash")
        yield Moment(name="away", act="no", lasts=for_seconds(seconds))
        server(night).repair()
        yield WELL

    return play


def _long_away(server: Callable[[Night], Server], seconds: float, cure: str) -> Callable[[Night], Moments]:
    """A server that dies, and that a person must start."""

    def play(night: Night) -> Moments:
        server(night).fail("crash")
        lasts = for_seconds(seconds)
        yield Moment(name="away", act="yes", words=(cure,), within=60)
        while lasts():
            sleep(1)
        yield Moment(name="at the end", act="yes", words=(cure,), within=30)
        server(night).repair()
        if not night.job.alive():  # it gave up
            night.start_again()
        yield WELL

    return play


def _postgres(night: Night) -> Server:
    return night.postgres


def _broker(night: Night) -> Server:
    return night.broker


# Ends of the job


def killed(night: Night) -> Moments:
    night.job.kill()
    yield Moment(name="killed", act="yes", words=("start it again",))
    night.start_again("--take-over")
    yield WELL


def stopped(night: Night) -> Moments:
    night.job.stop()
    yield Moment(name="stopped", act="no", within=20)
    sleep(HOUR)
    yield Moment(name="an hour later, the topics fill", act="yes", words=("start",))
    night.start_again()
    yield WELL


HOUR = 60.0
"""Seconds of the hour in which the topics fill: enough for the alerts with shorter times."""


def crash_loop(night: Night) -> Moments:
    night.job.again = True
    night.source.burst(1_000, 0.7)
    wait_until(lambda: len(night.job.statuses) >= 3, 3 * START_SECONDS, "the job does not fail again and again")
    yield Moment(name="three runs failed", act="yes", words=("runs failed",), within=200)
    waits = for_seconds(40)
    yield Moment(name="in the loop, between ends and starts", act="yes", words=("runs failed",), lasts=waits)
    night.job.again = False
    night.job.stop()
    night.job.environment["STATESTORE_MAX_REJECT_SHARE"] = "1"
    night.start_again()
    yield Moment(name="a higher limit, the letters wait", act="no", words=("dead letter",))
    yield from _dropped(night)


# Records that break their contract


def poison_few(night: Night) -> Moments:
    night.source.rate, night.source.bad = 50, 0.01
    yield Moment(name="1 % are bad", act="no", words=("dead letter",))
    night.source.rate, night.source.bad = 4, 0.0
    yield from _dropped(night)


def poison_slow(night: Night) -> Moments:
    night.source.bad = 0.7
    yield Moment(name="70 % are bad, 4 a second", act="yes", words=(f"{night.name}.user",), within=240)
    yield Moment(name="the share is above its limit", act="yes", words=("max_reject_share",), within=240)
    night.source.bad = 0.0
    yield from _started_after_poison(night)


def poison_burst(night: Night) -> Moments:
    night.source.rate, night.source.bad = 60, 0.7
    sleep(40)
    night.source.rate, night.source.bad = 4, 0.0
    yield Moment(name="70 % were bad, 60 a second for 40 s", act="yes", words=(f"{night.name}.user",))
    yield from _started_after_poison(night)


def _started_after_poison(night: Night) -> Moments:
    if not night.job.alive():
        night.job.environment["STATESTORE_MAX_REJECT_SHARE"] = "1"
        night.start_again()
    yield from _dropped(night)


def _dropped(night: Night) -> Moments:
    """The end of an event with dead letters: a person gives them up, once the job has read all bad records."""
    sent = night.ends()
    wait_until(lambda: _has_read(night, sent), START_SECONDS, "the job does not catch up")
    night.give("dead-letters", "drop", "--why", "the producer was wrong")
    yield WELL


def _has_read(night: Night, ends: Mapping[str, int]) -> bool:
    positions = night.positions()
    return all(positions.get(partition, 0) >= end for partition, end in ends.items())


# Pauses


def topic_paused(night: Night) -> Moments:
    topic = night.topic("star")
    night.give("pause", "--topic", topic, "--why", "its producer writes nonsense")
    yield Moment(name="paused", act="no", words=("its producer writes nonsense",), within=30)
    yield Moment(name="near its retention", act="yes", words=(f"resume --topic {topic}",), within=150)
    night.give("resume", "--topic", topic, "--why", "the producer is right again")
    yield WELL


RETENTION_SECONDS = 90


def _short_retention(night: Night) -> None:
    entry = ConfigEntry("retention.ms", str(RETENTION_SECONDS * 1_000), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, night.topic("star"), incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": night.broker.endpoint})
    for future in client.incremental_alter_configs([resource]).values():
        future.result()


def product_paused(night: Night) -> Moments:
    night.give("pause", "people", "--why", "a consumer moves")
    yield Moment(name="paused", act="no", words=("a consumer moves",), within=60)
    night.give("resume", "people", "--why", "it has moved")
    yield WELL


# Lost and wrong state


def registry_dropped(night: Night) -> Moments:
    night.execute(f'DROP SCHEMA "{night.name}" CASCADE')
    yield Moment(name="dropped", act="yes", words=("rebuild-registry",))
    night.job.kill()
    night.give("rebuild-registry", "--definitions", str(night.definitions), "--registry-is-lost")
    checkpoint = str(night.folder / "checkpoint-after-rebuild")
    night.start_again("--checkpoint", checkpoint)
    yield WELL


def table_restored(night: Night) -> Moments:
    schema = f"state_{night.name}"
    tables = ("items", "fences")
    night.execute(*(f'CREATE TABLE "{schema}"."{name}_before" AS TABLE "{schema}"."{name}"' for name in tables))
    before = _batches(night)
    wait_until(lambda: _batches(night) > before + 3, START_SECONDS, "the job does not work")
    night.job.stop()
    night.execute(
        *(f'TRUNCATE "{schema}"."{name}"' for name in tables),
        *(f'INSERT INTO "{schema}"."{name}" SELECT * FROM "{schema}"."{name}_before"' for name in tables),
        *(f'DROP TABLE "{schema}"."{name}_before"' for name in tables),
    )
    night.job.start()
    yield Moment(name="the job starts over an older table", act="yes", words=("--adopt",))
    night.job.kill()
    night.start_again("--adopt", "--checkpoint", str(night.folder / "checkpoint-after-restore"))
    yield WELL


def _batches(night: Night) -> int:
    """How many batches the checkpoints of the job have committed, less those that Spark has cleaned up."""
    return max((int(one.name) for one in night.folder.rglob("commits/*") if one.name.isdigit()), default=0)


def second_job(night: Night) -> Moments:
    second = JobProcess(arguments=night.job.arguments, port=free_port(), file=night.folder / "second.log")
    second.start()
    yield Moment(name="a second run starts", act="no", lasts=second.alive)
    said = " ".join(line.text for line in second.lines)
    if "--take-over" not in said:
        raise AssertionError(f"the second run does not name its cure: {said}")
    first, night.job = night.job, second
    began = time()
    second.start("--take-over")
    wait_until(
        lambda: second.said("open", began) and not first.alive(), START_SECONDS, "the second run does not take over"
    )
    yield Moment(name="the second run took over", act="well")


# The machine


def clock_back(night: Night) -> Moments:
    _set_clock(night, -30)
    yield Moment(name="30 s back", act="no", lasts=for_seconds(45))
    yield WELL


def _false_clock(night: Night) -> None:
    """Gives the job, and only the job, a time of day that the event sets. Its steady clock stays."""
    if (compiler := shutil.which("cc")) is None:
        raise Lacking("no program `cc` on the path: `apt-get install gcc libc6-dev`")
    source, library = Path(__file__).with_name("clock.c"), night.folder / "clock.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    _set_clock(night, 0)
    night.job.environment |= {"LD_PRELOAD": str(library), "NIGHT_CLOCK": str(night.folder / "clock")}


def _set_clock(night: Night, seconds: int) -> None:
    with (night.folder / "clock").open("r+b" if seconds else "wb") as file:
        file.write(struct.pack("q", seconds))


def disk_full(night: Night) -> Moments:
    checkpoint = Path(night.settings.checkpoint)
    filler = checkpoint / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4_096):
            pass
    yield Moment(name="full", act="yes", words=("the disk of --checkpoint",))
    filler.unlink()
    if not night.job.alive():
        night.start_again()
    yield WELL


def _small_disk(night: Night) -> None:
    """Puts the checkpoint onto a disk of its own."""
    folder = Path(night.settings.checkpoint)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        raise Lacking("only root can mount a small disk: run the scene as root, or in a container that may mount")
    night.at_end.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)


EVENTS: dict[str, NightEvent] = {
    "Postgres away 5 s": NightEvent(play=_away(_postgres, 5)),
    "Postgres away 20 s": NightEvent(play=_away(_postgres, 20)),
    "Postgres away 10 min": NightEvent(play=_long_away(_postgres, 60, "start that Postgres"), scaled="60 s"),
    "broker away 60 s": NightEvent(play=_away(_broker, 25), scaled="25 s"),
    "broker away 10 min": NightEvent(play=_long_away(_broker, 60, "start the broker"), scaled="60 s"),
    "kill -9": NightEvent(play=killed),
    "SIGTERM and an hour of filling topics": NightEvent(play=stopped, scaled=f"{HOUR:.0f} s"),
    "poison at 1 %": NightEvent(play=poison_few),
    "poison at 70 %, slow": NightEvent(play=poison_slow),
    "poison at 70 %, a burst": NightEvent(play=poison_burst),
    "crash loop": NightEvent(play=crash_loop),
    "topic paused to its retention": NightEvent(
        play=topic_paused, prepare=_short_retention, scaled=f"the retention is {RETENTION_SECONDS} s"
    ),
    "product paused": NightEvent(play=product_paused),
    "registry dropped": NightEvent(play=registry_dropped),
    "table restored": NightEvent(play=table_restored),
    "second job": NightEvent(play=second_job),
    "clock set back 30 s": NightEvent(play=clock_back, prepare=_false_clock),
    "disk of the checkpoint full": NightEvent(play=disk_full, prepare=_small_disk),
}

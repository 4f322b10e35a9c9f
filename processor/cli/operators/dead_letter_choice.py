"""The flags that choose dead letters, for all actions of `statestore rejects`."""

import argparse
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from processor.cli.arguments import natural
from processor.errors import SettingError
from processor.values.reasons import REASONS

if TYPE_CHECKING:
    from processor.values.dead_letters import DeadLetter


class Position(NamedTuple):
    """The place of a dead letter's record. `epoch`: None for each."""

    topic: str
    partition: int
    offset: int
    epoch: int | None


_POSITION = re.compile(r"([^\s/]+)/(\d{1,9})(?:/| offset )(\d{1,18})(?:(?:/| epoch )(\d{1,18}))?:?", re.ASCII)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `is_chosen` reads."""
    parser.add_argument(
        "position",
        metavar="POSITION",
        nargs="*",
        help="these dead letters: user/0/17, or `user/0 offset 17` as `list` and the log print it",
    )
    choice = parser.add_argument_group("selection of dead letters (default: all)")
    choice.add_argument("--topic", metavar="T", help="those of this topic")
    choice.add_argument("--partition", metavar="P", type=natural, help="those of this partition")
    choice.add_argument(
        "--offsets", metavar="A-B", type=offset_range, help="those from offset A to B, both included; or of one offset"
    )
    choice.add_argument("--code", choices=tuple(REASONS), metavar="CODE", help="those whose reason has this code")
    choice.add_argument("--reason", metavar="TEXT", help="those whose reason contains this text")
    choice.add_argument("--entity", metavar="ENTITY", help="those whose letter names this entity")
    choice.add_argument(
        "--since", metavar="TIME", type=moment, help="those first seen at this time or later: 2026-11-22T17:30 (UTC)"
    )
    choice.add_argument("--until", metavar="TIME", type=moment, help="those first seen before this time")


def is_chosen(options: argparse.Namespace, letter: "DeadLetter") -> bool:
    """Whether the positions and the flags select this dead letter. Raises SettingError for a text that is no position."""
    rejected = letter.rejected
    record = rejected.record
    wanted = positions(options.position)
    return (
        (not wanted or any(is_at(one, letter) for one in wanted))
        and (options.topic is None or record.topic == options.topic)
        and (options.partition is None or record.partition == options.partition)
        and (options.offsets is None or record.offset in options.offsets)
        and (options.code is None or rejected.code == options.code)
        and (options.reason is None or options.reason in rejected.reason)
        and (options.entity is None or rejected.entity == options.entity)
        and (options.since is None or letter.kept_since >= options.since)
        and (options.until is None or letter.kept_since < options.until)
    )


def offset_range(text: str) -> range:
    """The offsets of `17` or `17-30`. Raises ArgumentTypeError for other texts."""
    found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be an offset, or a range like 17-30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def moment(text: str) -> float:
    """The seconds since 1970 of a date or a time; without a zone in UTC. Raises ArgumentTypeError for other texts."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a date or a time like 2026-11-22T17:30, in UTC or with a zone"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def positions(words: Iterable[str]) -> list[Position]:
    """The positions in the words of a command line: `user/0/17`, or `user/0 offset 17 epoch 1` as `list` prints it. Raises
    SettingError for other words."""
    text, found = " ".join(words), list[Position]()
    while text:
        one = _POSITION.match(text)
        if one is None or text[one.end() :][:1].strip():
            raise SettingError(f"{text!r} is not a position: give TOPIC/PARTITION/OFFSET, such as user/0/17")
        found.append(Position(one[1], int(one[2]), int(one[3]), None if one[4] is None else int(one[4])))
        text = text[one.end() :].strip()
    return found


def is_at(wanted: Position, letter: "DeadLetter") -> bool:
    """Whether the record of the letter is at this position; of any epoch, where the position names none."""
    record = letter.rejected.record
    epoch = record.epoch if wanted.epoch is None else wanted.epoch
    return (record.topic, record.partition, record.offset, record.epoch) == (*wanted[:3], epoch)

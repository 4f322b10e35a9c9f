"""Tables in Markdown, for the reports of benchmarks, and the machine that they name."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine_name() -> str:
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), {memory:.0f} GiB"


def min_median_max(values: Sequence[float], form: str) -> tuple[str, ...]:
    return tuple(format(value, form) for value in (min(values), median(values), max(values)))

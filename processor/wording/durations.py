"""Durations, as people read them. Pure."""

MINUTE, HOUR, DAY, YEAR = 60, 3_600, 86_400, 31_557_600
UNITS = ((YEAR, "years"), (DAY, "days"), (HOUR, "h"), (MINUTE, "min"))


def duration_text(seconds: float) -> str:
    """A duration in its largest unit, with the next one below it where that is not 0: `0.3 s`, `42 s`, `2 min 5 s`, `3 h`,
    `1 day 4 h`, `11 years`. Years alone have no second unit. A negative duration is `0 s`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole >= YEAR:
        return _counted(whole // YEAR, "years")
    sizes = [*(size for size, _ in UNITS), 1]
    names = [*(name for _, name in UNITS), "s"]
    first = next(i for i, size in enumerate(sizes) if whole >= size)
    rest = whole % sizes[first] // sizes[first + 1]
    text = _counted(whole // sizes[first], names[first])
    return f"{text} {_counted(rest, names[first + 1])}" if rest else text


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name.removesuffix('s') if count == 1 and name in ('days', 'years') else name}"

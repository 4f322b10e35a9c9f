"""PostgreSQL's regular expressions, without its back references: `~`, `~*` and `regexp_replace`. Pure.

A pattern is read into a machine of states (Thompson). A search follows all states at once, so its time grows with the text, and
never with a power of it as by Python's `re`. As in PostgreSQL, the match is the first one, and of those the longest one.

In a replacement, `\\&` is the match, and `\\1` the part in the first parentheses: these parentheses are then at the top of the
pattern, without a quantifier of their own. Each part takes the longest text with which the others still match.

Refused with a reason: back references, look-ahead, reluctant quantifiers (`*?`), and words by locale (`\\y`, `[[.x.]]`).
Letters and spaces are those of Unicode 16, as in PostgreSQL 18 with its own provider. Captured from PostgreSQL 18.4, 2026-11-27.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from processor.language.product.expressions.functions import LONGEST, lower, upper

_MAX_REPEATS: Final = 255
"""PostgreSQL's bound of `{n}`."""
_MAX_STATES: Final = 5_000
_MAX_FOLDED: Final = 3_000
"""The most characters of a range in a pattern without upper and lower case."""
_MAX_KEPT: Final = 10_000
"""The most steps of a search that a pattern remembers."""

_MORE_LETTERS: Final = (
    "n9 u.c g1.d 2 2.1 2.1 2 21.a 1d.c 2.6 h 2u.6 5.3 3.1 5 10 v.f 2v.a 2u.1 4.8 2.2 2.3 2z 1p.b 4.6 7.j 1j.1 3.e "
    "2.1 6.2 b.1 u.2 1n.6 3.1 3.1 b b.1 u.2 1n.4 5.1 3.1 5 v.1 4 c.2 1n.7 2.2 2.1 m.1 n.2 5.2 1n.6 3.1 3.1 a.1 b.1 "
    "v 1o.4 4.2 2.2 b 15.4 1m.6 2.2 2.2 9.1 c.1 u.2 1n.6 2.2 2.2 9.1 c.1 g d.3 1n.6 2.2 2.2 b b.1 u.2 24.5 2 2.7 "
    "j.1 1q 3.6 j 2s 3.5 2.1 h 4k.i a.a 2.z 33.b 2 3.3 o.3 5.2 2.2 3.6 4.3 e.b 2 b.3 18x.2 y.1 v.1 v.1 v.1 1v.i "
    "59.1 z 3b.b 5.8 67.4 1m.9 3.j 23.1 c.2 1e.4 1d.e 1p.2 v.8 3.1 1m.a 1f.i 2b.1 95.x oc.y 3.3 mm.1f 1rr.v eg q.8 "
    "f.2 ncq.7 z.1 1z.9 64.2 d.2 12 9 o.4 2h.1 1f.f 2 1m 13.4 t.b 1a.3 1d.b 12 1w.d d 9.1 1a.2 1f 2.2 3.1 6 19.4 6 "
    "6m.7 fn8 17m.1g ct 9 18.4 2f.4 dn.1f su.2 2.1 6.3 lx.3 z.r 4 6.m 86.1 m.2 1k 78.2 1i.d 1a.1 c.2 1a.8 a 1q.2 "
    "11.b j.1 1m.2 1d.c f.1 2l.8 3 7.3 4e.9 o.3 1n.6 3.1 3.1 b b.1 t.9 2 3 2.11 2.9 2 3 2.3 2.1 4 2 2q.c 2.2 2z.h "
    "6m.6 3.6 u.1 2b.e 2 2z.a 2w.d 76.c 6w.5 2.1 3.1 4 2 3z.6 3.5 5 t.9 17.4 2.3 j.a 1b.d 89.w 27.7 2.6 2c.l 2.d "
    "3f.5 4 2.1 2.2 2 4 1v.4 2.1 2.3 9p.3 a.g 2.14 4.2 xs.32 341 i.5 q.32y 5qe.1a 2du.18 df 2.1i 8.3 2m.1 5qm 75f z "
    "289 6tj.5 5y.6 2.g 3.6 2.1 2.4 6.1p y u9.r 6d.t 3 nr 1k9.p 7.p 7.p 131s aev.h9 7ar.38f "
)
"""The letters of Unicode 16 that Python 3.11 does not count as such: marks of vowels, numerals, newer letters. Each range is the
distance from the end of the range before it, and its length without one, to base 36."""


def _more_letters() -> Iterator[str]:
    at = 0
    for part in _MORE_LETTERS.split():
        distance, _, length = part.partition(".")
        start = at + int(distance, 36)
        at = start + int(length or "0", 36)
        yield from map(chr, range(start, at + 1))


_LETTERS: Final = frozenset(_more_letters())
_SPACES: Final = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)


def is_letter(character: str) -> bool:
    return character.isalpha() or character in _LETTERS


def is_digit(character: str) -> bool:
    return "0" <= character <= "9"


def is_word(character: str) -> bool:
    """Whether the character is a part of a word."""
    return is_letter(character) or is_digit(character)


def initcap(text: str) -> str:
    """Each word with a capital at its start. A word has letters and digits."""
    made, inside = [], False
    for character in text:
        made.append(lower(character) if inside else upper(character))
        inside = is_word(character)
    return "".join(made)


_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "alpha": is_letter,
    "digit": is_digit,
    "alnum": is_word,
    "space": lambda c: c in _SPACES,
    "blank": lambda c: c in (" ", "\t"),
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
    "word": lambda c: is_word(c) or c == "_",
}
_SHORT: Final = {"d": "digit", "w": "word", "s": "space"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}


class WrongPattern(ValueError):
    """A pattern that PostgreSQL refuses, or that is not offered."""


class Characters(NamedTuple):
    """A test of one character: one of `single`, in a range, or of a class; all others where `negated`."""

    single: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, bool], ...] = ()
    negated: bool = False

    def holds(self, character: str) -> bool:
        found = (
            character in self.single
            or any(low <= character <= high for low, high in self.ranges)
            or any(_CLASSES[name](character) is wanted for name, wanted in self.classes)
        )
        return found is not self.negated


class Repeat(NamedTuple):
    """A part, from `least` to `most` times; without a bound where `most` is None."""

    part: "Part"
    least: int
    most: int | None


class Series(NamedTuple):
    """Parts one after the other."""

    parts: tuple["Part", ...]


class Choice(NamedTuple):
    """One of several parts."""

    parts: tuple["Part", ...]


class Group(NamedTuple):
    """Parentheses whose text a replacement can name."""

    part: "Part"
    number: int


class Anchor(NamedTuple):
    """The start or the end of the text."""

    at_start: bool


Part = Characters | Repeat | Series | Choice | Group | Anchor


class _PatternReader:
    """Reads the text of a pattern. `folds`: upper and lower case are one."""

    def __init__(self, text: str, folds: bool) -> None:
        self._text, self._at, self._folds, self._groups = text, 0, folds, 0

    def read(self) -> Part:
        if self._text.startswith(("***", "(?")) and not self._text.startswith("(?:"):
            raise WrongPattern("options at its beginning are not offered")
        part = self._choice()
        if self._at < len(self._text):
            raise WrongPattern("it has a `)` without its `(`")
        return part

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        sign = self._peek()
        if not sign:
            raise WrongPattern("it ends too early")
        self._at += 1
        return sign

    def _takes(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _choice(self) -> Part:
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Series(tuple(parts))

    def _repeated(self) -> Part:
        part, sign = self._atom(), self._peek()
        bounds = self._bounds()
        if bounds is None:
            return part
        if isinstance(part, Anchor):
            raise WrongPattern(f"`{sign}` has nothing to repeat")
        if self._peek() == "?":
            raise WrongPattern(f"the reluctant `{sign}?` is not offered")
        if self._peek() in ("*", "+") or (self._peek() == "{" and self._counts()):
            raise WrongPattern("it has two quantifiers in a row")
        return Repeat(part, *bounds)

    def _counts(self) -> bool:
        return is_digit(self._text[self._at + 1 : self._at + 2] or " ")

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._takes(sign):
                return bounds
        if self._peek() != "{" or not self._counts():
            return None
        found = re.compile(r"\{([0-9]{1,3})(,([0-9]{1,3})?)?\}").match(self._text, self._at)
        if found is None:
            raise WrongPattern("its `{` has no count")
        self._at = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > _MAX_REPEATS or (most is not None and most < least):
            raise WrongPattern(f"`{found[0]}` is no count of at most {_MAX_REPEATS}")
        return least, most

    def _atom(self) -> Part:
        sign = self._take()
        if sign == "(":
            return self._parentheses()
        if sign == "[":
            return self._bracket()
        if sign == "\\":
            return self._escape()
        if sign in "*+?" or (sign == "{" and is_digit(self._peek() or " ")):
            raise WrongPattern(f"`{sign}` has nothing to repeat")
        if sign in "^$":
            return Anchor(sign == "^")
        return Characters(negated=True) if sign == "." else self._single(sign)

    def _parentheses(self) -> Part:
        number = 0
        if not self._takes("?:"):
            if self._peek() == "?":
                raise WrongPattern("`(?` other than `(?:` is not offered")
            self._groups += 1
            number = self._groups
        part = self._choice()
        if not self._takes(")"):
            raise WrongPattern("it has a `(` without its `)`")
        return Group(part, number)

    def _escape(self) -> Part:
        sign = self._take()
        if sign.lower() in _SHORT:
            return Characters(classes=((_SHORT[sign.lower()], sign.islower()),))
        if sign in "AZ":
            return Anchor(sign == "A")
        return self._single(self._escaped(sign))

    def _escaped(self, sign: str) -> str:
        if sign in _ESCAPES:
            return _ESCAPES[sign]
        if sign.isascii() and sign.isalnum():
            raise WrongPattern(f"`\\{sign}` is not offered")
        return sign

    def _single(self, character: str) -> Characters:
        return Characters(single=self._cases([character]))

    def _cases(self, characters: Sequence[str]) -> frozenset[str]:
        if not self._folds:
            return frozenset(characters)
        return frozenset(case for c in characters for case in (c, lower(c), upper(c)))

    def _bracket(self) -> Characters:
        negated = self._takes("^")
        single: set[str] = set()
        ranges: list[tuple[str, str]] = []
        classes: list[tuple[str, bool]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if self._takes("[:"):
                classes.append((self._class(), True))
                continue
            if self._peek() == "\\" and self._text[self._at + 1 : self._at + 2] in ("d", "w", "s"):
                classes.append((_SHORT[self._text[self._at + 1]], True))
                self._at += 2
                continue
            low = self._element()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._element()
                if high < low:
                    raise WrongPattern(f"the range `{low}-{high}` is empty")
                if not self._folds:
                    ranges.append((low, high))
                elif ord(high) - ord(low) > _MAX_FOLDED:
                    raise WrongPattern(f"the range `{low}-{high}` is too wide without upper and lower case")
                else:
                    single |= self._cases([chr(n) for n in range(ord(low), ord(high) + 1)])
            else:
                single |= self._cases([low])
        self._at += 1
        return Characters(frozenset(single), tuple(ranges), tuple(classes), negated)

    def _class(self) -> str:
        end = self._text.find(":]", self._at)
        name = self._text[self._at : end] if end > 0 else ""
        if name not in _CLASSES:
            raise WrongPattern(f"the class `[:{name}:]` is not offered")
        self._at = end + 2
        return name

    def _element(self) -> str:
        sign = self._take()
        if sign == "[" and self._peek() in (".", "=", ":"):
            raise WrongPattern(f"`[{self._peek()}` is not offered")
        return self._escaped(self._take()) if sign == "\\" else sign


@dataclass(slots=True)
class _Machine:
    """A machine of states. `tests`: the state that a character leads to, by the state and its test; `free`: the states that a
    state leads to without a character, with the anchor that has to hold. State 0 is the last one."""

    tests: dict[int, tuple[Characters, int]] = field(default_factory=dict)
    free: dict[int, list[tuple[Anchor | None, int]]] = field(default_factory=dict)
    start: int = 0
    count: int = 1
    steps: dict[tuple[frozenset[int], str, bool], frozenset[int]] = field(default_factory=dict)

    def state(self) -> int:
        self.count += 1
        if self.count > _MAX_STATES:
            raise WrongPattern("it has too many repeats")
        return self.count - 1

    def add(self, part: Part, to: int) -> int:
        """Adds the states of a part, which lead to state `to`. Returns its first state."""
        match part:
            case Characters():
                at = self.state()
                self.tests[at] = part, to
                return at
            case Series(parts=parts):
                for one in reversed(parts):
                    to = self.add(one, to)
                return to
            case Choice(parts=parts):
                at = self.state()
                self.free[at] = [(None, self.add(one, to)) for one in parts]
                return at
            case Group(part=inner):
                return self.add(inner, to)
            case Anchor():
                at = self.state()
                self.free[at] = [(part, to)]
                return at
            case Repeat():
                return self._add_repeat(part, to)

    def _add_repeat(self, repeat: Repeat, to: int) -> int:
        if repeat.most is None:
            at = self.state()
            self.free[at] = [(None, to)]
            self.free[at].append((None, self.add(repeat.part, at)))
            to = at
        else:
            end = to
            for _ in range(repeat.most - repeat.least):
                at = self.state()
                self.free[at] = [(None, end), (None, self.add(repeat.part, to))]
                to = at
        for _ in range(repeat.least):
            to = self.add(repeat.part, to)
        return to

    def closed(self, states: frozenset[int], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """The states, and those that they lead to without a character."""
        found, open_ = set(states), list(states)
        while open_:
            for anchor, to in self.free.get(open_.pop(), ()):
                if to not in found and (anchor is None or (at_start if anchor.at_start else at_end)):
                    found.add(to)
                    open_.append(to)
        return frozenset(found)

    def step(self, states: frozenset[int], character: str, *, at_start: bool) -> frozenset[int]:
        """The states after one more character. `at_start`: it is the first one of the text."""
        key = states, character, at_start
        reached = self.steps.get(key)
        if reached is None:
            closed = self.closed(states, at_start=at_start, at_end=False)
            tests = [self.tests[state] for state in closed if state in self.tests]
            reached = frozenset(to for test, to in tests if test.holds(character))
            if len(self.steps) >= _MAX_KEPT:
                self.steps.clear()
            self.steps[key] = reached
        return reached

    def ends(self, states: frozenset[int], text: str, at: int) -> bool:
        """Whether a match can end here."""
        return 0 in states or 0 in self.closed(states, at_start=at == 0, at_end=at == len(text))

    def found(self, text: str) -> bool:
        """Whether the text has a match."""
        start = frozenset([self.start])
        states = start
        for at, character in enumerate(text):
            if self.ends(states, text, at):
                return True
            states = self.step(states, character, at_start=at == 0) | start
        return self.ends(states, text, len(text))

    def ends_of(self, text: str, at: int, stop: int) -> Iterator[int]:
        """The ends of all matches that begin here, the shortest first."""
        states = frozenset([self.start])
        while states:
            if self.ends(states, text, at):
                yield at
            if at == stop:
                return
            states = self.step(states, text[at], at_start=at == 0)
            at += 1


def _machine(part: Part) -> _Machine:
    machine = _Machine()
    machine.start = machine.add(part, 0)
    return machine


class Pattern:
    """A pattern. Raises WrongPattern for one that PostgreSQL refuses, or that is not offered."""

    def __init__(self, text: str, *, folds: bool = False) -> None:
        self.part = _PatternReader(text, folds).read()
        self._machine = _machine(self.part)
        self._parts = list(_top_parts(self.part))
        self._machines = [_machine(Series(tuple(one for _, one in self._parts[n:]))) for n in range(len(self._parts))]
        self._singles = [_machine(one) for _, one in self._parts]

    @property
    def groups(self) -> frozenset[int]:
        """The numbers of the parentheses that a replacement can name."""
        return frozenset(number for number, _ in self._parts if number)

    def found(self, text: str) -> bool:
        return self._machine.found(text)

    def match(self, text: str, start: int) -> tuple[int, int] | None:
        """The first match from `start`, and of those the longest one."""
        for at in range(start, len(text) + 1):
            end = max(self._machine.ends_of(text, at, len(text)), default=None)
            if end is not None:
                return at, end
        return None

    def group_texts(self, text: str, start: int, end: int) -> dict[int, str]:
        """The text of each group in this match. Each part takes the longest text with which the next ones reach the end."""
        found = {}
        for n, (number, _) in enumerate(self._parts):
            ends = sorted(self._singles[n].ends_of(text, start, end), reverse=True)
            rest = self._machines[n + 1 : n + 2]
            after = next(e for e in ends if (end in rest[0].ends_of(text, e, end) if rest else e == end))
            found[number] = text[start:after]
            start = after
        return found


def _top_parts(part: Part) -> Iterator[tuple[int, Part]]:
    """The parts of a pattern that its groups divide, each with the number of its group, or 0."""
    between: list[Part] = []
    for one in part.parts if isinstance(part, Series) else (part,):
        if isinstance(one, Group) and one.number:
            if between:
                yield 0, Series(tuple(between))
                between = []
            yield one.number, one.part
        else:
            between.append(one)
    if between:
        yield 0, Series(tuple(between))


@lru_cache(maxsize=1024)
def read_pattern(text: str, folds: bool = False) -> Pattern:
    """The pattern of this text. Raises WrongPattern."""
    return Pattern(text, folds=folds)


def matches(text: str, pattern: str) -> bool:
    """The operator `~`."""
    return read_pattern(pattern).found(text)


def matches_folded(text: str, pattern: str) -> bool:
    """The operator `~*`."""
    return read_pattern(pattern, True).found(text)


def check_replacement(pattern: str, replacement: str, flags: str) -> None:
    """Raises WrongPattern for a call of `regexp_replace` that is not offered."""
    if set(flags) - {"g", "i"}:
        raise WrongPattern(f"the flags `{flags}` are not offered")
    read = read_pattern(pattern, "i" in flags)
    for part in _replacement_parts(replacement):
        if isinstance(part, int) and part and part not in read.groups:
            raise WrongPattern(f"`\\{part}` names no parentheses at the top of the pattern, without a quantifier")


def regexp_replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    """The text with the first match replaced, or all matches by the flag `g`. Raises ValueError for a result beyond `LONGEST`."""
    read, parts = read_pattern(pattern, "i" in flags), _replacement_parts(replacement)
    made: list[str] = []
    at = size = 0
    search = 0
    while search <= len(text) and (found := read.match(text, search)) is not None:
        start, end = found
        groups = read.group_texts(text, start, end) if any(isinstance(p, int) and p for p in parts) else {}
        made.append(text[at:start])
        made += [p if isinstance(p, str) else groups[p] if p else text[start:end] for p in parts]
        size += sum(map(len, made[-len(parts) - 1 :]))
        if size > LONGEST:
            raise ValueError(f"regexp_replace would make a text of more than {LONGEST:,} characters")
        at, search = end, max(end, start + 1) if end == start else end
        if "g" not in flags:
            break
    return "".join([*made, text[at:]])


@lru_cache(maxsize=1024)
def _replacement_parts(replacement: str) -> tuple[str | int, ...]:
    """The parts of a replacement: text, the number of a group, or 0 for the whole match."""
    parts: list[str | int] = []
    for text, sign in re.findall(r"([^\\]+)|\\(.?)", replacement, re.DOTALL):
        if text:
            parts.append(text)
        elif sign == "&":
            parts.append(0)
        elif sign and sign in "123456789":
            parts.append(int(sign))
        else:
            parts.append("\\" if sign in ("", "\\") else f"\\{sign}")
    return tuple(parts)

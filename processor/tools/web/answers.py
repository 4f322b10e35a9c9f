"""An answer that is an error: problem details as RFC 9457 has them, without a traceback and without a secret.

The templates of pages, with Jinja2. They write each value escaped, so that no name is markup.

Reads that a page does not wait for: an answer that is kept for a while, and a question to a part that may be silent. A page gets
what is known, how old it is, and why nothing newer is known.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from processor.errors import Outage, PlanError, StatestoreError
from processor.text import visible
from registry.errors import RegistryError
from statestore.store import StoreError


class LookUpProblem(StatestoreError):
    """A request without the answer that it asks for. `status`: of HTTP; `more`: members of the problem details."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.more = status, more


def no_such(kind: str, name: str, known: Iterable[str]) -> LookUpProblem:
    """The problem of a name that nothing of this kind has."""
    return LookUpProblem(404, f"there is no {kind} `{name}`; there are {', '.join(sorted(known)) or 'none'}")


def problem_of(error: Exception) -> LookUpProblem:
    """The problem of an error. An unexpected error keeps its message to itself: it may show a value."""
    match error:
        case LookUpProblem():
            return error
        case RegistryError() | StoreError() | Outage():
            cure = "start the part again, or wait; this server continues by itself"
            return LookUpProblem(503, f"{error}; {cure}")
        case PlanError():
            return LookUpProblem(503, str(error))
        case StatestoreError():
            return LookUpProblem(400, str(error))
    return LookUpProblem(500, f"unexpected {type(error).__name__}: please report it")


RenderPage = Callable[..., str]
"""The text of the template with this name, and with these values."""


def open_templates(room: str = "processor.tools.web.catalogue", extra: str = "catalogue") -> RenderPage:
    """The function that renders the templates of a room, which extend those that all pages share. Raises StatestoreError where
    Jinja2 is not installed, and names the extra that brings it."""
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise StatestoreError(f"the pages need Jinja2: pip install 'statestore[{extra}]'") from None
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader("processor.tools.web")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["prose"] = _prose
    return lambda name, **values: templates.get_template(name).render(**values)


def _prose(text: str) -> Any:
    """A sentence, in which `words` that a person types are code."""
    from markupsafe import Markup, escape

    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # an odd sign of another meaning
        return Markup(escape("`".join(parts)))
    marked = (f"<code>{escape(one)}</code>" if number % 2 else str(escape(one)) for number, one in enumerate(parts))
    return Markup("".join(marked))


def _shown(value: Any) -> Any:
    """A text without characters that steer a terminal or turn the direction of writing; other values as they are, and markup,
    whose values went this way before."""
    return visible(value) if type(value) is str else value


K = TypeVar("K")
T = TypeVar("T")


class Recent(OrderedDict[K, T]):
    """The last entries of a mapping: a write makes its entry the last one, and the oldest entries go."""

    def __init__(self, most: int) -> None:
        """`most`: entries that stay."""
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: T) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


FIRST_WAIT: Final = 0.1
"""Seconds that a page waits for a refresh behind the pages."""


class Cached(Generic[T]):
    """The last answers of a slow read, by key. Threads share it. An error is not kept: the next look reads again."""

    def __init__(self, most: int = 1) -> None:
        """`most`: answers that it keeps; the oldest goes first."""
        self._kept = Recent[Hashable, tuple[float, T]](most)
        self._reading, self._starting = Lock(), Lock()
        self._thread: Thread | None = None
        self.last: tuple[float, T] | None = None
        """The last answer of any key and of any age, with its time."""

    def get(self, seconds: float, read: Callable[[], T], key: Hashable = None) -> T:
        """The answer, which is read again where the last read began `seconds` ago or earlier. Threads take turns. Errors as of
        the read."""
        with self._reading:
            now, kept = monotonic(), self._kept.get(key)
            if kept is None or now - kept[0] >= seconds:
                del kept
                if self._kept.pop(key, None):  # before the read: a process holds one large answer, not two
                    self.last = None
                self._keep(key, (now, read()))
            return self._kept[key][1]

    def put(self, value: T) -> None:
        """Keeps an answer of now."""
        with self._reading:
            self._keep(None, (monotonic(), value))

    def refresh(self, seconds: float, ask: Callable[[], object]) -> None:
        """Lets a thread `ask`, which calls `get` or `put`, where `last` is older than `seconds`; one thread at a time. Waits for
        it, but at most FIRST_WAIT."""
        with self._starting:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and (self.last is None or monotonic() - self.last[0] > seconds):
                self._thread = Thread(target=ask, name="refresh", daemon=True)
                self._thread.start()
        self.wait(FIRST_WAIT)

    def wait(self, seconds: float | None = None) -> None:
        """Waits for the end of a refresh."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _keep(self, key: Hashable, answer: tuple[float, T]) -> None:
        self._kept[key] = self.last = answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[T]):
    """The last answer to a question. `value`: None before the first; `age`: of the answer, in seconds; `why`: why it is not the
    present answer, empty where it is."""

    value: T | None = None
    age: float | None = None
    why: str = ""


class _Asking:
    """A question without an answer yet."""

    def __init__(self) -> None:
        self.since, self.done, self.why = monotonic(), Event(), ""


class Questions:
    """Questions to a part that may be silent, such as a broker. Each question goes out in a thread. A page waits for it at most
    `patience` seconds, and only a moment while an earlier question has waited longer: so a silent part costs a page one wait.

    Pages that ask the same question share one thread. An answer is kept. An error is the reason why nothing newer is known.
    """

    def __init__(self, part: str, *, most: int, patience: float, at_once: int = 4) -> None:
        """`part`: in the reasons; `most`: answers that are kept; `at_once`: questions without an answer, more of them wait."""
        self._part, self._patience, self._at_once = part, patience, at_once
        self._kept = Recent[Hashable, tuple[float, Any]](most)
        self._asking: dict[Hashable, _Asking] = {}
        self._lock = Lock()

    def ask(self, key: Hashable, read: Callable[[], T], fresh: float) -> Known[T]:
        """The answer, which is asked for again where it is older than `fresh` seconds."""
        with self._lock:
            if (kept := self._kept.get(key)) and monotonic() - kept[0] < fresh:
                return Known(value=kept[1], age=monotonic() - kept[0])
            silent = any(monotonic() - one.since > self._patience for one in self._asking.values())
            asking = self._asking.get(key)
            if asking is None and len(self._asking) < self._at_once:
                self._asking[key] = asking = _Asking()
                Thread(target=self._read, args=(key, read, asking), name="question", daemon=True).start()
        answered = asking is not None and asking.done.wait(FIRST_WAIT if silent else self._patience)
        with self._lock:
            kept = self._kept.get(key)
        at, value = kept or (None, None)
        age = None if at is None else monotonic() - at
        if answered and asking is not None:
            return Known(value=value, age=age, why=asking.why)
        return Known(value=value, age=age, why=f"{self._part} has not answered within {self._patience:g} s")

    def _read(self, key: Hashable, read: Callable[[], T], asking: _Asking) -> None:
        try:
            value, at = read(), monotonic()
            with self._lock:
                self._kept[key] = (at, value)
        except StatestoreError as error:
            asking.why = str(error)
        except Exception as error:
            asking.why = str(problem_of(error))
        finally:
            with self._lock:
                del self._asking[key]
            asking.done.set()


class Overdue(LookUpProblem):
    """Work that a page does not wait for any longer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            503,
            f"no answer within {seconds:g} s: a part outside of the console is silent; this page works when it answers",
        )


MOST_OVERDUE: Final = 24


class Deadline:
    """Lets each page answer in time. Its work runs in a thread, and the page leaves it alone after a while. While MOST_OVERDUE
    threads are left alone, no page begins another one."""

    def __init__(self) -> None:
        self._overdue, self._lock = 0, Lock()

    def run(self, seconds: float, work: Callable[[], T]) -> T:
        """The result of the work, or its error. Raises Overdue after `seconds`."""
        done, results, errors = Event(), list[T](), list[Exception]()

        def run() -> None:
            try:
                results.append(work())
            except Exception as error:
                errors.append(error)
            finally:
                with self._lock:
                    done.set()
                    self._overdue -= left_alone.is_set()

        left_alone = Event()
        if self._overdue >= MOST_OVERDUE:
            raise Overdue(seconds)
        Thread(target=run, name="page", daemon=True).start()
        if not done.wait(seconds):
            with self._lock:
                if not done.is_set():
                    left_alone.set()
                    self._overdue += 1
                    raise Overdue(seconds)
        if errors:
            raise errors[0]
        return results[0]

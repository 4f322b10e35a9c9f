"""An answer that is an error: problem details as RFC 9457 has them, without a traceback and without a secret.

The templates of pages, with Jinja2. They write each value escaped, so that no name is markup.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock, Thread
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


T = TypeVar("T")
FIRST_WAIT: Final = 0.1
"""Seconds that a page waits for a refresh behind the pages."""


class Cached(Generic[T]):
    """The last answers of a slow read, by key. Threads share it. An error is not kept: the next look reads again."""

    def __init__(self, most: int = 1) -> None:
        """`most`: answers that it keeps; the oldest goes first."""
        self._most, self._kept = most, OrderedDict[Hashable, tuple[float, T]]()
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
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

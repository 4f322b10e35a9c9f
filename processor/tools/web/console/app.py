"""The application of `statestore console`: a page, its JSON under `/api`, and the edit of its form, for each screen.

With the look of all pages, the files that they load, the proof that a form comes from a page of this console, and the problem of
an error. And the people who reach the console: who sends a request, and with which role of the registry. It is the user of this
process, the person of a token, or the person whom a proxy names. The person who starts the console names the operators.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.resources import files
from secrets import token_bytes, token_urlsafe
from threading import Lock
from time import time
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from processor.environment.settings.settings import Settings
from processor.errors import OwnedByAnother, SettingError
from processor.job.run.binding import refuse_lost_registry
from processor.text import duration_text
from processor.tools.web.answers import Deadline, LookUpProblem, Recent, open_templates, problem_of
from processor.tools.web.console.documents import DOCUMENTS
from processor.tools.web.console.edits import EDIT, HISTORY, SLOTS
from processor.tools.web.console.letters import LETTERS, DeadLetterCache
from processor.tools.web.console.overview import OVERVIEW, LandingCache
from processor.tools.web.console.products import COSTS, PRODUCTS, PriceCache
from processor.tools.web.console.screen import (
    ConsoleParts,
    Content,
    LazyReader,
    Person,
    Screen,
    SlotWidening,
    Visit,
)
from processor.tools.web.server import (
    HEADERS_OF,
    Guard,
    GuardRules,
    guarded,
    json_answer,
    problem_answer,
    read_credentials,
    route_problem,
)
from registry.errors import RegistryBusy, RegistryError, RegistryMissing, RegistryUnreachable, RoleNotGranted

if TYPE_CHECKING:
    from registry.repository import Registry

READER: Final = "reader"
OPERATOR: Final = "operator"
GROUP: Final = "group:"


@dataclass(frozen=True, slots=True)
class OperatorNames:
    """The operators: names of people, and `group:NAME` for a group. Everybody else is a reader: the proxy or a token let them in,
    and the least role that works is enough to look."""

    names: frozenset[str] = frozenset()

    def name_groups(self) -> bool:
        """Whether a group is among them."""
        return any(name.startswith(GROUP) for name in self.names)

    def role_of(self, name: str, groups: Iterable[str] = ()) -> str:
        """The role of a person of these groups."""
        stated = {f"{GROUP}{group.strip()}" for group in groups}
        if not name.startswith(GROUP):
            stated.add(name)
        return READER if self.names.isdisjoint(stated) else OPERATOR


def read_operators(text: str, separator: str = ",") -> OperatorNames:
    """The operators in a list. `separator`: of its names."""
    return OperatorNames(frozenset(name.strip() for name in text.split(separator) if name.strip()))


LEAST_TOKEN: Final = 16
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class PersonTokens:
    """The names of people by the SHA-256 of their tokens."""

    names: Mapping[bytes, str]

    def name_of(self, token: str) -> str:
        """The person of a token; empty for nobody. Compares it with every token, each in constant time."""
        shown, found = _hash(token), ""
        for kept, name in self.names.items():
            if hmac.compare_digest(kept, shown):
                found = name
        return found


def read_tokens(text: str, place: str) -> PersonTokens:
    """The tokens in a text from this place. Raises SettingError, which names a line and no token."""
    names: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, token = (part.strip() for part in line.partition("="))
        if not name or len(token) < LEAST_TOKEN:
            raise SettingError(
                f"--tokens: line {number} of {place} is not NAME=TOKEN, with a random token of {LEAST_TOKEN} characters or more"
            )
        if _hash(token) in names:
            raise SettingError(
                f"--tokens: line {number} of {place} has the token of another line: give each person a token"
            )
        names[_hash(token)] = name
    if not names:
        raise SettingError(f"--tokens: {place} is empty: write a line NAME=TOKEN for each person")
    return PersonTokens(names)


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


MOST_NAME: Final = 100
"""Characters of a name."""


class PersonRules(Protocol):
    """How the console knows people."""

    def person(self, scope: Scope) -> Person:
        """The person of a request. Raises LookUpProblem for a request of nobody."""


@dataclass(frozen=True, slots=True)
class OwnUser:
    """The user of this process, whose browser is on this machine: the guard takes only requests of this machine."""

    name: str

    def person(self, _: Scope) -> Person:
        """Always the user."""
        return Person(name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPeople:
    """People with a token each. The token alone says who a person is: another name with it counts for nothing."""

    tokens: PersonTokens
    operators: OperatorNames

    def person(self, scope: Scope) -> Person:
        """The person of the token. Raises LookUpProblem without a token of somebody."""
        name = self.tokens.name_of(read_credentials(Headers(scope=scope).get("authorization", "")).token)
        if not name:
            cure = "`Authorization: Bearer TOKEN`, or as the password of a user"
            raise LookUpProblem(401, f"the request needs your token: {cure}")
        return Person(name=name, role=self.operators.role_of(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPeople:
    """People whom a proxy has signed in."""

    address: str
    """Of the proxy."""
    header: str
    """Has the name."""
    group_header: str
    """Has the groups, or is empty."""
    operators: OperatorNames
    separator: str = ","
    """Of the groups. A name that has it would count as several groups, such as `cn=ops,ou=people` with a comma."""

    def person(self, scope: Scope) -> Person:
        """The person of the header. Raises LookUpProblem for a request that does not come from the proxy, or without a name."""
        headers = Headers(scope=scope)
        if (scope.get("client") or ("",))[0] != self.address:
            raise LookUpProblem(403, f"only the proxy at {self.address} may ask this console: open the proxy's address")
        if not (name := headers.get(self.header, "").strip()[:MOST_NAME]):
            raise LookUpProblem(401, f"the proxy states no name in the header {self.header}: sign in there")
        lists = headers.getlist(self.group_header) if self.group_header else []
        groups = [group for one in lists for group in one.split(self.separator)]
        return Person(name=name, role=self.operators.role_of(name, groups))


FIELD = "form_token"


@dataclass(frozen=True, slots=True)
class FormTokens:
    """The tokens of one process, one for each person. A form of this console has its token, which no other site knows (CSRF)."""

    _secret: bytes = field(default_factory=lambda: token_bytes(32))

    def token_for(self, name: str) -> str:
        """The token in the forms of this person."""
        return hmac.new(self._secret, name.encode(), "sha256").hexdigest()

    def check(self, visit: Visit, headers: Mapping[str, str]) -> None:
        """Raises LookUpProblem for a form of another site, or of a page from before this process began."""
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise LookUpProblem(403, "the form comes from another site, so nothing was changed")
        if not hmac.compare_digest(visit.asked(FIELD).encode(), self.token_for(visit.person.name).encode()):
            raise LookUpProblem(
                403, "the console began again after this page, so nothing was changed: open the page again"
            )


MOST_NOTES = 200


@dataclass(frozen=True, slots=True)
class PageNotes:
    """What the console says once to a person, on the page that follows an edit: the last notes, each with the name of its person.
    This process keeps them, so no address can forge one."""

    _notes: Recent[str, tuple[str, str]] = field(default_factory=lambda: Recent(MOST_NOTES))
    _lock: Lock = field(default_factory=Lock)

    def keep(self, name: str, text: str) -> str:
        """Keeps a note for a person. Returns its number in an address."""
        number = token_urlsafe(9)
        with self._lock:
            self._notes[number] = (name, text)
        return number

    def of(self, name: str, number: str) -> str:
        """The note of this number, if it is for this person; else empty."""
        with self._lock:
            whose, text = self._notes.get(number, ("", ""))
        return text if whose == name else ""


PAGE_SECONDS: Final = 4.0
"""Seconds that a page waits for its content."""
MOST_PAGES: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a person saw on a screen, in seconds since 1970."""

    visit: Visit
    content: Content
    at: float = field(default_factory=time)


@dataclass(frozen=True, slots=True)
class LastPages:
    """The last pages of this process, by person and address: a page whose parts are silent shows them again."""

    _pages: Recent[object, Seen] = field(default_factory=lambda: Recent(MOST_PAGES))
    _lock: Lock = field(default_factory=Lock)

    def keep(self, person: Person, request: Request, seen: Seen) -> None:
        """Keeps what this person has seen here."""
        with self._lock:
            self._pages[person, _here(request)] = seen

    def of(self, person: Person, request: Request) -> Seen | None:
        """What this person saw here last."""
        with self._lock:
            return self._pages.get((person, _here(request)))


TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
NAMES: Final = ("console.css", "console.js", "htmx.min.js", "icon.svg")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file. `tag`: names its content, so that a browser keeps it until the next release."""

    content: bytes
    type: str
    tag: str


def static_files() -> dict[str, StaticFile]:
    """The files that the pages load, by name: a style sheet, htmx, and a few lines of script. All come with the package."""
    folder = files("processor.tools.web.console") / "static"
    found = {name: (folder / name).read_bytes() for name in NAMES}
    return {
        name: StaticFile(content, TYPES[name.rpartition(".")[2]], sha256(content).hexdigest()[:12])
        for name, content in found.items()
    }


def console_problem(error: Exception) -> LookUpProblem:
    """The problem. A refused edit is a conflict, and an edit beyond the rights of the database's role is forbidden."""
    match error:
        case RegistryMissing():
            return LookUpProblem(503, f"{error}; then open this page again")
        case RoleNotGranted():
            return LookUpProblem(503, str(error))
        case RegistryUnreachable() | RegistryBusy():
            return problem_of(error)
        case RegistryError() if "permission denied" in str(error):
            return LookUpProblem(403, f"the database refused the edit to your role, and nothing was changed: {error}")
        case RegistryError():
            return LookUpProblem(409, str(error))
    return problem_of(error)


def _url(path: str, **query: object) -> str:
    """An address, with each part of the query escaped; empty parts are left out."""
    parts = "&".join(f"{name}={quote(text, safe='')}" for name, value in query.items() if (text := str(value)))
    return f"{path}?{parts}" if parts else path


@contextmanager
def console_parts(registry: "Registry", settings: Settings, shared: "Registry | None" = None) -> Iterator[ConsoleParts]:
    """The parts of a console over this registry, inside the block. `shared`: the registry as those see it for whom the caches
    read, where the roles of people differ."""
    reads = shared or registry
    with closing(LazyReader(reads, settings)) as table:
        prices = PriceCache(reads, settings)
        yield ConsoleParts(
            registry=registry,
            settings=settings,
            open_reader=table.reader,
            letters=DeadLetterCache(settings, table.reader).letters,
            event_prices=prices.prices,
            known_prices=prices.known,
            landings=LandingCache(settings, reads.landings.all).landings,
            widening=SlotWidening(settings),
        )


SCREENS: Final[tuple[Screen, ...]] = (OVERVIEW, SLOTS, EDIT, *PRODUCTS, *DOCUMENTS, *LETTERS, *HISTORY, COSTS)


MOST_FIELDS: Final = 600
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
API: Final = "/api"


def console_app(parts: ConsoleParts, screens: Sequence[Screen], people: PersonRules, rules: GuardRules) -> Guard:
    """The application over these screens, behind the rules and those of people."""
    static = static_files()
    answers = _Answers(parts, screens, static, people)
    routes = [Route(f"/static/{name}", _static(one), methods=["GET"]) for name, one in static.items()]
    for screen in screens:
        routes.append(Route(API + screen.path, partial(answers.data, screen), methods=["GET"]))
        routes.append(Route(screen.path, partial(answers.page, screen), methods=["GET"]))
        if screen.act is not None:
            routes.append(Route(screen.path, partial(answers.acted, screen), methods=["POST"]))
    return guarded(routes, replace(rules, check=people.person), answers.refused)


class _Answers:
    """The endpoints of the screens, and the look of their pages. The first screen of each name is in the menu."""

    def __init__(
        self, parts: ConsoleParts, screens: Sequence[Screen], static: Mapping[str, StaticFile], people: PersonRules
    ) -> None:
        self._parts_of = {role: parts.acting_as(role) for role in (None, READER, OPERATOR)}
        self._parts = parts
        self._people, self._tokens, self._notes = people, FormTokens(), PageNotes()
        self._deadline, self._last = Deadline(), LastPages()
        self._render = open_templates("processor.tools.web.console", "console")
        menu: dict[str, str] = {}
        for one in screens:
            menu.setdefault(one.menu, one.path)
        self._always = {
            "menu": menu,
            "files": {name: f"/static/{name}?v={file.tag}" for name, file in static.items()},
            "form_field": FIELD,
            "url": _url,
        }

    async def acted(self, screen: Screen, request: Request) -> Response:
        try:
            form = await _form(request)
        except LookUpProblem as problem:
            return self._problem(request, problem)
        return await run_in_threadpool(self._act, screen, request, form)

    async def refused(self, request: Request, error: Exception) -> Response:
        problem = route_problem(error)
        if request.scope["path"].startswith(f"{API}/"):
            return problem_answer(problem)
        return await run_in_threadpool(self._problem, request, problem)

    def data(self, screen: Screen, request: Request) -> Response:
        try:
            person = self._people.person(request.scope)
            seen = self._deadline.run(PAGE_SECONDS, lambda: self._content(screen, request, person))
        except Exception as error:
            return problem_answer(console_problem(error))
        return json_answer(dict(seen.content))

    def _content(
        self, screen: Screen, request: Request, person: Person, form: Mapping[str, Sequence[str]] | None = None
    ) -> Seen:
        """What a person sees on a screen. Raises LookUpProblem."""
        try:
            visit = replace(self._visit(request, person), form=form or {})
            return Seen(visit=visit, content=screen.show(self._parts_of[person.role], visit))
        except Exception as error:
            raise self._problem_of(error) from None

    def _problem_of(self, error: Exception) -> LookUpProblem:
        """The problem of an error. The table may know that a missing registry is lost."""
        if isinstance(error, RegistryMissing):
            try:
                refuse_lost_registry(self._parts.settings, self._parts.registry)
            except OwnedByAnother as lost:
                return LookUpProblem(503, str(lost))
        return console_problem(error)

    def page(self, screen: Screen, request: Request) -> Response:
        """The page. While a part is silent, the page as it was last."""
        try:
            person = self._people.person(request.scope)
            seen = self._deadline.run(PAGE_SECONDS, lambda: self._content(screen, request, person))
        except Exception as error:
            problem = console_problem(error)
            last = self._last.of(person, request) if problem.status == 503 else None
            return self._old(screen, request, last, problem) if last else self._problem(request, problem)
        self._last.keep(person, request, seen)
        note = self._notes.of(person.name, seen.visit.asked("note"))
        return self._shown(screen, request, seen, message=note)

    def _old(self, screen: Screen, request: Request, seen: Seen, problem: LookUpProblem) -> Response:
        """A page as it was. Nobody edits by it."""
        old = replace(seen, visit=replace(seen.visit, person=replace(seen.visit.person, may_edit=False)))
        stale = f"{problem}. Below is this page as it was {duration_text(time() - seen.at)} ago"
        return self._shown(screen, request, old, status=problem.status, stale=stale)

    def _act(self, screen: Screen, request: Request, form: dict[str, list[str]]) -> Response:
        """Makes the edit. A problem shows the page again, with the plan as it is now."""
        assert screen.act is not None
        try:
            person = self._people.person(request.scope)
            visit = replace(self._visit(request, person), form=form)
            self._tokens.check(visit, request.headers)
            done = screen.act(self._parts_of[visit.person.role], visit)
        except Exception as error:
            problem = self._problem_of(error)
            if problem.status not in (400, 409):
                return self._problem(request, problem)
            problem = LookUpProblem(problem.status, f"nothing was changed: {problem}")
            try:
                seen = self._deadline.run(PAGE_SECONDS, lambda: self._content(screen, request, person, form))
                return self._shown(screen, request, seen, status=problem.status, problem=str(problem))
            except Exception:  # the plan itself is no longer possible: the problem alone says why
                return self._problem(request, problem)
        note = self._notes.keep(visit.person.name, done.message)
        return RedirectResponse(f"{done.to}{'&' if '?' in done.to else '?'}note={note}", 303, headers=HEADERS)

    def _shown(
        self,
        screen: Screen,
        request: Request,
        seen: Seen,
        *,
        status: int = 200,
        message: str = "",
        problem: str = "",
        stale: str = "",
    ) -> Response:
        """The page of a screen. `message`: what an edit before it did; `problem`: why an edit was refused; `stale`: why the page
        is not that of now."""
        visit = seen.visit
        return self._page(
            screen.template,
            request,
            status,
            it=seen.content,
            of_menu=screen.menu,
            person=visit.person,
            why=visit.asked("why"),
            token=self._tokens.token_for(visit.person.name),
            message=message,
            problem=problem,
            stale=stale,
        )

    def _problem(self, request: Request, problem: LookUpProblem) -> Response:
        """The page in place of one that cannot be shown."""
        values: dict[str, Any] = {"of_menu": "", "person": None, "message": "", "stale": "", "it": {}}
        return self._page("problem.html", request, problem.status, problem=str(problem), **values)

    def _page(self, template: str, request: Request, status: int, **values: Any) -> Response:
        now = datetime.now(UTC)
        values |= {"here": _here(request), "made_at": f"{now:%Y-%m-%d %H:%M:%S} UTC"}
        text = self._render(template, **self._always, **values)
        return Response(text, status, headers=HEADERS | HEADERS_OF.get(status, {}), media_type="text/html")

    def _visit(self, request: Request, person: Person) -> Visit:
        may_edit = self._parts_of[person.role].registry.may_edit()
        return Visit(person=replace(person, may_edit=may_edit), query=dict(request.query_params))


def _here(request: Request) -> str:
    """The address of a page without its note, which the page says once."""
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "note"]
    path: str = request.scope["path"]
    return path + (f"?{urlencode(query)}" if query else "")


async def _form(request: Request) -> dict[str, list[str]]:
    """The fields of the form. Raises LookUpProblem for one that cannot be read."""
    try:
        return parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise LookUpProblem(400, f"the form cannot be read, or has more than {MOST_FIELDS} fields") from None


def _static(file: StaticFile) -> Callable[[Request], Response]:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "ETag": f'"{file.tag}"'}
    return lambda _: Response(file.content, headers=headers, media_type=file.type)

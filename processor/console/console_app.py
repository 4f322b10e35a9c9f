"""The application of `statestore console`: a page, its JSON under `/api`, and the edit of its form, for each screen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from processor.console.console_page import ConsolePage
from processor.console.console_parts import ConsoleParts
from processor.console.console_problem import console_problem
from processor.console.form_tokens import FormTokens
from processor.console.page_notes import PageNotes
from processor.console.people.operator_names import OPERATOR, READER
from processor.console.people.person_rules import PersonRules
from processor.console.screen import Screen
from processor.console.static_files import StaticFile, static_files
from processor.console.visit import Person, Visit
from processor.records import canonical_json
from processor.serve.guard import HEADERS_OF, Guard, GuardRules, problem_answer
from processor.serve.problem import LookUpProblem

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
    parts_of = {role: parts.acting_as(role) for role in (None, READER, OPERATOR)}
    answers = _Answers(parts_of, people, FormTokens(), PageNotes(), ConsolePage(screens, static))
    routes = [Route(f"/static/{name}", _static(one), methods=["GET"]) for name, one in static.items()]
    for screen in screens:
        routes.append(Route(API + screen.path, partial(answers.data, screen), methods=["GET"]))
        routes.append(Route(screen.path, partial(answers.page, screen), methods=["GET"]))
        if screen.act is not None:
            routes.append(Route(screen.path, partial(answers.acted, screen), methods=["POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # it leads to the Host of the request
    app.add_exception_handler(HTTPException, answers.refused)
    return Guard(app, replace(rules, refuses=people.refuses))


@dataclass(frozen=True, slots=True)
class _Answers:
    """The endpoints of the screens. `parts_of`: by the role of a person."""

    parts_of: Mapping[str | None, ConsoleParts]
    people: PersonRules
    tokens: FormTokens
    notes: PageNotes
    look: ConsolePage

    async def acted(self, screen: Screen, request: Request) -> Response:
        try:
            form = await _form(request)
        except LookUpProblem as problem:
            return self._problem(request, problem)
        return await run_in_threadpool(self._act, screen, request, form)

    async def refused(self, request: Request, error: Exception) -> Response:
        """A path that there is not, or a method that it does not take."""
        assert isinstance(error, HTTPException)
        problem = LookUpProblem(error.status_code, error.detail)
        if request.scope["path"].startswith(f"{API}/"):
            return problem_answer(problem)
        return await run_in_threadpool(self._problem, request, problem)

    def data(self, screen: Screen, request: Request) -> Response:
        try:
            visit = self._visit(request)
            content = screen.show(self.parts_of[visit.person.role], visit)
        except Exception as error:
            return problem_answer(console_problem(error))
        return Response(canonical_json.dumps(dict(content)), media_type="application/json")

    def page(self, screen: Screen, request: Request) -> Response:
        try:
            visit = self._visit(request)
            return self._shown(screen, request, visit, said=self.notes.of(visit.person.name, visit.asked("note")))
        except Exception as error:
            return self._problem(request, console_problem(error))

    def _act(self, screen: Screen, request: Request, form: dict[str, list[str]]) -> Response:
        """Makes the edit. A problem shows the page again, with the plan as it is now."""
        assert screen.act is not None
        try:
            visit = replace(self._visit(request), form=form)
            self.tokens.check(visit, request.headers)
            done = screen.act(self.parts_of[visit.person.role], visit)
        except Exception as error:
            problem = console_problem(error)
            if problem.status not in (400, 409):
                return self._problem(request, problem)
            problem = LookUpProblem(problem.status, f"nothing was changed: {problem}")
            try:
                return self._shown(screen, request, visit, problem=problem)
            except Exception:  # the plan itself is no longer possible: the problem alone says why
                return self._problem(request, problem)
        note = self.notes.keep(visit.person.name, done.said)
        return RedirectResponse(f"{done.to}{'&' if '?' in done.to else '?'}note={note}", 303, headers=HEADERS)

    def _shown(
        self, screen: Screen, request: Request, visit: Visit, *, said: str = "", problem: LookUpProblem | None = None
    ) -> Response:
        content = screen.show(self.parts_of[visit.person.role], visit)
        token = self.tokens.token_for(visit.person.name)
        text = self.look.page(screen, content, visit, here=_here(request), token=token, said=said, problem=problem)
        return Response(text, problem.status if problem else 200, headers=HEADERS, media_type="text/html")

    def _problem(self, request: Request, problem: LookUpProblem) -> Response:
        text = self.look.problem(problem, here=_here(request))
        headers = HEADERS | HEADERS_OF.get(problem.status, {})
        return Response(text, problem.status, headers=headers, media_type="text/html")

    def _visit(self, request: Request) -> Visit:
        known = self.people.person(request.scope)
        may_edit = self.parts_of[known.role].registry.may_edit()
        person = Person(name=known.name, role=known.role, may_edit=may_edit)
        return Visit(person=person, query=dict(request.query_params))


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

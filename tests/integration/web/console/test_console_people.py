"""One console and several people: each route as nobody, as a reader and as an operator. The login of the console may do nothing
by itself, and Postgres decides by the role of each person."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from processor.tools.web.console.app import ProxyPeople, TokenPeople, read_operators, read_tokens
from registry.errors import RegistryError
from registry.repository import Registry
from tests.integration.web.console.conftest import LOCAL, PAGES, Browser, ConsoleScene, at
from tests.integration.web.console.test_console_routes import EDITS, GROUP, WHY

TOKENS = {"ada": "ada-has-a-long-token", "bob": "bob-has-another-token"}
PEOPLE = TokenPeople(
    tokens=read_tokens("\n".join(f"{name}={token}" for name, token in TOKENS.items()), "here"),
    operators=read_operators("ada"),
)
PROXY = ProxyPeople(
    address="10.0.0.5",
    header="X-Forwarded-User",
    group_header="X-Forwarded-Groups",
    operators=read_operators("ada, group:on-call"),
)
Browsers = dict[str, Browser]


@pytest.fixture
def browsers(console: ConsoleScene, console_user: tuple[Registry, str]) -> Browsers:
    """The browsers of ada, who is an operator, and of bob, at the same console."""
    app = console.app(console_user[0], PEOPLE)
    return {name: Browser(TestClient(app, base_url=LOCAL, headers=_shows(token))) for name, token in TOKENS.items()}


def test_every_route_as_nobody_as_a_reader_and_as_an_operator(
    console: ConsoleScene, console_user: tuple[Registry, str], browsers: Browsers
) -> None:
    nobody = TestClient(console.app(console_user[0], PEOPLE), base_url=LOCAL)
    for path in PAGES:
        for refused in (nobody.get(path), nobody.get(f"/api{path}"), nobody.post(path, data=WHY)):
            assert (refused.status_code, "profile" in refused.text) == (401, False), path
        page = browsers["bob"].page(path)
        assert "bob, reader: this role changes nothing" in page, path
        assert 'name="why"' not in page, path
        assert not re.search(r"<button[^>]*>(?!Look up|Show the plan|Compare|Find)", page), path
        assert "ada, operator" in browsers["ada"].page(path), path
        for browser in browsers.values():
            browser.data(path)
    assert nobody.get("/static/console.css").status_code == 401
    assert "Basic realm=" in nobody.get("/").headers["www-authenticate"]


@pytest.mark.parametrize("path", [path for path in EDITS if path != GROUP])
def test_postgres_refuses_an_edit_to_a_reader_and_makes_it_for_an_operator(
    console: ConsoleScene, browsers: Browsers, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    before, ada, bob = console.registry.snapshot(), browsers["ada"], browsers["bob"]
    with monkeypatch.context() as mistaken:
        mistaken.setattr(Registry, "may_edit", lambda _: True)
        form = bob.page(path)
        refused = bob.send(path, form, 403, **WHY, **EDITS[path])
    assert "permission denied" in refused
    assert "your role lacks the rights of an operator" in bob.send(path, form, 403, **WHY, **EDITS[path])
    assert "began again" in bob.send(path, ada.page(path), 403, **WHY, **EDITS[path])  # the form of another person
    assert console.registry.snapshot() == before
    ada.send(path, ada.page(path), 303, **WHY, **EDITS[path])
    assert console.registry.snapshot().version == before.version + 1
    assert console.registry.history(1)[0].who == "ada"


def test_a_reader_drops_no_dead_letter_and_an_operator_does(
    console: ConsoleScene, browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as mistaken:
        mistaken.setattr(Registry, "may_edit", lambda _: True)
        form = browsers["bob"].page(GROUP)
    assert "your role lacks" in browsers["bob"].send(GROUP, form, 403, **WHY, **EDITS[GROUP])
    assert [fate for _, fate in console.letters()] == [""]
    browsers["ada"].send(GROUP, browsers["ada"].page(GROUP), 303, **WHY, **EDITS[GROUP])
    assert [fate.partition(" at ")[0] for _, fate in console.letters()] == ["dropped by ada"]


def test_an_operator_adds_slots_behind_the_pages(console: ConsoleScene, browsers: Browsers) -> None:
    path = at("/edit", edit="add-slots", number=6)
    browsers["ada"].send(path, browsers["ada"].page(path), 303, **WHY)
    console.widening.wait()
    assert "registry version 2" in console.widening.message
    assert console.registry.snapshot().slots == 6


def test_people_at_the_same_time_keep_their_roles(console: ConsoleScene, console_user: tuple[Registry, str]) -> None:
    app = console.app(console_user[0], PEOPLE)

    def look(name: str) -> str:
        return TestClient(app, base_url=LOCAL, headers=_shows(TOKENS[name])).get("/slots").text

    names = ["ada", "bob"] * 12
    with ThreadPoolExecutor(8) as pool:
        for name, page in zip(names, pool.map(look, names), strict=True):
            assert f"{name}, {'operator' if name == 'ada' else 'reader'}" in page


def test_the_token_alone_says_who_a_person_is(console: ConsoleScene, console_user: tuple[Registry, str]) -> None:
    client = TestClient(console.app(console_user[0], PEOPLE), base_url=LOCAL)
    assert "bob, reader" in client.get("/", auth=("ada", TOKENS["bob"])).text
    assert client.get("/", auth=("ada", "ada-has-a-long-tokeN")).status_code == 401
    assert client.get("/", auth=("ada", "")).status_code == 401


def test_the_proxy_states_who_a_person_is_and_the_groups(
    console: ConsoleScene, console_user: tuple[Registry, str]
) -> None:
    app = console.app(console_user[0], PROXY, names=())
    proxy, grace = TestClient(app, client=("10.0.0.5", 1)), {"X-Forwarded-User": "grace"}
    for groups, said in (("", "reader"), ("staff, on-call", "operator"), ("staff", "reader")):
        assert f"grace, {said}" in proxy.get("/", headers=grace | {"X-Forwarded-Groups": groups}).text
    assert "ada, operator" in proxy.get("/", headers={"X-Forwarded-User": "ada"}).text
    assert "reader" in proxy.get("/", headers={"X-Forwarded-User": "group:on-call"}).text
    assert proxy.get("/").status_code == 401
    stranger = TestClient(app, client=("10.0.0.6", 1)).get("/", headers=grace)
    assert (stranger.status_code, "only the proxy at 10.0.0.5" in stranger.text) == (403, True)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8290", "[", "", "127.0.0.1.evil.example"])
def test_a_page_of_another_site_states_no_person_as_the_proxy_does(
    console: ConsoleScene, console_user: tuple[Registry, str], host: str
) -> None:
    """A browser on the proxy's machine may be led here by a name of that site (DNS rebinding), with any header."""
    app = console.app(console_user[0], PROXY, names={"127.0.0.1", "console.example.org"})
    headers = {"X-Forwarded-User": "ada", "X-Forwarded-Host": "console.example.org"}
    proxy = TestClient(app, client=("10.0.0.5", 1), headers=headers)
    assert proxy.get("/", headers={"Host": host}).status_code == 421
    assert "ada, operator" in proxy.get("/", headers={"Host": "Console.example.org:443"}).text


@pytest.mark.parametrize("host", ["[", "evil.example", "x/../y?z#"])
def test_no_page_and_no_answer_leads_to_the_host_of_a_request(
    console: ConsoleScene, console_user: tuple[Registry, str], host: str
) -> None:
    client = TestClient(console.app(console_user[0], PEOPLE, names=()), base_url=LOCAL, headers=_shows(TOKENS["ada"]))
    for path, status in (("/slots?note=x&a=b%26c", 200), ("/slots/", 404), ("/slots%0A", 404), ("/api/slots/", 404)):
        answer = client.get(path, headers={"Host": host}, follow_redirects=False)
        assert (answer.status_code, host in answer.text) == (status, False)
    assert 'href="/api/slots?a=b%26c"' in client.get("/slots?note=x&a=b%26c", headers={"Host": host}).text


def test_a_role_that_nobody_granted_is_named_with_its_cure(
    console: ConsoleScene, console_user: tuple[Registry, str], browsers: Browsers, psql: Engine, schema: str
) -> None:
    registry, user = console_user
    with psql.begin() as connection:
        connection.execute(text(f"REVOKE {schema}_operator FROM {user}"))
    page = browsers["ada"].page("/slots", 503)
    assert f"the registry&#39;s user may not act as {schema}_operator" in page
    assert "statestore roles" in page
    assert "bob, reader" in browsers["bob"].page("/slots")
    with pytest.raises(RegistryError, match="permission denied"):
        registry.snapshot()  # after all these pages, the connections have no role of a person


def _shows(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}

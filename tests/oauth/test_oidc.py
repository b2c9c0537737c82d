"""Sign-in at an OpenID Connect provider: whom it lets in, and every answer that must not be believed."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from hivemem.app import SystemClock, open_services
from hivemem.domain.accounts import AuditQuery
from hivemem.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from hivemem.settings import Settings, load_settings
from hivemem.surfaces.oauth.identity_provider import IdentityProvider
from hivemem.surfaces.rest.app import build_app
from tests.oauth.flow import Program, hidden, query_of
from tests.oauth.people import settled
from tests.oauth.provider import CLIENT_ID, CLIENT_SECRET, Person, Provider, provider
from tests.oauth.test_pages import Accessible, assert_closed
from tests.surfaces.serving import FAST, REST, Served, bearer, served

SUBJECT = "subject-1"


@pytest.fixture
def idp() -> Iterator[Provider]:
    with provider(Person(SUBJECT, {"preferred_username": "grace", "email": "grace@acme.example"})) as running:
        yield running


def settings_for(idp: Provider, **changes: Any) -> dict[str, Any]:
    return {
        "oidc_issuer": idp.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_name": "Acme <login>",
        "rate_limit_sign_in_per_minute": 0,
        **changes,
    }


@pytest.fixture
async def api(tmp_path: Path, idp: Provider) -> AsyncIterator[Served]:
    async with served(tmp_path, **settings_for(idp)) as running:
        yield running


@pytest.fixture
async def open_api(tmp_path: Path, idp: Provider) -> AsyncIterator[Served]:
    async with served(tmp_path / "open", **settings_for(idp, oidc_accounts="create")) as running:
        yield running


async def link(api: Served, user: str = "owner", subject: str = SUBJECT) -> None:
    owner = await api.services.access.local_principal()
    await api.services.identities.link(owner, user, api.services.settings.oidc_issuer, subject)


async def sent_out(program: Program) -> str:
    """The address at the provider that the button leads to."""
    started = await program.authorize()
    page = await program.http.get(started.headers["location"])
    start = re.search(r'<a href="(/oauth/oidc/start\?request=[\w-]{43})">', page.text)
    assert start is not None, page.text
    assert "Continue with Acme &lt;login&gt;" in page.text
    return (await program.http.get(unescape(start[1]))).headers["location"]


async def at_provider(address: str) -> str:
    """Where the provider sends the browser back to, as a path with its query."""
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(address)
    assert answer.status_code == 303, answer.text
    parts = urlsplit(answer.headers["location"])
    assert parts.path == "/oauth/oidc/callback"
    return f"{parts.path}?{parts.query}"


async def signed_in(program: Program) -> httpx2.Response:
    """The page after the way to the provider and back."""
    return await program.http.get(await at_provider(await sent_out(program)))


async def actions(api: Served) -> list[str]:
    owner = await api.services.access.local_principal()
    found = await api.services.audit.read(owner, AuditQuery(limit=1000))
    return [event.action for event in reversed(found)]


# Who gets in --------------------------------------------------------------------------------------


async def test_a_linked_person_signs_in_and_lets_a_program_in(api: Served, idp: Provider) -> None:
    await link(api)
    program = await Program.register(api.anonymous)
    page = await signed_in(program)
    assert page.status_code == 200
    assert_closed(page, "'self' http://127.0.0.1:51234")
    Accessible(page).check()
    assert "signed in as <strong>owner</strong>" in page.text
    code = query_of(await program.decide(page))["code"]
    tokens = (await program.exchange(code)).json()
    overview = await api.anonymous.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert overview.status_code == 200
    assert (await actions(api))[-3:] == ["identity.link", "sign_in.ok", "grant.create"]
    assert idp.asked == ["/.well-known/openid-configuration", "/authorize", "/token", "/jwks"]


async def test_the_request_is_bound_to_this_sign_in(api: Served) -> None:
    program = await Program.register(api.anonymous)
    first, second = [dict(parse_qsl(urlsplit(await sent_out(program)).query)) for _ in range(2)]
    assert first["redirect_uri"] == "http://localhost/oauth/oidc/callback"
    assert (first["scope"], first["code_challenge_method"]) == ("openid profile email", "S256")
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]
        assert len(first[name]) >= 43


async def test_a_stranger_is_told_whom_to_ask_and_gets_nothing(api: Served) -> None:
    program = await Program.register(api.anonymous)
    page = await signed_in(program)
    assert page.status_code == 403
    assert f"--subject {SUBJECT}" in page.text
    assert_closed(page, "'self'")
    assert 'name="consent"' not in page.text
    assert len(await api.services.store.users()) == 1
    assert (await actions(api))[-1] == "sign_in.failed"


async def test_nobody_is_found_by_a_name_or_address(open_api: Served, idp: Provider) -> None:
    """A new account, not the one of the same name: names and addresses change hands at a provider."""
    people = await settled(open_api)
    idp.person.claims = {"preferred_username": "ada", "email": "ada@acme.example", "email_verified": True}
    program = await Program.register(open_api.anonymous)
    page = await signed_in(program)
    assert "signed in as <strong>ada 2</strong>" in page.text
    newcomer = await open_api.services.store.user_by_external_identity(idp.issuer, SUBJECT)
    assert newcomer is not None
    assert newcomer.user_id != people.users["ada"].user_id
    assert newcomer.password_hash is None and not newcomer.operator


async def test_a_new_account_is_made_once(open_api: Served, idp: Provider) -> None:
    program = await Program.register(open_api.anonymous)
    for _ in range(2):
        assert "signed in as <strong>grace</strong>" in (await signed_in(program)).text
    idp.person = Person("subject-2", {"preferred_username": "two\nlines", "email": "user_" + "0" * 20})
    assert "signed in as <strong>subject-2</strong>" in (await signed_in(program)).text
    assert [user.name for user in await open_api.services.store.users()] == ["owner", "grace", "subject-2"]


@pytest.mark.parametrize(
    ("claims", "enters"),
    [
        ({"email": "grace@acme.example", "email_verified": True}, True),
        ({"email": "grace@ACME.example", "email_verified": True}, True),
        ({"email": "grace@acme.example", "email_verified": False}, False),
        ({"email": "grace@acme.example"}, False),
        ({"email": "grace@acme.example", "email_verified": "true"}, False),
        ({"email": "acme.example@evil.example", "email_verified": True}, False),
        ({"email": "grace@sub.acme.example", "email_verified": True}, False),
        ({"email": None, "email_verified": True}, False),
    ],
)
async def test_only_verified_addresses_of_allowed_domains_enter(
    tmp_path: Path, idp: Provider, claims: dict[str, Any], enters: bool
) -> None:
    idp.changes = claims
    settings = settings_for(idp, oidc_accounts="create", oidc_allowed_domains="acme.example")
    async with served(tmp_path, **settings) as api:
        page = await signed_in(await Program.register(api.anonymous))
        assert page.status_code == (200 if enters else 403)
        assert len(await api.services.store.users()) == (2 if enters else 1)


@pytest.mark.parametrize(
    ("claims", "enters"),
    [
        ({"groups": ["staff", "memory"]}, True),
        ({"groups": "memory"}, True),
        ({"groups": ["memory2"]}, False),
        ({"groups": True}, False),
        ({}, False),
    ],
)
async def test_a_claim_can_be_required(
    tmp_path: Path, idp: Provider, claims: dict[str, Any], enters: bool
) -> None:
    idp.changes = claims
    settings = settings_for(idp, oidc_accounts="create", oidc_required_claim="groups=memory")
    async with served(tmp_path, **settings) as api:
        page = await signed_in(await Program.register(api.anonymous))
        assert page.status_code == (200 if enters else 403)


# What must not be believed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "x" * 43},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": None},
        {"aud": "another client", "azp": CLIENT_ID},
        {"aud": [CLIENT_ID, "another client"]},
        {"aud": [CLIENT_ID, "another client"], "azp": "another client"},
        {"iss": "https://other.example"},
        {"iss": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "tomorrow"},
        {"iat": 9_999_999_999},
        {"nbf": 9_999_999_999},
        {"at_hash": "x" * 22},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
    ],
    ids=repr,
)
async def test_a_token_with_a_wrong_claim_is_refused(
    open_api: Served, idp: Provider, changes: dict[str, Any]
) -> None:
    idp.changes = changes
    page = await signed_in(await Program.register(open_api.anonymous))
    assert page.status_code == 403
    assert 'role="alert"' in page.text
    assert len(await open_api.services.store.users()) == 1


@pytest.mark.parametrize("forge", ["none", "hs256", "stranger"])
async def test_a_token_with_a_forged_signature_is_refused(
    open_api: Served, idp: Provider, forge: str
) -> None:
    idp.forge = forge
    page = await signed_in(await Program.register(open_api.anonymous))
    assert page.status_code == 403
    assert len(await open_api.services.store.users()) == 1


async def test_further_audiences_are_fine_when_we_are_the_authorized_party(
    open_api: Served, idp: Provider
) -> None:
    idp.changes = {"aud": [CLIENT_ID, "another client"], "azp": CLIENT_ID, "at_hash": None}
    assert (await signed_in(await Program.register(open_api.anonymous))).status_code == 200


async def test_an_answer_counts_once_and_for_its_own_request(open_api: Served, idp: Provider) -> None:
    program = await Program.register(open_api.anonymous)
    back = await at_provider(await sent_out(program))
    state = dict(parse_qsl(urlsplit(back).query))["state"]
    for forged in (
        back.replace("state=", "state=x"),
        back.replace(state, state.partition(".")[0]),
        back.replace(state, state[:-1] + ("A" if state[-1] != "A" else "B")),
        "/oauth/oidc/callback?code=x",
        f"{back}&code=again",
    ):
        refused = await program.http.get(forged)
        assert refused.status_code in (400, 404), forged
        assert_closed(refused, "'none'")
    assert (await program.http.get(back)).status_code == 200
    again = await program.http.get(back)
    assert again.status_code == 404
    assert "start again" in again.text


async def test_the_latest_way_out_is_the_one_that_counts(open_api: Served, idp: Provider) -> None:
    program = await Program.register(open_api.anonymous)
    secret = query_of(await program.authorize())["request"]
    addresses = [
        (await program.http.get(f"/oauth/oidc/start?request={secret}")).headers["location"] for _ in range(2)
    ]
    first, second = [await at_provider(address) for address in addresses]
    assert (await program.http.get(first)).status_code == 404
    assert (await program.http.get(second)).status_code == 200


async def test_a_code_of_another_sign_in_is_refused(open_api: Served, idp: Provider) -> None:
    """PKCE and nonce bind a code to the request that it was made for."""
    program = await Program.register(open_api.anonymous)
    own, stolen = [await at_provider(await sent_out(program)) for _ in range(2)]
    code, other = [dict(parse_qsl(urlsplit(back).query))["code"] for back in (own, stolen)]
    page = await program.http.get(own.replace(code, other))
    assert page.status_code == 403
    assert "did not take the code" in page.text


async def test_an_answer_of_another_provider_is_refused(open_api: Served, idp: Provider) -> None:
    idp.wrong_issuer_parameter = True
    program = await Program.register(open_api.anonymous)
    assert (await signed_in(program)).status_code == 403
    back = await at_provider(await sent_out(program))
    # This one says that it always names itself.
    without = re.sub(r"&iss=[^&]*", "", back)
    assert without != back
    assert (await program.http.get(without)).status_code == 403
    assert "/token" not in idp.asked


async def test_who_goes_back_can_sign_in_another_way(open_api: Served, idp: Provider) -> None:
    idp.deny = True
    program = await Program.register(open_api.anonymous)
    page = await signed_in(program)
    assert page.status_code == 403
    assert "did not let you in, or you went back" in page.text
    request = hidden(page, "request")
    assert hidden(await program.sign_in(request, open_api.key), "consent")


# Keys and outages -----------------------------------------------------------------------------------


async def test_a_new_key_of_the_provider_is_fetched_when_it_is_needed(
    open_api: Served, idp: Provider
) -> None:
    settings, clock = Settings(**{**settings_for(idp), "data_dir": Path("/none")}), Ticking()
    client = IdentityProvider(settings, clock)

    async def subject() -> str:
        address, expected = await client.request("http://localhost/oauth/oidc/callback", "s" * 43)
        back = await at_provider(address)
        code = dict(parse_qsl(urlsplit(back).query))["code"]
        return (await client.identity(code, expected)).subject

    assert await subject() == SUBJECT
    assert await subject() == SUBJECT
    assert idp.asked.count("/jwks") == 1
    idp.rotate()
    # A flood of tokens with unknown keys is no flood of requests.
    with pytest.raises(Exception, match="ID token is not good"):
        await subject()
    assert idp.asked.count("/jwks") == 1
    clock.offset += timedelta(seconds=31)
    assert await subject() == SUBJECT
    assert idp.asked.count("/jwks") == 2
    assert idp.asked.count("/.well-known/openid-configuration") == 1


class Ticking(SystemClock):
    """The machine's time, a little later."""

    offset = timedelta()

    def now(self):
        return super().now() + self.offset


async def test_a_provider_that_is_down_is_said_and_the_other_ways_stay(
    open_api: Served, idp: Provider
) -> None:
    idp.broken = True
    program = await Program.register(open_api.anonymous)
    request = query_of(await program.authorize())["request"]
    page = await program.http.get(f"/oauth/oidc/start?request={request}")
    assert page.status_code == 503
    assert "cannot be reached" in page.text
    assert page.headers["retry-after"] == "10"
    assert hidden(await program.sign_in(request, open_api.key), "consent")
    idp.broken = False
    assert (await program.http.get(f"/oauth/oidc/start?request={request}")).status_code == 303


async def test_a_provider_of_another_name_is_not_used(tmp_path: Path, idp: Provider) -> None:
    port = urlsplit(idp.issuer).port
    settings = {**settings_for(idp), "oidc_issuer": f"http://localhost:{port}"}
    async with served(tmp_path, **settings) as api:
        program = await Program.register(api.anonymous)
        request = query_of(await program.authorize())["request"]
        page = await program.http.get(f"/oauth/oidc/start?request={request}")
        assert page.status_code == 503
        assert "oidc_issuer" in page.text


@pytest.mark.parametrize(
    ("name", "endpoint"),
    [
        ("jwks_uri", "file:///etc/passwd"),
        ("token_endpoint", None),
        ("authorization_endpoint", "javascript:alert(1)"),
    ],
)
async def test_a_provider_with_odd_endpoints_is_not_used(
    api: Served, idp: Provider, name: str, endpoint: str | None
) -> None:
    idp.endpoints = {name: endpoint}
    program = await Program.register(api.anonymous)
    request = query_of(await program.authorize())["request"]
    page = await program.http.get(f"/oauth/oidc/start?request={request}")
    assert page.status_code == 503
    assert "location" not in page.headers


async def test_a_provider_with_https_has_no_endpoint_without(
    idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = "https://login.example"
    settings = Settings(**{**settings_for(idp), "oidc_issuer": issuer, "data_dir": Path("/none")})
    document = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/jwks",
    }

    async def address(**changes: str) -> str:
        async def fetched(self: IdentityProvider, _: str) -> dict[str, str]:
            return {**document, **changes}

        monkeypatch.setattr(IdentityProvider, "_fetched", fetched)
        return (await IdentityProvider(settings, SystemClock()).request("http://localhost", "s"))[0]

    assert (await address()).startswith(f"{issuer}/authorize?")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        with pytest.raises(Unavailable):
            await address(**{name: "http://login.example/x"})


async def test_any_server_of_the_database_takes_the_answer(tmp_path: Path, idp: Provider) -> None:
    loaded = load_settings(
        {"data_dir": str(tmp_path), **FAST, **settings_for(idp, oidc_accounts="create")}, {}
    )
    async with served(tmp_path, **settings_for(idp, oidc_accounts="create")) as api:
        back = await at_provider(await sent_out(await Program.register(api.anonymous)))
        other = await open_services(loaded.settings)
        transport = httpx2.ASGITransport(app=build_app(other))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            assert hidden(await http.get(back), "consent")
        await other.close()


# Links ----------------------------------------------------------------------------------------------


async def test_only_operators_link_and_an_identity_is_one_persons(api: Served) -> None:
    people = await settled(api)
    identities, issuer = api.services.identities, api.services.settings.oidc_issuer
    ada = await api.services.access.principal_of(people.users["ada"])
    with pytest.raises(Forbidden):
        await identities.link(ada, "ada", issuer, SUBJECT)
    await link(api, "ada")
    with pytest.raises(Conflict):
        await link(api, "ben")
    _, [own] = await identities.list(ada, None)
    assert (own.subject, own.user_id) == (SUBJECT, ada.user_id)
    with pytest.raises(Forbidden):
        await identities.list(ada, "ben")
    with pytest.raises(InvalidInput, match="/subject"):
        await link(api, "ben", " ")
    await identities.unlink(ada, None, issuer + "/", SUBJECT)
    with pytest.raises(NotFound):
        await identities.unlink(ada, None, issuer, SUBJECT)
    assert (await signed_in(await Program.register(api.anonymous))).status_code == 403


async def test_links_are_made_over_rest_too(api: Served) -> None:
    await settled(api)
    owner = await api.services.access.local_principal()
    key, _ = await api.services.keys.create(owner, name="admin", admin=True)
    headers, address = bearer(key), "/api/v1/admin/users/ada/identities"
    sent = {"issuer": "https://login.example/", "subject": "5"}
    made = await api.anonymous.post(address, json=sent, headers=headers)
    assert (made.status_code, made.json()["issuer"]) == (200, "https://login.example")
    assert (await api.anonymous.get(address, headers=headers)).json()["count"] == 1
    gone = await api.anonymous.delete(address, params=sent, headers=headers)
    assert gone.json()["removed"] is True
    assert (await api.anonymous.get(address, headers=headers)).json()["count"] == 0


# Settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "issuer",
    [
        "login.example",
        "http://login.example",
        "https://login.example/?a=b",
        "https://login.example/#a",
        "https://me@login.example",
        "https://",
        "https://login.example:port",
    ],
)
def test_an_issuer_is_an_https_address(issuer: str) -> None:
    with pytest.raises(InvalidInput, match="oidc_issuer"):
        Settings(oidc_issuer=issuer, oidc_client_id="x")


def test_other_settings_of_a_provider_are_checked() -> None:
    Settings(oidc_issuer="https://login.example/realms/all", oidc_client_id="x")
    with pytest.raises(InvalidInput, match="oidc_client_id"):
        Settings(oidc_issuer="https://login.example")
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        Settings(oidc_required_claim="groups")


async def test_without_the_extra_the_server_says_what_to_install(
    tmp_path: Path, idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings({"data_dir": str(tmp_path), **FAST, **settings_for(idp)}, {}).settings
    services = await open_services(settings)
    name = "hivemem.surfaces.oauth.identity_provider"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "authlib.oidc.core", None)
    with pytest.raises(InvalidInput, match=r"hivemem\[oidc\]"):
        build_app(services)
    monkeypatch.undo()
    build_app(replace(services, settings=replace(settings, oidc_issuer="")))
    await services.close()

"""The page of an invitation: with an account, with a new one, at an identity provider, and only once."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.domain.accounts import Role
from tests.oauth.flow import Program, hidden
from tests.oauth.people import PASSWORD, People, settled
from tests.oauth.provider import Person, provider
from tests.oauth.test_oidc import at_provider, settings_for
from tests.oauth.test_pages import Accessible, assert_closed
from tests.surfaces.serving import Served, served

NEW_PASSWORD = "some other ordinary words"


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with served(tmp_path, rate_limit_sign_in_per_minute=0) as api:
        yield await settled(api)


async def invite(people: People, role: Role = Role.MEMBER) -> str:
    owner = await people.operator()
    return (await people.api.services.organizations.invite(owner, "Acme", role))[0]


async def opened(people: People, secret: str) -> httpx2.Response:
    return await people.api.anonymous.get("/join", params={"invitation": secret})


async def submitted(people: People, secret: str, way: str, name: str, password: str) -> httpx2.Response:
    sent = {"invitation": secret, "way": way, "name": name, "password": password}
    return await people.api.anonymous.post("/join", data=sent)


async def members(people: People) -> dict[str, Role]:
    found = await people.api.services.store.members(people.acme.organization_id)
    return {member.name: member.role for member in found}


async def test_the_page_says_what_one_is_invited_to(people: People) -> None:
    page = await opened(people, await invite(people, Role.ADMIN))
    assert page.status_code == 200
    assert_closed(page, "'self'")
    Accessible(page).check()
    assert "<h1>Join Acme</h1>" in page.text
    assert "with the role <strong>admin</strong>" in page.text
    assert "oidc" not in page.text


async def test_somebody_with_an_account_joins_once(people: People) -> None:
    secret = await invite(people)
    page = await submitted(people, secret, "password", "eve", PASSWORD)
    assert page.status_code == 200
    assert_closed(page, "'none'")
    Accessible(page).check()
    assert "You have joined as member" in page.text
    assert (await members(people))["eve"] is Role.MEMBER
    for again in (
        await opened(people, secret),
        await submitted(people, secret, "password", "eve", PASSWORD),
        await submitted(people, secret, "new", "mallory", NEW_PASSWORD),
    ):
        assert again.status_code == 404
        assert_closed(again, "'none'")
        assert "ask for a new one" in again.text
    assert await people.api.services.store.user_by_name("mallory") is None
    [event] = await people.events("invitation.accept")
    assert event.user_id == people.users["eve"].user_id


async def test_a_wrong_password_is_told_and_leaves_the_invitation(people: People) -> None:
    secret = await invite(people)
    for name, password in (("eve", "wrong"), ("nobody", PASSWORD)):
        page = await submitted(people, secret, "password", name, password)
        assert page.status_code == 403
        assert "The name or the password is not right" in page.text
        assert password not in page.text
        assert hidden(page, "invitation") == secret
    assert "eve" not in await members(people)
    assert (await opened(people, secret)).status_code == 200


async def test_somebody_new_makes_an_account_and_signs_in_with_it(people: People) -> None:
    page = await submitted(people, await invite(people), "new", " Grace Hopper ", NEW_PASSWORD)
    assert page.status_code == 200
    assert (await members(people))["Grace Hopper"] is Role.MEMBER
    user = await people.api.services.store.user_by_name("Grace Hopper")
    assert user is not None and not user.operator
    program = await Program.register(people.api.anonymous)
    consent = await program.consent_page_of("Grace Hopper", NEW_PASSWORD)
    assert "Acme (organization)" in consent.text


@pytest.mark.parametrize(
    ("name", "password", "told"),
    [
        ("ada", NEW_PASSWORD, "taken"),
        ("", NEW_PASSWORD, "The name has 0 characters"),
        ("x" * 101, NEW_PASSWORD, "The name has 101 characters"),
        ("user_" + "0" * 20, NEW_PASSWORD, "is an id"),
        ("two\nlines", NEW_PASSWORD, "line breaks"),
        ("grace", "short", "The password has 5 characters"),
        ("grace", "", "The password has 0 characters"),
    ],
)
async def test_an_account_that_cannot_be_is_told_and_not_made(
    people: People, name: str, password: str, told: str
) -> None:
    secret = await invite(people)
    before = len(await people.api.services.store.users())
    page = await submitted(people, secret, "new", name, password)
    assert page.status_code == 403
    assert told in unescape(page.text)
    assert len(await people.api.services.store.users()) == before
    assert (await opened(people, secret)).status_code == 200


async def test_of_many_at_once_one_joins_and_nobody_else_keeps_an_account(people: People) -> None:
    secret = await invite(people)
    names = [f"new {number}" for number in range(4)]
    pages = await asyncio.gather(*(submitted(people, secret, "new", name, NEW_PASSWORD) for name in names))
    assert sorted(page.status_code for page in pages) == [200, 404, 404, 404]
    users = {user.name for user in await people.api.services.store.users()}
    joined = {name for name in names if name in await members(people)}
    assert len(joined) == 1
    assert users & set(names) == joined


async def test_accounts_by_invitation_can_be_off(tmp_path: Path) -> None:
    async with served(tmp_path, accounts_by_invitation="off") as api:
        people = await settled(api)
        secret = await invite(people)
        assert "new-password" not in (await opened(people, secret)).text
        refused = await submitted(people, secret, "new", "grace", NEW_PASSWORD)
        assert refused.status_code == 403
        assert await api.services.store.user_by_name("grace") is None
        assert (await submitted(people, secret, "password", "eve", PASSWORD)).status_code == 200


@pytest.mark.parametrize("secret", ["", "inv_unknown", "x" * 500, "\x00", "inv_" + "A" * 43])
async def test_an_unknown_invitation_is_a_page(people: People, secret: str) -> None:
    page = await opened(people, secret)
    assert page.status_code in (400, 404)
    assert_closed(page, "'none'")


async def test_an_invitation_ends_by_time_and_when_it_is_taken_back(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, services = await people.operator(), people.api.services
    secret, invitation = await services.organizations.invite(owner, "Acme", Role.MEMBER, 1)
    clock = type(services.clock)
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda self: now(self) + timedelta(days=1, seconds=1))
    assert (await submitted(people, secret, "password", "eve", PASSWORD)).status_code == 404
    monkeypatch.undo()
    assert (await opened(people, secret)).status_code == 200
    await services.organizations.withdraw(owner, "Acme", invitation.hash[:12])
    assert (await opened(people, secret)).status_code == 404


async def test_a_page_of_others_cannot_send_the_form(people: People) -> None:
    secret = await invite(people)
    sent = {"invitation": secret, "way": "password", "name": "eve", "password": PASSWORD}
    foreign = await people.api.anonymous.post("/join", data=sent, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert "eve" not in await members(people)
    assert "set-cookie" not in (await opened(people, secret)).headers


async def test_the_secret_is_in_no_log(people: People, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = await invite(people)
    await opened(people, secret)
    await submitted(people, secret, "password", "eve", "wrong words")
    await submitted(people, secret, "password", "eve", PASSWORD)
    await opened(people, secret)
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("httpx")]
    logged = "\n".join(ours) + repr(await people.events("invitation.accept"))
    assert secret not in logged and PASSWORD not in logged


async def test_attempts_to_join_count_as_sign_ins(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        people = await settled(api)
        secret = await invite(people)
        pages = [await submitted(people, secret, "password", "eve", "wrong") for _ in range(11)]
        assert [page.status_code for page in pages] == [403] * 10 + [429]


# At an identity provider ----------------------------------------------------------------------------


async def come_back(api: Served, page: httpx2.Response) -> httpx2.Response:
    """The page after the way to the provider that a page of an invitation links to."""
    start = re.search(r'<a href="(/oauth/oidc/start\?invitation=[^"]*)">', page.text)
    assert start is not None, page.text
    out = await api.anonymous.get(unescape(start[1]))
    return await api.anonymous.get(await at_provider(out.headers["location"]))


async def confirmed(api: Served, page: httpx2.Response, **changes: Any) -> httpx2.Response:
    sent = {"way": "confirm", "decision": "join"}
    sent |= {name: hidden(page, name) for name in ("request", "consent")} | changes
    return await api.anonymous.post("/join", data=sent)


async def test_somebody_joins_with_an_account_at_the_provider(tmp_path: Path) -> None:
    with provider(Person("subject-9", {"preferred_username": "grace"})) as idp:
        async with served(tmp_path, **settings_for(idp)) as api:
            people = await settled(api)
            secret = await invite(people)
            page = await come_back(api, await opened(people, secret))
            assert page.status_code == 200
            assert_closed(page, "'self'")
            Accessible(page).check()
            assert "<h1>Join Acme</h1>" in page.text and "<strong>grace</strong>" in page.text
            # Signing in is not joining, and no page of others knows what this one knows.
            assert "grace" not in await members(people)
            for forged in ({"consent": "x" * 43}, {"request": "x" * 43}):
                assert (await confirmed(api, page, **forged)).status_code == 404
            assert "You have joined" in (await confirmed(api, page)).text
            assert (await members(people))["grace"] is Role.MEMBER
            assert (await confirmed(api, page)).status_code == 404
            assert (await opened(people, secret)).status_code == 404


async def test_a_sign_in_for_an_invitation_lets_no_program_in(tmp_path: Path) -> None:
    with provider(Person("subject-9")) as idp:
        async with served(tmp_path, **settings_for(idp)) as api:
            people = await settled(api)
            page = await come_back(api, await opened(people, await invite(people)))
            sent = {name: hidden(page, name) for name in ("request", "consent")}
            for decision in ("allow", "deny"):
                answer = await api.anonymous.post("/oauth/consent", data={**sent, "decision": decision})
                assert answer.status_code == 404
                assert "location" not in answer.headers
            shown = await api.anonymous.get(f"/oauth/sign-in?request={sent['request']}")
            assert shown.status_code == 404
            by_key = {"request": sent["request"], "way": "api_key", "api_key": api.key}
            assert (await api.anonymous.post("/oauth/sign-in", data=by_key)).status_code == 404
            # Nobody can ask for access in the name of these pages.
            asked = {"client_id": "hivemem-pages", "response_type": "code", "redirect_uri": ""}
            for uri in ("", "http://127.0.0.1:1", "/join"):
                answer = await api.anonymous.get("/authorize", params={**asked, "redirect_uri": uri})
                assert answer.status_code == 400
            assert "You have joined" in (await confirmed(api, page)).text


async def test_who_says_no_does_not_join(tmp_path: Path) -> None:
    with provider(Person("subject-9")) as idp:
        async with served(tmp_path, **settings_for(idp)) as api:
            people = await settled(api)
            secret = await invite(people)
            page = await come_back(api, await opened(people, secret))
            assert "Nothing was changed" in (await confirmed(api, page, decision="no")).text
            assert (await confirmed(api, page)).status_code == 404
            assert sorted(await members(people)) == ["ada", "ben"]
            assert (await opened(people, secret)).status_code == 200


async def test_without_accounts_by_invitation_the_provider_makes_none(tmp_path: Path) -> None:
    with provider(Person("subject-9")) as idp:
        async with served(tmp_path, **settings_for(idp, accounts_by_invitation="off")) as api:
            people = await settled(api)
            page = await come_back(api, await opened(people, await invite(people)))
            assert page.status_code == 403
            assert "Open the invitation again" in page.text
            assert len(await api.services.store.users()) == 4

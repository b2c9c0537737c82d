"""Sign-in with name and password: who gets in, what they can let a program into, and what the log says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from hivemem.domain.accounts import AuditQuery
from tests.oauth.flow import Program, hidden, query_of
from tests.oauth.people import PASSWORD, People, settled
from tests.surfaces.serving import REST, Served, bearer, served

ADMIN = "/api/v1/admin"
EVERYTHING = "memory:read memory:write memory:admin"


@pytest.fixture
async def people(api: Served) -> People:
    return await settled(api)


@pytest.fixture
async def calm(tmp_path: Path) -> AsyncIterator[People]:
    """A server that limits no address, so that the limit of a name is seen."""
    async with served(tmp_path / "calm", rate_limit_sign_in_per_minute=0) as running:
        yield await settled(running)


def choices(page: httpx2.Response) -> list[tuple[str, str]]:
    found = re.findall(r'<option value="([^"]*)">([^<]*)</option>', page.text)
    return [(unescape(value), unescape(label)) for value, label in found]


async def test_a_person_signs_in_and_a_program_works_in_their_memory(
    people: People, program: Program
) -> None:
    tokens = await program.tokens_of(" ada ", PASSWORD)
    assert tokens["scope"] == "memory:read memory:write"
    headers = bearer(tokens["access_token"])
    stored = await program.http.post(
        f"{REST}/store", json={"key": "fact_a", "description": "Ada's."}, headers=headers
    )
    assert stored.status_code == 200
    [grant] = await people.api.services.store.grants(people.users["ada"].user_id)
    assert (grant.key_id, grant.graph_id) == (None, people.default["ada"].graph_id)
    own = await people.api.services.store.nodes(people.default["ada"].graph_id, ["fact_a"])
    assert len(own) == 1
    # Her token says who she is, not who runs the server.
    assert (await program.http.get(f"{ADMIN}/users", headers=headers)).status_code == 403


async def test_wrong_passwords_get_one_answer_whether_or_not_there_is_such_a_user(
    people: People, program: Program
) -> None:
    request = query_of(await program.authorize())["request"]
    no_password, _ = await people.api.services.people.add_user(await people.operator(), "keys only")
    pages: list[str] = []
    for name, password in (
        ("ada", "not her password"),
        ("ada", ""),
        ("ada", PASSWORD.upper()),
        ("nobody", PASSWORD),
        ("keys only", ""),
        ("nul\x00", PASSWORD),
        ("", ""),
    ):
        page = await program.sign_in_as(request, name, password)
        assert page.status_code == 403
        pages.append(page.text)
    assert len(set(pages)) == 1
    assert "the name or the password is not right" in pages[0]
    failed = await people.events("sign_in.failed")
    assert [event.target for event in reversed(failed)] == [
        *[people.users["ada"].user_id] * 3,
        None,
        no_password.user_id,
        None,
        None,
    ]
    assert all(event.user_id is None and event.detail == {"way": "password"} for event in failed)
    assert "nobody" not in repr(failed) and PASSWORD not in repr(failed)
    assert hidden(await program.sign_in_as(request, "ada", PASSWORD), "consent")


@pytest.mark.parametrize("changed", ["before", "during"])
async def test_a_new_password_ends_what_an_open_consent_page_could_give(
    people: People, program: Program, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    page = await program.consent_page_of("ada", PASSWORD)
    services, store = people.api.services, people.api.services.store

    async def new_password() -> None:
        operator = await people.operator()
        await services.people.change_user(operator, "ada", password="some other ordinary words")

    if changed == "before":
        await new_password()
    else:
        # At the worst moment: between the grant, and the look at the password.
        allow_sign_in = store.allow_sign_in

        async def allowed_then_changed(*arguments: object) -> bool:
            allowed = await allow_sign_in(*arguments)
            await new_password()
            return allowed

        monkeypatch.setattr(store, "allow_sign_in", allowed_then_changed)
    answer = await program.decide(page)
    assert answer.status_code == 404
    assert "the password was changed" in answer.text
    assert all(grant.revoked_at for grant in await store.grants(people.users["ada"].user_id))
    assert await people.events("grant.create") == []
    # A sign-in with a key has nothing to do with the password.
    assert query_of(await program.decide(await program.consent_page(people.api.key)))["code"]


async def test_every_attempt_costs_a_check_of_a_password(
    people: People, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of an answer is that of argon2id, which is asked once, known name or not."""
    passwords, asked = people.api.services.passwords, []
    matches = passwords.matches

    async def counting(user: object, password: str) -> bool:
        asked.append(user is None)
        return await matches(user, password)

    monkeypatch.setattr(passwords, "matches", counting)
    request = query_of(await program.authorize())["request"]
    for name in ("ada", "nobody"):
        await program.sign_in_as(request, name, "wrong")
    assert asked == [False, True]


async def test_a_name_is_tried_twenty_times_from_wherever(calm: People) -> None:
    program = await Program.register(calm.api.anonymous)
    request = query_of(await program.authorize())["request"]
    for name in ("ada", "nobody"):
        statuses = [(await program.sign_in_as(request, name, "wrong")).status_code for _ in range(21)]
        assert statuses == [403] * 20 + [429]
        late = await program.sign_in_as(request, name, PASSWORD)
        assert late.status_code == 429
        assert 1 <= int(late.headers["retry-after"]) <= 45
    # Others are not held up, and neither is she by another way.
    assert hidden(await program.sign_in_as(request, "ben", PASSWORD), "consent")
    assert hidden(await program.sign_in(request, calm.api.key), "consent")


async def test_the_consent_page_offers_the_memories_that_the_person_reaches(
    people: People, program: Program
) -> None:
    page = await program.consent_page_of("ada", PASSWORD)
    assert choices(page) == [
        (people.default["ada"].graph_id, "default (yours)"),
        (people.second.graph_id, "work & play (yours)"),
        (people.acme.graph_id, "Acme (organization)"),
    ]
    assert "signed in as <strong>ada</strong>" in page.text
    assert [label for _, label in choices(await program.consent_page_of("ben", PASSWORD))] == [
        "default (yours)",
        "Acme (organization)",
    ]
    # Nothing to choose: with one memory, and with a key, which is for one.
    assert choices(await program.consent_page_of("eve", PASSWORD)) == []
    assert choices(await program.consent_page(people.api.key)) == []


async def test_the_chosen_memory_is_the_one_of_the_grant(people: People, program: Program) -> None:
    tokens = await program.tokens_of("ada", PASSWORD, people.second.graph_id)
    body = {"key": "fact_b", "description": "In the second."}
    stored = await program.http.post(f"{REST}/store", json=body, headers=bearer(tokens["access_token"]))
    assert stored.status_code == 200
    store = people.api.services.store
    assert len(await store.nodes(people.second.graph_id, ["fact_b"])) == 1
    assert len(await store.nodes(people.default["ada"].graph_id, ["fact_b"])) == 0


async def test_a_member_reads_the_organizations_memory_and_an_owner_writes_it(
    people: People, program: Program
) -> None:
    body = {"key": "policy", "description": "Acme's."}
    statuses: dict[str, list[int]] = {}
    for name in ("ada", "ben"):
        tokens = await program.tokens_of(name, PASSWORD, people.acme.graph_id)
        headers = bearer(tokens["access_token"])
        statuses[name] = [
            (await program.http.post(f"{REST}/store", json=body, headers=headers)).status_code,
            (await program.http.get(f"{REST}/overview", headers=headers)).status_code,
        ]
    assert statuses == {"ada": [200, 200], "ben": [403, 200]}
    # The membership ends, and with it what was granted at the organization's memory.
    owner = await people.operator()
    await people.api.services.organizations.remove_member(owner, "Acme", "ben")
    assert (await program.http.get(f"{REST}/overview", headers=headers)).status_code == 401


@pytest.mark.parametrize("whose", ["another user's", "an organization's of others", "nobody's"])
async def test_a_form_cannot_choose_what_the_person_does_not_reach(
    people: People, program: Program, whose: str
) -> None:
    graph = {
        "another user's": people.default["ada"].graph_id,
        "an organization's of others": people.acme.graph_id,
        "nobody's": "graph_00000000000000000000",
    }[whose]
    page = await program.consent_page_of("eve", PASSWORD)
    refused = await program.decide(page, graph=graph)
    assert refused.status_code == 403
    assert "location" not in refused.headers
    assert await people.api.services.store.grants(people.users["eve"].user_id) == []
    # A key's grant is for the graph of the key, even where its user has others.
    by_key = await program.consent_page(people.api.key)
    assert (await program.decide(by_key, graph=graph)).status_code == 403


async def test_what_a_key_grants_stays_at_the_memory_of_the_key(people: People, program: Program) -> None:
    owner, services = await people.operator(), people.api.services
    key, _ = await services.keys.create(owner, name="ada's", user="ada")
    page = await program.consent_page(key)
    # It is hers too, but not what she made the key for.
    assert (await program.decide(page, graph=people.second.graph_id)).status_code == 403
    decided = await program.decide(page, graph=people.default["ada"].graph_id)
    assert query_of(decided)["code"]


async def test_a_program_may_name_another_memory_of_the_person_and_none_of_others(
    people: People, program: Program
) -> None:
    headers = bearer((await program.tokens_of("ada", PASSWORD))["access_token"])

    async def status(graph: str, credential: dict[str, str]) -> int:
        sent = {**credential, "X-Graph-Id": graph}
        return (await program.http.get(f"{REST}/overview", headers=sent)).status_code

    own = (people.default["ada"].graph_id, people.second.graph_id, people.acme.graph_id)
    assert [await status(graph, headers) for graph in own] == [200, 200, 200]
    foreign = (people.default["ben"].graph_id, "graph_00000000000000000000", "x")
    assert [await status(graph, headers) for graph in foreign] == [403, 403, 403]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "hm_store", "arguments": {"key": "fact_m", "description": "Over MCP."}}
    sent = {**headers, "X-Graph-Id": people.second.graph_id}
    assert (await program.http.post("/mcp", json=call, headers=sent)).status_code == 200
    assert len(await people.api.services.store.nodes(people.second.graph_id, ["fact_m"])) == 1
    refused = await program.http.post("/mcp", json=call, headers={**headers, "X-Graph-Id": foreign[0]})
    assert refused.status_code == 403
    # What hangs on a key stays at the key's graph.
    by_key = bearer((await program.tokens(people.api.key))["access_token"])
    assert await status(people.second.graph_id, by_key) == 403


async def test_the_administration_is_asked_for_by_name_and_with_a_warning(
    people: People, program: Program
) -> None:
    quiet = await program.consent_page_of("ada", PASSWORD)
    assert "memory:admin" not in quiet.text and 'class="warning"' not in quiet.text
    page = await program.consent_page_of("ada", PASSWORD, scope=EVERYTHING)
    assert re.findall(r"<code>(memory:\w+)</code>", page.text) == EVERYTHING.split()
    assert '<strong class="warning">administer in your name</strong>' in page.text
    tokens = await program.tokens_of("ada", PASSWORD, scope=EVERYTHING)
    headers = bearer(tokens["access_token"])
    listed = await program.http.get(f"{ADMIN}/graphs", headers=headers)
    assert {graph["name"] for graph in listed.json()["graphs"]} >= {"default", "work & play"}
    # As far as she may herself.
    assert (
        await program.http.post(f"{ADMIN}/users", json={"name": "mallory"}, headers=headers)
    ).status_code == 403


async def test_a_new_password_ends_what_was_granted_with_the_old_one(
    people: People, program: Program
) -> None:
    tokens = await program.tokens_of("ada", PASSWORD)
    services = people.api.services
    await services.people.change_user(await people.operator(), "ada", password="another four ordinary words")
    overview = await program.http.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert overview.status_code == 401
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await program.consent_page_of("ada", PASSWORD)).status_code == 403


async def test_a_removed_user_has_no_program_left(people: People, program: Program) -> None:
    tokens = await program.tokens_of("eve", PASSWORD)
    page = await program.consent_page_of("eve", PASSWORD)
    await people.api.services.people.remove_user(await people.operator(), "eve")
    overview = await program.http.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert overview.status_code == 401
    assert (await program.refresh(tokens["refresh_token"])).status_code == 400
    # The page that was shown before is good for nothing more.
    assert (await program.decide(page)).status_code == 404


async def test_a_code_or_refresh_token_that_comes_again_ends_the_grant_and_is_logged(
    people: People, program: Program
) -> None:
    code = query_of(await program.decide(await program.consent_page_of("ada", PASSWORD)))["code"]
    first = (await program.exchange(code)).json()
    assert (await program.exchange(code)).json()["error"] == "invalid_grant"
    overview = await program.http.get(f"{REST}/overview", headers=bearer(first["access_token"]))
    assert overview.status_code == 401
    [event] = await people.events("grant.reuse")
    assert event.user_id == people.users["ada"].user_id
    assert event.detail == {"client_id": program.client_id, "of": "code"}


async def test_signing_in_granting_and_ending_are_in_the_log_with_where_they_came_from(
    people: People, program: Program
) -> None:
    tokens = await program.tokens_of("ada", PASSWORD)
    sent = {"token": tokens["refresh_token"], "client_id": program.client_id}
    for _ in range(2):
        await program.http.post("/revoke", data=sent)
    ada = people.users["ada"].user_id
    [signed_in] = await people.events("sign_in.ok")
    [created] = await people.events("grant.create")
    [revoked] = await people.events("grant.revoke")
    assert signed_in.user_id == created.user_id == revoked.user_id == ada
    assert created.target == revoked.target is not None
    assert created.graph_id == people.default["ada"].graph_id
    assert created.detail["scopes"] == ["memory:read", "memory:write"]
    for event in (signed_in, created, revoked):
        assert (event.address, len(event.request_id) > 8) == ("127.0.0.1", True)
    logged = repr(await people.api.services.audit.read(await people.operator(), AuditQuery(limit=1000)))
    for secret in (PASSWORD, tokens["access_token"], tokens["refresh_token"], "four quite"):
        assert secret not in logged


# Grants, as people and operators see them -----------------------------------------------------------


async def test_people_see_and_end_their_own_grants(people: People, program: Program) -> None:
    headers = {
        name: bearer((await program.tokens_of(name, PASSWORD, scope=EVERYTHING))["access_token"])
        for name in ("ada", "ben")
    }

    async def listed(name: str, **query: str) -> httpx2.Response:
        return await program.http.get(f"{ADMIN}/grants", params=query, headers=headers[name])

    own = (await listed("ada")).json()
    assert own["count"] == 1
    [grant] = own["grants"]
    assert grant["program"] == "Agent"
    assert grant["user_id"] == people.users["ada"].user_id
    assert (await listed("ada", user="me")).json() == own
    assert (await listed("ada", user="ben")).status_code == 403
    address = f"{ADMIN}/grants/{grant['grant_id']}"
    assert (await program.http.delete(address, headers=headers["ben"])).status_code == 404
    gone = await program.http.delete(address, headers=headers["ada"])
    assert gone.json() == {"grant_id": grant["grant_id"], "revoked": True}
    assert (await listed("ada")).status_code == 401
    # Who runs the server sees and ends everybody's.
    operator = await people.operator()
    grants = people.api.services.grants
    found = await grants.list(operator)
    assert {one.grant.user_id for one in found} == {people.users[name].user_id for name in ("ada", "ben")}
    [other] = await grants.list(operator, "ben")
    await grants.revoke(operator, other.grant.grant_id)
    assert (await listed("ben")).status_code == 401

"""Codes, tokens and their ends, on every store and with a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from hivemem.domain.access import Scope
from hivemem.domain.accounts import AuditQuery
from hivemem.domain.oauth import AuthorizationRequest, ClientAuthentication, Identity, OAuthClient
from hivemem.errors import Forbidden, InvalidInput, NotFound, Unauthorized
from hivemem.ports.store import Store
from hivemem.service.audit import AuditLog
from hivemem.service.consenting import Consenting
from hivemem.service.grants import Grants
from hivemem.service.oauth import InvalidGrant, IssuedTokens, OAuth
from tests.conformance.store.backends import BACKENDS, Backend
from tests.oauth.flow import CHALLENGE, REDIRECT, VERIFIER
from tests.support.builders import FixedClock, graph, user
from tests.support.desk import Desk

BASE = "http://localhost:8477"
READ_WRITE = ("memory:read", "memory:write")


@dataclass
class World:
    """A server with a key, and a program that registered with it."""

    store: Store
    clock: FixedClock
    oauth: OAuth
    consenting: Consenting
    access: Desk
    key: str
    key_id: str
    client: OAuthClient

    async def identity(self) -> Identity:
        key, _ = await self.access.active_key(self.key)
        return Identity(
            user_id=key.user_id,
            graph_id=key.graph_id,
            scope=key.scope,
            admin=key.admin,
            key_id=key.key_id,
        )

    async def begin(self, scopes: tuple[str, ...] = READ_WRITE, state: str | None = None) -> str:
        request = AuthorizationRequest(
            client_id=self.client.client_id,
            redirect_uri=REDIRECT,
            redirect_uri_given=True,
            code_challenge=CHALLENGE,
            state=state,
            scopes=scopes,
            resource=f"{BASE}/mcp",
        )
        return await self.consenting.begin(request)

    async def code(self, scopes: tuple[str, ...] = READ_WRITE) -> str:
        secret = await self.begin(scopes)
        consent = await self.consenting.identify(secret, await self.identity())
        return (await self.consenting.allow(secret, consent))[1]

    async def exchange(self, code: str, client: OAuthClient | None = None) -> IssuedTokens:
        return await self.oauth.exchange_code(
            client or self.client, code, verifier=VERIFIER, redirect_uri=REDIRECT
        )

    async def tokens(self, scopes: tuple[str, ...] = READ_WRITE) -> IssuedTokens:
        return await self.exchange(await self.code(scopes))

    async def works(self, tokens: IssuedTokens, address: str = BASE) -> bool:
        try:
            await self.access.authenticate(tokens.access, address=address)
        except Unauthorized:
            return False
        return True

    async def end(self, grant_id: str) -> None:
        audit = AuditLog(store=self.store, clock=self.clock)
        grants = Grants(store=self.store, audit=audit, clock=self.clock)
        await grants.revoke(await self.access.local_principal(), grant_id)

    async def registered(self, **changes: object) -> OAuthClient:
        fields: dict[str, object] = {
            "name": "Agent",
            "redirect_uris": (REDIRECT,),
            "grant_types": ("authorization_code", "refresh_token"),
            "scopes": READ_WRITE,
            "authentication": ClientAuthentication.NONE,
            **changes,
        }
        client, _ = await self.oauth.register(**fields)  # type: ignore[arg-type]
        return client


def opened(store: Store, clock: FixedClock) -> OAuth:
    return OAuth(store=store, audit=AuditLog(store=store, clock=clock), clock=clock)


async def world_on(store: Store, clock: FixedClock, scope: Scope = Scope.OWNER) -> World:
    access, oauth = Desk(store, clock), opened(store, clock)
    consenting = Consenting(store=store, oauth=oauth, audit=AuditLog(store=store, clock=clock), clock=clock)
    await access.ensure_owner()
    secret, key = await access.create_key("agent", scope)
    world = World(store, clock, oauth, consenting, access, secret, key.key_id, client=None)  # type: ignore[arg-type]
    world.client = await world.registered()
    return world


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
async def world(backend: Backend, tmp_path: Path) -> AsyncIterator[World]:
    store = await backend.open(tmp_path)
    yield await world_on(store, FixedClock())
    await store.close()


async def test_tokens_look_like_no_key_and_are_kept_as_hashes(world: World) -> None:
    code = await world.code()
    tokens = await world.exchange(code)
    assert tokens.refresh is not None
    assert [one[:3] for one in (code, tokens.access, tokens.refresh)] == ["ac_", "at_", "rt_"]
    assert tokens.scopes == READ_WRITE
    assert tokens.expires_in_seconds == 3600
    for secret in (code, tokens.access, tokens.refresh):
        assert set(secret) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-")
        assert await world.store.oauth_token(secret) is None
        assert await world.store.authorization_code(secret) is None


async def test_an_access_token_is_its_key_within_its_scopes(world: World) -> None:
    expected = await world.access.authenticate(world.key)
    writing = await world.access.authenticate((await world.tokens()).access, address=BASE)
    assert replace(writing, credential=expected.credential) == expected
    reading = await world.access.authenticate((await world.tokens(("memory:read",))).access)
    assert (reading.user_id, reading.graph_id, reading.scope) == (
        expected.user_id,
        expected.graph_id,
        Scope.MEMBER,
    )


async def test_a_read_only_key_grants_reading_only(world: World) -> None:
    world.key, _ = await world.access.create_key("reader", Scope.MEMBER)
    tokens = await world.tokens(("memory:read", "memory:write", "memory:admin"))
    assert tokens.scopes == ("memory:read",)
    assert (await world.access.authenticate(tokens.access)).scope is Scope.MEMBER


async def test_who_may_write_may_read(world: World) -> None:
    assert (await world.tokens(("memory:write",))).scopes == READ_WRITE


async def test_a_code_is_good_once_and_its_second_use_ends_the_grant(world: World) -> None:
    code = await world.code()
    tokens = await world.exchange(code)
    assert await world.works(tokens)
    with pytest.raises(InvalidGrant, match="used before"):
        await world.exchange(code)
    assert not await world.works(tokens)
    assert tokens.refresh is not None
    with pytest.raises(InvalidGrant):
        await world.oauth.refresh(world.client, tokens.refresh)


async def test_of_exchanges_at_once_one_wins_and_the_grant_ends(world: World) -> None:
    code = await world.code()
    results = await asyncio.gather(*(world.exchange(code) for _ in range(4)), return_exceptions=True)
    won = [result for result in results if isinstance(result, IssuedTokens)]
    assert len(won) == 1
    assert sum(isinstance(result, InvalidGrant) for result in results) == 3
    assert not await world.works(won[0])


async def test_a_code_of_a_grant_that_ended_is_worth_nothing(world: World) -> None:
    code = await world.code()
    owner = (await world.identity()).user_id
    await world.end((await world.store.grants(owner))[0].grant_id)
    with pytest.raises(InvalidGrant, match="revoked"):
        await world.exchange(code)


async def test_two_servers_at_once_exchange_a_code_once(backend: Backend, tmp_path: Path) -> None:
    if not backend.capabilities.shared:
        pytest.skip("the backend is private to its process")
    one, two = await backend.open(tmp_path), await backend.open(tmp_path)
    try:
        first = await world_on(one, FixedClock())
        other = opened(two, first.clock)
        code = await first.code()
        results = await asyncio.gather(
            first.exchange(code),
            other.exchange_code(first.client, code, verifier=VERIFIER, redirect_uri=REDIRECT),
            return_exceptions=True,
        )
        assert sorted(type(result).__name__ for result in results) == ["InvalidGrant", "IssuedTokens"]
        grants = await one.grants((await first.identity()).user_id)
        assert [grant.revoked_at for grant in grants] == [first.clock.now()]
    finally:
        await one.close()
        await two.close()


async def test_a_code_lives_five_minutes(world: World) -> None:
    code, late = await world.code(), await world.code()
    world.clock.advance(minutes=5, microseconds=-1)
    await world.exchange(code)
    world.clock.advance(microseconds=1)
    with pytest.raises(InvalidGrant, match="expired"):
        await world.exchange(late)


@pytest.mark.parametrize(
    ("verifier", "redirect_uri"),
    [
        ("x" * 43, REDIRECT),
        (CHALLENGE, REDIRECT),
        ("", REDIRECT),
        (VERIFIER, None),
        (VERIFIER, "http://127.0.0.1:51235"),
        (VERIFIER, "http://127.0.0.1:51234/other"),
    ],
)
async def test_a_code_needs_its_verifier_and_redirect_uri(
    world: World, verifier: str, redirect_uri: str | None
) -> None:
    code = await world.code()
    with pytest.raises(InvalidGrant):
        await world.oauth.exchange_code(world.client, code, verifier=verifier, redirect_uri=redirect_uri)
    # A mistake of somebody else does not use the code up.
    assert await world.works(await world.exchange(code))


async def test_a_code_is_for_the_program_that_asked(world: World) -> None:
    other = await world.registered()
    code = await world.code()
    tokens = await world.exchange(code)
    with pytest.raises(InvalidGrant, match="unknown"):
        await world.exchange(code, other)
    assert await world.works(tokens)
    assert tokens.refresh is not None
    with pytest.raises(InvalidGrant):
        await world.oauth.refresh(other, tokens.refresh)
    await world.oauth.revoke_token(other, tokens.access)
    assert await world.works(tokens)


@pytest.mark.parametrize("challenge", ["", "x" * 42, "x" * 44, "+" * 43])
async def test_a_challenge_is_a_sha_256(world: World, challenge: str) -> None:
    request = AuthorizationRequest(
        client_id=world.client.client_id,
        redirect_uri=REDIRECT,
        redirect_uri_given=True,
        code_challenge=challenge,
        state=None,
        scopes=READ_WRITE,
        resource=BASE,
    )
    with pytest.raises(InvalidInput, match="code_challenge"):
        await world.consenting.begin(request)


async def test_an_access_token_lives_an_hour_and_a_refreshed_one_follows(world: World) -> None:
    tokens = await world.tokens()
    world.clock.advance(hours=1, microseconds=-1)
    assert await world.works(tokens)
    world.clock.advance(microseconds=1)
    assert not await world.works(tokens)
    assert tokens.refresh is not None
    following = await world.oauth.refresh(world.client, tokens.refresh)
    assert await world.works(following)
    assert following.refresh not in (None, tokens.refresh)


async def test_each_refresh_gives_sixty_days_more(world: World) -> None:
    tokens = await world.tokens()
    for _ in range(3):
        world.clock.advance(days=59)
        assert tokens.refresh is not None
        tokens = await world.oauth.refresh(world.client, tokens.refresh)
    world.clock.advance(days=60)
    assert tokens.refresh is not None
    with pytest.raises(InvalidGrant, match="expired"):
        await world.oauth.refresh(world.client, tokens.refresh)


async def test_hooks_that_refresh_at_once_all_get_tokens(world: World) -> None:
    tokens = await world.tokens()
    assert tokens.refresh is not None
    refreshed = await asyncio.gather(*(world.oauth.refresh(world.client, tokens.refresh) for _ in range(4)))
    world.clock.advance(seconds=30)
    refreshed.append(await world.oauth.refresh(world.client, tokens.refresh))
    assert len({one.access for one in refreshed}) == 5
    for one in refreshed:
        assert await world.works(one)
        assert one.refresh is not None
        await world.oauth.refresh(world.client, one.refresh)


async def test_a_refresh_token_that_comes_back_late_ends_the_grant(world: World) -> None:
    tokens = await world.tokens()
    assert tokens.refresh is not None
    following = await world.oauth.refresh(world.client, tokens.refresh)
    world.clock.advance(seconds=30, microseconds=1)
    with pytest.raises(InvalidGrant, match="used before"):
        await world.oauth.refresh(world.client, tokens.refresh)
    assert not await world.works(following)
    assert following.refresh is not None
    with pytest.raises(InvalidGrant):
        await world.oauth.refresh(world.client, following.refresh)


async def test_a_narrowed_token_does_not_narrow_the_grant(world: World) -> None:
    tokens = await world.tokens()
    assert tokens.refresh is not None
    narrow = await world.oauth.refresh(world.client, tokens.refresh, ["memory:read"])
    assert narrow.scopes == ("memory:read",)
    assert (await world.access.authenticate(narrow.access)).scope is Scope.MEMBER
    assert narrow.refresh is not None
    assert (await world.oauth.refresh(world.client, narrow.refresh)).scopes == READ_WRITE


async def test_a_program_without_refresh_gets_no_refresh_token(world: World) -> None:
    world.client = await world.registered(grant_types=("authorization_code",))
    assert (await world.tokens()).refresh is None


async def test_a_refresh_token_is_no_access_token_and_the_other_way_round(world: World) -> None:
    tokens = await world.tokens()
    assert tokens.refresh is not None
    with pytest.raises(Unauthorized):
        await world.access.authenticate(tokens.refresh)
    with pytest.raises(InvalidGrant):
        await world.oauth.refresh(world.client, tokens.access)


@pytest.mark.parametrize("what", ["key", "grant", "program", "access token", "refresh token"])
async def test_a_revocation_holds_at_the_next_request_on_every_server(
    backend: Backend, tmp_path: Path, what: str
) -> None:
    store = await backend.open(tmp_path)
    second = await backend.open(tmp_path) if backend.capabilities.shared else store
    try:
        world = await world_on(store, FixedClock())
        elsewhere = Desk(second, world.clock)
        tokens = await world.tokens()
        assert tokens.refresh is not None
        await elsewhere.authenticate(tokens.access)
        owner = (await world.identity()).user_id
        if what == "key":
            await world.access.revoke_key(world.key_id)
        elif what == "grant":
            await world.end((await world.store.grants(owner))[0].grant_id)
        elif what == "program":
            await world.oauth.revoke_client(world.client.client_id)
        else:
            token = tokens.access if what == "access token" else tokens.refresh
            await world.oauth.revoke_token(world.client, token)
        with pytest.raises(Unauthorized):
            await elsewhere.authenticate(tokens.access)
        with pytest.raises(InvalidGrant):
            await opened(second, world.clock).refresh(world.client, tokens.refresh)
    finally:
        await store.close()
        await second.close()


async def test_a_grant_ends_once_and_only_known_programs_end(world: World) -> None:
    tokens = await world.tokens()
    owner = (await world.identity()).user_id
    grant = (await world.store.grants(owner))[0]
    await world.end(grant.grant_id)
    for grant_id in (grant.grant_id, "grant_none"):
        with pytest.raises(NotFound, match="grant"):
            await world.end(grant_id)
    with pytest.raises(NotFound, match="client_none"):
        await world.oauth.revoke_client("client_none")
    assert not await world.works(tokens)


@pytest.mark.parametrize(
    ("address", "works"),
    [
        (BASE, True),
        ("http://127.0.0.1:8477", True),
        ("http://localhost:8478", False),
        ("https://localhost:8477", False),
        ("http://memory.example:8477", False),
    ],
)
async def test_a_token_is_for_the_server_it_was_issued_for(world: World, address: str, works: bool) -> None:
    assert await world.works(await world.tokens(), address) is works


async def test_a_sign_in_lives_ten_minutes(world: World) -> None:
    secret = await world.begin()
    world.clock.advance(minutes=10, microseconds=-1)
    consent = await world.consenting.identify(secret, await world.identity())
    world.clock.advance(microseconds=1)
    for late in (
        world.consenting.sign_in(secret),
        world.consenting.identify(secret, await world.identity()),
        world.consenting.allow(secret, consent),
        world.consenting.deny(secret, consent),
    ):
        with pytest.raises(NotFound, match="ten minutes"):
            await late


async def test_consent_comes_from_the_page_that_was_shown_last(world: World) -> None:
    secret = await world.begin()
    with pytest.raises(NotFound):
        await world.consenting.allow(secret, "")
    first = await world.consenting.identify(secret, await world.identity())
    second = await world.consenting.identify(secret, await world.identity())
    for wrong in (first, "", secret):
        with pytest.raises(NotFound):
            await world.consenting.allow(secret, wrong)
    await world.consenting.allow(secret, second)
    with pytest.raises(NotFound):
        await world.consenting.allow(secret, second)


async def test_two_answers_at_once_make_one_grant(world: World) -> None:
    secret = await world.begin()
    consent = await world.consenting.identify(secret, await world.identity())
    results = await asyncio.gather(
        *(world.consenting.allow(secret, consent) for _ in range(3)), return_exceptions=True
    )
    assert sum(isinstance(result, tuple) for result in results) == 1
    assert len(await world.store.grants((await world.identity()).user_id)) == 1


async def test_a_program_that_is_revoked_during_a_sign_in_gets_nothing(world: World) -> None:
    secret = await world.begin()
    consent = await world.consenting.identify(secret, await world.identity())
    await world.oauth.revoke_client(world.client.client_id)
    with pytest.raises(NotFound):
        await world.consenting.allow(secret, consent)
    assert await world.oauth.client(world.client.client_id) is None


async def test_a_program_that_nobody_lets_in_is_forgotten_after_a_day(world: World) -> None:
    await world.tokens()
    unused = await world.registered()
    world.clock.advance(hours=23)
    await world.registered()
    assert await world.oauth.client(unused.client_id) == unused
    world.clock.advance(hours=1)
    await world.registered()
    assert await world.oauth.client(unused.client_id) is None
    assert await world.oauth.client(world.client.client_id) == world.client


async def test_a_grant_that_nobody_uses_is_forgotten_with_its_program(world: World) -> None:
    await world.tokens()
    world.clock.advance(days=60)
    newcomer = await world.registered()
    assert await world.store.grants((await world.identity()).user_id) == []
    assert await world.oauth.client(world.client.client_id) is None
    assert await world.oauth.client(newcomer.client_id) == newcomer


async def test_registration_counts_redirect_uris(world: World) -> None:
    for count in (0, 21):
        with pytest.raises(InvalidInput, match=f"{count} entries"):
            await world.registered(redirect_uris=(REDIRECT,) * count)


def test_the_lifetimes_are_the_documented_ones() -> None:
    from hivemem.domain import oauth as rules

    assert timedelta(minutes=10) == rules.SIGN_IN_LIFETIME
    assert timedelta(minutes=5) == rules.CODE_LIFETIME
    assert timedelta(seconds=30) == rules.REFRESH_GRACE
    assert timedelta(hours=24) == rules.UNUSED_CLIENT_LIFETIME


# Grants of people, without a key ----------------------------------------------------------------------


async def by_password(world: World, graph_id: str | None = None) -> IssuedTokens:
    """Tokens of a person who signed in without a key, at the graph that they chose."""
    key = await world.identity()
    identity = replace(key, key_id=None, admin=True)
    secret = await world.begin((*READ_WRITE, "memory:admin"))
    consent = await world.consenting.identify(secret, identity)
    _, code = await world.consenting.allow(secret, consent, graph_id)
    return await world.exchange(code)


async def test_a_person_grants_at_a_graph_of_theirs_and_the_grant_needs_no_key(world: World) -> None:
    user_id = (await world.identity()).user_id
    second = graph("graph_second", owner_id=user_id, is_default=False)
    await world.store.add_graph(second)
    tokens = await by_password(world, second.graph_id)
    await world.access.revoke_key(world.key_id)
    principal = await world.access.authenticate(tokens.access, address=BASE)
    assert (principal.graph_id, principal.may_administer) == (second.graph_id, True)
    own = (await world.store.graphs(user_id))[0].graph_id
    assert (await world.access.authenticate(tokens.access, graph_id=own)).graph_id == own
    # The graph goes, and the grant with it.
    await world.store.remove_graph(second.graph_id, world.clock.now())
    assert not await world.works(tokens)
    assert tokens.refresh is not None
    with pytest.raises(InvalidGrant):
        await world.oauth.refresh(world.client, tokens.refresh)


async def test_a_graph_of_somebody_else_is_not_granted(world: World) -> None:
    await world.store.add_user(user("user_two"), graph("graph_two", owner_id="user_two"))
    for foreign in ("graph_two", "graph_none"):
        with pytest.raises(Forbidden):
            await by_password(world, foreign)
    assert await world.store.grants((await world.identity()).user_id) == []


async def test_a_stolen_refresh_token_of_a_person_ends_the_grant_and_is_logged_once(world: World) -> None:
    tokens = await by_password(world)
    assert tokens.refresh is not None
    following = await world.oauth.refresh(world.client, tokens.refresh)
    world.clock.advance(seconds=31)
    for _ in range(2):
        with pytest.raises(InvalidGrant):
            await world.oauth.refresh(world.client, tokens.refresh)
    assert not await world.works(following)
    [event] = await world.store.audit_events(AuditQuery(action="grant.reuse"))
    assert event.detail == {"client_id": world.client.client_id, "of": "refresh_token"}
    assert event.user_id == (await world.identity()).user_id


async def test_an_invitation_is_used_by_who_was_asked_and_once(world: World) -> None:
    secret = await world.consenting.begin_joining("h" * 64)
    consent = await world.consenting.identify(secret, await world.identity())
    with pytest.raises(NotFound):
        await world.consenting.allow(secret, consent)
    with pytest.raises(NotFound):
        await world.consenting.joined(secret, "wrong")
    hash, identity = await world.consenting.joined(secret, consent)
    assert (hash, identity) == ("h" * 64, await world.identity())
    with pytest.raises(NotFound):
        await world.consenting.joined(secret, consent)
    # A sign-in of a program is not one of an invitation, whatever the program says.
    other = await world.begin(state="h" * 64)
    consent = await world.consenting.identify(other, await world.identity())
    with pytest.raises(NotFound):
        await world.consenting.joined(other, consent)

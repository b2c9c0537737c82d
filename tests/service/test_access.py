"""The owner, keys, and who a credential stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hivemem.domain.access import API_KEY_PATTERN, Scope, hash_api_key
from hivemem.errors import InvalidInput, NotFound, Unauthorized
from hivemem.ports.store import Store
from hivemem.service.access import Access
from tests.support.builders import FixedClock
from tests.support.desk import Desk


@pytest.fixture
async def access(store: Store, clock: FixedClock) -> AsyncIterator[Desk]:
    desk = Desk(store, clock)
    yield desk
    await desk.written()


async def test_a_new_database_gets_an_owner_a_graph_a_key_and_a_profile(store: Store, access: Desk) -> None:
    user, graph, secret = await access.ensure_owner()
    assert secret is not None and API_KEY_PATTERN.fullmatch(secret)
    assert graph.owner_id == user.user_id
    profile = (await store.nodes(graph.graph_id, ["user_profile"]))["user_profile"]
    assert (profile.placeholder, profile.node_type) == (True, "user")
    principal = await access.authenticate(secret)
    assert (principal.user_id, principal.graph_id) == (user.user_id, graph.graph_id)
    principal.require_write()


async def test_a_second_start_changes_nothing_and_tells_no_secret(store: Store, access: Desk) -> None:
    user, graph, _ = await access.ensure_owner()
    revision = await store.revision(graph.graph_id)
    assert await access.ensure_owner() == (user, graph, None)
    assert await store.revision(graph.graph_id) == revision
    assert len(await access.list_keys()) == 1


async def test_two_processes_that_start_at_once_agree_on_the_owner(store: Store, clock: FixedClock) -> None:
    starts = [Access(store=store, clock=clock).ensure_owner() for _ in range(5)]
    owners = {(user.user_id, graph.graph_id) for user, graph, _ in await asyncio.gather(*starts)}
    assert len(owners) == 1
    assert len(await store.users()) == 1


async def test_a_local_caller_owns_a_new_database_without_any_key(store: Store, access: Desk) -> None:
    principal = await access.local_principal()
    principal.require_write()
    assert await access.list_keys() == []
    user, graph, secret = await access.ensure_owner()
    assert (principal.user_id, principal.graph_id) == (user.user_id, graph.graph_id)
    assert secret is not None


async def test_a_revoked_only_key_is_not_replaced_by_itself(access: Desk) -> None:
    _, _, secret = await access.ensure_owner()
    assert secret is not None
    await access.revoke_key(secret)
    assert (await access.ensure_owner())[2] is None


async def test_only_the_hash_of_a_key_is_stored(access: Desk) -> None:
    secret, key = await access.create_key(" laptop ", Scope.MEMBER)
    assert (key.name, key.scope, key.hash) == ("laptop", Scope.MEMBER, hash_api_key(secret))
    assert key.key_id == key.hash[:12]
    assert secret not in repr(await access.list_keys())


async def test_a_member_key_reads_only(access: Desk) -> None:
    secret, _ = await access.create_key("dashboard", Scope.MEMBER)
    assert (await access.authenticate(secret)).scope is Scope.MEMBER


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_revocation_holds_from_the_next_request_on(access: Desk, by_id: bool) -> None:
    secret, key = await access.create_key("laptop", Scope.OWNER)
    await access.authenticate(secret)
    assert await access.revoke_key(key.key_id if by_id else secret) == key.key_id
    with pytest.raises(Unauthorized):
        await access.authenticate(secret)
    assert [one.revoked_at is not None for one in await access.list_keys()] == [True]


async def test_a_revocation_by_another_process_holds_too(store: Store, access: Desk) -> None:
    secret, key = await access.create_key("laptop", Scope.OWNER)
    await access.authenticate(secret)
    await Desk(store, FixedClock()).revoke_key(key.key_id)
    with pytest.raises(Unauthorized):
        await access.authenticate(secret)


async def test_only_an_active_key_can_be_revoked(access: Desk) -> None:
    _, key = await access.create_key("laptop", Scope.OWNER)
    await access.revoke_key(key.key_id)
    for name in (key.key_id, "0" * 12, "hm_" + "0" * 64):
        with pytest.raises(NotFound):
            await access.revoke_key(name)


@pytest.mark.parametrize(
    "credential",
    [
        None,
        "",
        "hm_",
        "hm_" + "A" * 64,
        "hm_" + "0" * 63,
        "hm_" + "0" * 64 + "\n",
        "Bearer x",
        "x" * 67,
        "hm_'--",
    ],
)
async def test_a_malformed_credential_is_refused_without_a_read(
    access: Desk, store: Store, credential: str | None
) -> None:
    await store.close()  # any read would raise Unavailable now
    with pytest.raises(Unauthorized):
        await access.authenticate(credential)


async def test_an_unknown_key_and_a_revoked_key_give_the_same_answer(access: Desk) -> None:
    secret, _ = await access.create_key("laptop", Scope.OWNER)
    await access.revoke_key(secret)
    messages: set[str] = set()
    for credential in (secret, "hm_" + "0" * 64):
        with pytest.raises(Unauthorized) as refusal:
            await access.authenticate(credential)
        messages.add(refusal.value.message)
    assert len(messages) == 1


@pytest.mark.parametrize("name", ["", " ", "n" * 101, "nul\x00"])
async def test_a_key_has_a_short_name(access: Desk, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^/name "):
        await access.create_key(name, Scope.OWNER)

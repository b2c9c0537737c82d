"""Users, passwords and personal graphs."""

from __future__ import annotations

import pytest

from hivemem.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited, Unauthorized
from tests.accounts.conftest import PASSWORD, House


async def test_a_new_user_has_a_default_graph_with_a_profile_and_no_rights_over_others(house: House) -> None:
    user, graph = await house.people.add_user(await house.operator(), " Ada Lovelace ", PASSWORD)
    assert (user.name, user.operator) == ("Ada Lovelace", False)
    assert graph.is_default and graph.owner_id == user.user_id
    assert "user_profile" in await house.store.nodes(graph.graph_id, ["user_profile"])

    ada = await house.as_user("Ada Lovelace")
    assert [one.user_id for one in await house.people.users(ada)] == [user.user_id]
    with pytest.raises(Forbidden, match="runs this server"):
        await house.people.add_user(ada, "Mallory")
    with pytest.raises(Forbidden):
        await house.people.user(ada, (await house.operator()).user_id)
    with pytest.raises(Forbidden):
        await house.people.change_user(ada, "Ada Lovelace", operator=True)


async def test_without_an_admin_credential_nothing_of_the_administration_answers(house: House) -> None:
    await house.people.add_user(await house.operator(), "Ada")
    user = await house.store.user_by_name("Ada")
    assert user is not None
    _, key = await house.keys.create(await house.operator(), user="Ada")
    found = await house.store.key_account(key.hash)
    assert found is not None and not found[0].admin
    secret, _ = await house.keys.create(await house.operator(), user="Ada")
    plain = await house.access.authenticate(secret)
    for call in (
        house.people.users(plain),
        house.people.user(plain, None),
        house.people.graphs(plain),
        house.people.add_graph(plain, "work"),
        house.keys.list(plain),
        house.keys.create(plain),
        house.organizations.list(plain),
        house.organizations.add(plain, "Acme"),
    ):
        with pytest.raises(Forbidden, match="cannot administer"):
            await call


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 101, "two\nlines", "user_" + "0" * 20, "none", "Me", "org_" + "a" * 20]
)
async def test_names_that_would_confuse_are_refused(house: House, name: str) -> None:
    with pytest.raises(InvalidInput):
        await house.people.add_user(await house.operator(), name)


async def test_a_taken_name_is_refused(house: House) -> None:
    await house.newcomer("Ada")
    with pytest.raises(Conflict):
        await house.people.add_user(await house.operator(), "Ada")


async def test_a_password_is_kept_as_argon2id_and_nothing_else_matches(house: House) -> None:
    user, _ = await house.people.add_user(await house.operator(), "Ada", PASSWORD)
    assert user.password_hash is not None and user.password_hash.startswith("$argon2id$")
    assert PASSWORD not in repr(user) and user.password_hash not in repr(user)
    assert await house.passwords.matches(user, PASSWORD)
    assert not await house.passwords.matches(user, PASSWORD + " ")
    assert not await house.passwords.matches(user, "")
    assert not await house.passwords.matches(None, "a password that nobody has")


async def test_composed_and_decomposed_letters_are_one_password(house: House) -> None:
    user, _ = await house.people.add_user(await house.operator(), "Zoé", "caf\u00e9 au lait noir")
    assert await house.passwords.matches(user, "cafe\u0301 au lait noir")


@pytest.mark.parametrize("password", ["short", "x" * 257])
async def test_a_bad_password_is_refused_before_anything_is_made(house: House, password: str) -> None:
    with pytest.raises(InvalidInput, match="/password"):
        await house.people.add_user(await house.operator(), "Ada", password)
    assert await house.store.user_by_name("Ada") is None


async def test_people_change_their_own_password_with_the_present_one(house: House) -> None:
    await house.people.add_user(await house.operator(), "Ada", PASSWORD)
    ada = await house.as_user("Ada")
    for wrong in (None, "not the present one"):
        with pytest.raises(Unauthorized):
            await house.people.change_user(
                ada, None, password="another fine password", current_password=wrong
            )
    await house.people.change_user(ada, None, password="another fine password", current_password=PASSWORD)
    user = await house.store.user_by_name("Ada")
    assert await house.passwords.matches(user, "another fine password")
    await house.people.change_user(await house.operator(), "Ada", password="set by the operator")
    assert await house.passwords.matches(await house.store.user_by_name("Ada"), "set by the operator")


async def test_the_present_password_cannot_be_guessed_without_end(house: House) -> None:
    await house.people.add_user(await house.operator(), "Ada", PASSWORD)
    ada = await house.as_user("Ada")
    await house.rate_limits.guess("Ada")  # as the sign-in counts
    for _ in range(4):
        with pytest.raises(Unauthorized):
            await house.people.change_user(ada, None, password="my own words now", current_password="guess")
    with pytest.raises(RateLimited, match="tried too often"):
        await house.people.change_user(ada, None, password="my own words now", current_password=PASSWORD)
    # Who runs the server is not asked for it.
    await house.people.change_user(await house.operator(), "Ada", password="set by the operator")


async def test_the_last_operator_stays(house: House) -> None:
    operator = await house.operator()
    with pytest.raises(Conflict):
        await house.people.change_user(operator, None, operator=False)
    with pytest.raises(Conflict):
        await house.people.remove_user(operator, operator.user_id)
    await house.newcomer("Ada")
    await house.people.change_user(operator, "Ada", operator=True)
    await house.people.change_user(operator, None, operator=False)


async def test_a_user_has_several_graphs_and_one_default(house: House) -> None:
    ada = await house.newcomer("Ada")
    work = await house.people.add_graph(ada, "work")
    _, graphs = await house.people.graphs(ada)
    assert [(graph.name, graph.is_default) for graph in graphs] == [("default", True), ("work", False)]

    with pytest.raises(Conflict, match="default"):
        await house.people.remove_graph(ada, ada.graph_id)
    await house.people.change_graph(ada, work.graph_id, default=True, name="job")
    _, graphs = await house.people.graphs(ada)
    assert [(graph.name, graph.is_default) for graph in graphs] == [("default", False), ("job", True)]
    assert (await house.as_user("Ada")).graph_id == work.graph_id
    await house.people.remove_graph(ada, ada.graph_id)
    _, graphs = await house.people.graphs(ada)
    assert [graph.name for graph in graphs] == ["job"]


async def test_a_strangers_graph_is_as_unknown_as_one_that_is_not_there(house: House) -> None:
    ada, bob = await house.newcomer("Ada"), await house.newcomer("Bob")
    for graph_id in (ada.graph_id, "graph_that_is_not_there"):
        for call in (
            house.people.graph(bob, graph_id),
            house.people.change_graph(bob, graph_id, frozen=True),
            house.people.remove_graph(bob, graph_id),
        ):
            with pytest.raises(NotFound, match="for you to decide about"):
                await call


async def test_a_frozen_graph_is_read_only_until_it_thaws(house: House) -> None:
    ada = await house.newcomer("Ada")
    await house.people.change_graph(ada, ada.graph_id, frozen=True)
    with pytest.raises(Forbidden, match="frozen"):
        (await house.as_user("Ada")).for_writing()
    await house.people.change_graph(ada, ada.graph_id, frozen=False)
    (await house.as_user("Ada")).for_writing()


async def test_a_removed_user_leaves_no_key_that_works(house: House) -> None:
    await house.newcomer("Ada")
    secret, _ = await house.keys.create(await house.operator(), user="Ada")
    await house.access.authenticate(secret)
    await house.people.remove_user(await house.operator(), "Ada")
    with pytest.raises(Unauthorized):
        await house.access.authenticate(secret)
    with pytest.raises(NotFound):
        await house.people.user(await house.operator(), "Ada")
    assert (await house.actions())[-1] == "user.remove"

"""Who a person is that signs in with a browser: by password, by API key, or at an identity provider.

Every attempt is a line of the audit log. A name that was tried does not get into it: people type passwords
into the wrong field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hivemem.domain.access import Scope
from hivemem.domain.accounts import ExternalIdentity, GraphKind, User
from hivemem.domain.oauth import Identity
from hivemem.errors import Conflict, Forbidden, HivememError, InvalidInput, Unauthorized
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore
from hivemem.service.access import Access
from hivemem.service.audit import AuditLog
from hivemem.service.passwords import Passwords, mark_of
from hivemem.service.people import MAX_NAME_CHARACTERS, People
from hivemem.service.rate_limits import RateLimits

_MOST_NAMESAKES = 20


class SignInStore(AccountStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedIdentity:
    """Who somebody is at an identity provider, proved by it. `names`: what to call a new user, best first."""

    issuer: str
    subject: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A graph that somebody can let a program work with."""

    graph_id: str
    name: str
    kind: GraphKind


class SignIns:
    """Finds out who signs in."""

    def __init__(
        self,
        *,
        store: SignInStore,
        access: Access,
        people: People,
        passwords: Passwords,
        audit: AuditLog,
        rate_limits: RateLimits,
        clock: Clock,
        creates_accounts: bool = False,
    ) -> None:
        """`creates_accounts`: whether people of the identity provider get an account, when they have none."""
        self._store = store
        self._access = access
        self._people = people
        self._passwords = passwords
        self._audit = audit
        self._rate_limits = rate_limits
        self._clock = clock
        self._creates_accounts = creates_accounts

    async def by_password(self, name: str, password: str) -> Identity:
        """The user with this name and password.

        It takes as long, and says the same, whether or not there is such a user.

        Raises:
            Unauthorized: There is none.
            RateLimited: This name was tried too often.
        """
        name = name.strip()
        await self._rate_limits.guess(name)
        user = await self._store.user_by_name(name) if name.isprintable() else None
        if not await self._passwords.matches(user, password) or user is None:
            await self._failed("password", None if user is None else user.user_id)
            raise Unauthorized("the name or the password is not right.", code="wrong_password")
        return await self._known("password", user)

    async def by_key(self, secret: str) -> Identity:
        """The owner of an API key; what is granted then hangs on the key.

        Raises:
            Unauthorized: Malformed, unknown, expired or revoked.
        """
        try:
            key, _ = await self._access.active_key(secret)
        except Unauthorized:
            await self._failed("api_key", None)
            raise
        await self._audit.record(
            "sign_in.ok", user_id=key.user_id, credential=f"key:{key.key_id}", detail={"way": "api_key"}
        )
        return Identity(
            user_id=key.user_id, graph_id=key.graph_id, scope=key.scope, admin=key.admin, key_id=key.key_id
        )

    async def by_provider(self, proved: ProvedIdentity, *, invited: bool = False) -> Identity:
        """The user who is linked to an identity, or a new one.

        Nobody is found by name or e-mail address: these can change hands at a provider.

        Args:
            proved: The identity.
            invited: Whether somebody without an account gets one whatever the setting says.

        Raises:
            Forbidden: Nobody is linked to it, and nobody may get a new account.
        """
        user = await self._store.user_by_external_identity(proved.issuer, proved.subject)
        if user is None:
            if not (self._creates_accounts or invited):
                await self._failed("oidc", None)
                raise Forbidden(
                    "nobody on this server is linked to this identity; ask who runs it for `hivemem user "
                    f"link NAME --issuer {proved.issuer} --subject {proved.subject}`.",
                    code="identity_unknown",
                )
            user = await self._added(proved)
        return await self._known("oidc", user)

    async def refused(self, way: str) -> None:
        """Note an attempt that failed before anybody was known."""
        await self._failed(way, None)

    async def memories(self, identity: Identity) -> Sequence[Memory]:
        """The graphs that a person may choose from: their own, the default one first, then organizations'.

        A key's grant is for the graph of the key, so that there is nothing to choose.
        """
        account = await self._store.account(identity.user_id, identity.graph_id)
        if identity.key_id is not None or account is None:
            return ()
        own = sorted(await self._store.graphs(identity.user_id), key=lambda graph: not graph.is_default)
        return [
            *(Memory(graph_id=one.graph_id, name=one.name, kind=GraphKind.PERSONAL) for one in own),
            *(
                Memory(graph_id=one.graph_id, name=one.name, kind=GraphKind.ORGANIZATION)
                for one in account.memberships
            ),
        ]

    async def name_of(self, identity: Identity) -> str:
        """What the pages call somebody who signed in."""
        user = await self._store.user(identity.user_id)
        return "" if user is None else user.name

    async def _known(self, way: str, user: User) -> Identity:
        graphs = await self._store.graphs(user.user_id)
        if not graphs:
            raise Unauthorized("this account is gone; ask who runs this server.", code="account_gone")
        default = next((graph for graph in graphs if graph.is_default), graphs[0])
        await self._audit.record("sign_in.ok", user_id=user.user_id, detail={"way": way})
        return Identity(
            user_id=user.user_id,
            graph_id=default.graph_id,
            scope=Scope.OWNER,
            # They may let a program administer what they may themselves; the page asks for it by name.
            admin=True,
            key_id=None,
            password_mark=mark_of(user),
        )

    async def _failed(self, way: str, user_id: str | None) -> None:
        # Not as `user_id`: whoever tried is not known to be them.
        await self._audit.record("sign_in.failed", target=user_id, detail={"way": way})

    async def _added(self, proved: ProvedIdentity) -> User:
        """A new user for an identity; the one who was first, when two requests bring it at once."""
        user = await self._named(proved)
        identity = ExternalIdentity(
            issuer=proved.issuer,
            subject=proved.subject,
            user_id=user.user_id,
            created_at=self._clock.now(),
        )
        try:
            await self._store.add_external_identity(identity)
        except Conflict:
            await self._store.remove_user(user.user_id, self._clock.now())
            first = await self._store.user_by_external_identity(proved.issuer, proved.subject)
            if first is None:
                raise
            return first
        await self._audit.record("identity.link", user_id=user.user_id, target=user.user_id)
        return user

    async def _named(self, proved: ProvedIdentity) -> User:
        names = [name[: MAX_NAME_CHARACTERS - 4] for name in (*proved.names, proved.subject, "somebody")]
        problem: HivememError | None = None
        for name in names:
            for number in range(1, _MOST_NAMESAKES):
                try:
                    label = name if number == 1 else f"{name} {number}"
                    return (await self._people.add_user(None, label))[0]
                except Conflict as error:
                    problem = error
                except InvalidInput as error:
                    problem = error
                    break
        assert problem is not None
        raise problem

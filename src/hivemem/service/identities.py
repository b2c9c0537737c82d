"""Which identities at providers are whose, as decided by who runs the server."""

from __future__ import annotations

from collections.abc import Sequence

from hivemem.domain.access import Principal
from hivemem.domain.accounts import ExternalIdentity, User
from hivemem.domain.text import storable_text
from hivemem.errors import InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore
from hivemem.service.audit import AuditLog
from hivemem.service.people import decided_user

_MAX_CHARACTERS = 255
"""OpenID Connect Core (2) has no longer subjects."""


class Identities:
    """Links, lists and forgets identities."""

    def __init__(self, *, store: AccountStore, audit: AuditLog, clock: Clock) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    async def list(self, actor: Principal, user: str | None) -> tuple[User, Sequence[ExternalIdentity]]:
        """The identities of a user, oldest first; of the actor when None."""
        person = await self._person(actor, user)
        return person, await self._store.external_identities(person.user_id)

    async def link(self, actor: Principal, user: str, issuer: str, subject: str) -> ExternalIdentity:
        """Let whoever proves to be `subject` at `issuer` sign in as a user.

        Raises:
            Forbidden: The actor does not run the server. Who links themselves claims without proof.
            InvalidInput: Blank, or longer than 255 characters.
            NotFound: There is no such user.
            Conflict: The identity is somebody's already.
        """
        actor.require_operator()
        for name, value in (("issuer", issuer), ("subject", subject)):
            if not 1 <= len(storable_text(value, f"/{name}").strip()) <= _MAX_CHARACTERS:
                raise InvalidInput(f"/{name} has {len(value)} characters; give 1 to {_MAX_CHARACTERS}.")
        person = await self._person(actor, user)
        identity = ExternalIdentity(
            # As the setting `oidc_issuer` is compared.
            issuer=issuer.strip().rstrip("/"),
            subject=subject.strip(),
            user_id=person.user_id,
            created_at=self._clock.now(),
        )
        await self._store.add_external_identity(identity)
        await self._audit.record("identity.link", actor, target=person.user_id)
        return identity

    async def unlink(self, actor: Principal, user: str | None, issuer: str, subject: str) -> ExternalIdentity:
        """Forget an identity of a user. Grants that were given with it stay; they are ended by themselves.

        Raises:
            Forbidden: It is somebody else's, and the actor does not run the server.
            NotFound: The user has no such identity.
        """
        person, known = await self.list(actor, user)
        for one in known:
            if (one.issuer, one.subject) == (issuer.strip().rstrip("/"), subject.strip()):
                await self._store.remove_external_identity(one.issuer, one.subject)
                await self._audit.record("identity.unlink", actor, target=person.user_id)
                return one
        raise NotFound(f"{person.name!r} has no such identity; list the identities.")

    async def _person(self, actor: Principal, user: str | None) -> User:
        return await decided_user(
            self._store, actor, user, "other people's accounts are for who runs this server."
        )

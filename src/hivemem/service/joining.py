"""Joining an organization with the link of an invitation, with an account or by making one."""

from __future__ import annotations

from hivemem.domain.access import Principal, Scope
from hivemem.domain.accounts import Invitation, Membership, Organization
from hivemem.domain.oauth import Identity
from hivemem.errors import Forbidden, HivememError, NotFound
from hivemem.service.organizations import Organizations
from hivemem.service.people import People
from hivemem.service.sign_ins import SignIns


class Joining:
    """Uses invitations for who opened their link."""

    def __init__(
        self, *, people: People, organizations: Organizations, sign_ins: SignIns, creates_accounts: bool
    ) -> None:
        """`creates_accounts`: whether an invitation is enough to make an account."""
        self._people = people
        self._organizations = organizations
        self._sign_ins = sign_ins
        self.creates_accounts = creates_accounts

    async def invited(self, secret: str) -> tuple[Invitation, Organization]:
        """What a link invites to.

        Raises:
            NotFound: It never was, was used or taken back, or its time is over.
        """
        return await self._organizations.invited(secret)

    async def as_user(self, secret: str, name: str, password: str) -> Membership:
        """Join as the user with this name and password.

        Raises:
            NotFound: See `invited`.
            Unauthorized: There is no such user.
        """
        # First, so that a link that is over is no place to try passwords at.
        await self.invited(secret)
        identity = await self._sign_ins.by_password(name, password)
        return await self._organizations.accept(identity.user_id, secret)

    async def as_newcomer(self, secret: str, name: str, password: str) -> Membership:
        """Join as a new user. Without the invitation there is no account either.

        Raises:
            NotFound: See `invited`.
            Forbidden: Accounts are made by who runs the server.
            InvalidInput: A bad name or password.
            Conflict: The name is taken.
        """
        await self.invited(secret)
        if not self.creates_accounts:
            raise Forbidden("accounts are made by who runs this server; ask for one, and sign in with it.")
        user, graph = await self._people.add_user(None, name, password)
        try:
            return await self._organizations.accept(user.user_id, secret)
        except HivememError:
            # Somebody else was first; nobody keeps an account for having lost.
            own = Principal(
                user_id=user.user_id, graph_id=graph.graph_id, scope=Scope.OWNER, may_administer=True
            )
            await self._people.remove_user(own, user.user_id)
            raise

    async def as_identified(self, invitation_hash: str, identity: Identity) -> Membership:
        """Join as somebody who signed in at an identity provider.

        Raises:
            NotFound: See `invited`.
        """
        return await self._organizations.accept_by_hash(identity.user_id, invitation_hash)

    async def invited_by_hash(self, hash: str | None) -> tuple[Invitation, Organization]:
        """What an invitation invites to, by the SHA-256 of its secret; see `invited`."""
        if hash is None:
            raise NotFound("this page belongs to no invitation; open its link again.", code="invitation_over")
        return await self._organizations.invited_by_hash(hash)
